"""requeue-job through the real engine on the simulated cluster: the ground is held, or nothing moves."""

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from actions.catalogue import ClusterSite
from actions.cluster import Job
from actions.simulated.client import Line, SimulatedCluster, SimulatedNodes
from actions.simulated.description import describe
from actions.simulated.plugs import Plugs
from actions.simulated.server import SimulationServer
from actions.simulated.stage import Stage
from config.clock import EPOCH, Instant
from config.ids import ClusterName, JobId, RunId
from config.job_settings import CheckpointFormat, Restartable
from config.node_names import NodeName
from runbooks.card_lines import lines
from runbooks.machine import RunState
from runbooks.told import Told
from tests.actions.job.bench import ANN, Bench

SIM = ClusterName("sim")
SICK, SPARE = NodeName("gpu-2"), NodeName("gpu-5")
GROUND = {"gpu-1", "gpu-3", "gpu-4", "gpu-5"}
MINUTES = timedelta(minutes=2)
PENDING = [
    {"id": str(number), "name": "one-day", "user": "bo", "partition": "train", "node_count": 2}
    for number in range(20, 40)
]


def world(**changes: object) -> dict[str, object]:
    """Six nodes in the queue, a four-node job, one that fills another, a spare, and twenty that wait."""
    train: dict[str, object] = {
        "id": "10", "name": "llama", "partition": "train", "nodes": "gpu-[1-4]", "node_count": 4,
        "shared": False, "priority": 4711, "excluded_nodes": "gpu-8", "comment": "nw:restartable",
    }  # fmt: skip
    other = {"id": "11", "name": "other", "user": "cyd", "partition": "train", "nodes": "gpu-6"}
    cluster: dict[str, object] = {
        "nodes": [{"names": "gpu-[1-8]"}],
        "partitions": [{"name": "train", "nodes": "gpu-[1-6]", "default": True}],
        "jobs": [{**train, **changes}, other, *PENDING],
    }
    return cluster


RULE = Restartable(
    names=("trained",), checkpoint="/shared/{user}/{name}", format=CheckpointFormat.DCP
)
TRAINED: dict[str, object] = {
    "name": "trained",
    "comment": "",
    "training": {"folder": "/shared/ann/trained", "step_takes": 1, "checkpoint_every": 10},
}


@dataclass(frozen=True, slots=True)
class WorldClock:
    """The world's own time."""

    plugs: Plugs

    def now(self) -> Instant:
        moment = self.plugs.now()
        return Instant(wall=moment, monotonic=moment - EPOCH)


@dataclass(frozen=True, slots=True, kw_only=True)
class Play:
    """A bot, its cluster, and what befalls it."""

    bench: Bench
    plugs: Plugs
    cluster: SimulatedCluster

    def job(self, number: str = "10") -> Job:
        return self.cluster.fresh_job(JobId(number))

    def ask(self) -> RunId:
        return self.bench.ask("requeue-job", job="10", node=SICK)

    def others(self) -> dict[str, str]:
        """States of the jobs that waited."""
        jobs = {job.id: job.state for job in self.cluster.snapshot().jobs}
        return {str(number): jobs[JobId(str(number))] for number in range(20, 40)}


Stand = Callable[[dict[str, object]], Play]


@pytest.fixture
def stand() -> Iterator[Stand]:
    """Makes a world with a bot in it."""
    with tempfile.TemporaryDirectory(prefix="nwj-") as folder:
        path = Path(folder) / "s"
        stage = Stage(describe({"nodes": [{"names": "n1"}]}))
        line = Line(path=path)
        cluster = SimulatedCluster(name=SIM, line=line)
        benches: list[Bench] = []

        def make(wanted: dict[str, object]) -> Play:
            stage.world = describe(wanted)
            plugs = Plugs(path=path)
            plugs.forward(MINUTES)

            def forward(until: datetime) -> None:
                plugs.forward(until - plugs.now())

            def pause(by: timedelta) -> None:
                plugs.forward(by)

            site = ClusterSite(
                cluster=cluster,
                nodes=SimulatedNodes(line=line),
                history=cluster,
                readings=SimulatedNodes(line=line),
                jobs=cluster,
                changes=cluster,
                pause=pause,
                units=frozenset({"slurmd"}),
                close=lambda: None,
            )
            bench = Bench(Path(folder), site, WorldClock(plugs), forward, rules=(RULE,))
            benches.append(bench)
            return Play(bench=bench, plugs=plugs, cluster=cluster)

        with SimulationServer(stage, path):
            yield make
            for bench in benches:
                bench.ledger.close()


def test_the_job_runs_again_on_survivors_and_spare_before_anybody_else(stand: Stand) -> None:
    play = stand(world())
    began = play.job().started_at
    done = play.bench.to_the_end(play.ask())
    assert done.state is RunState.SUCCEEDED, done.why
    job = play.job()
    assert (job.state, job.restarts, set(job.nodes)) == ("RUNNING", 1, GROUND)
    assert job.started_at is not None
    assert began is not None
    assert job.started_at > began
    assert set(play.others().values()) == {"PENDING"}
    assert (job.priority, job.excluded_nodes, job.reservation) == (4711, "gpu-8", "")
    assert play.cluster.fresh_reservations() == ()
    assert play.bench.marks() == [("drain", SICK)]


def test_without_the_bot_the_nodes_are_given_away(stand: Stand) -> None:
    play = stand(world())
    play.cluster.drain(SICK, "a person's drain")
    play.cluster.requeue([JobId("10")])
    play.plugs.forward(timedelta(minutes=10))
    assert play.job().state == "PENDING"
    assert "RUNNING" in play.others().values()


def test_the_newest_complete_checkpoint_is_told_to_those_who_approve(stand: Stand) -> None:
    play = stand(world(**TRAINED))
    run = play.ask()
    asked = play.bench.until_asked(run)
    assert asked.plan is not None
    assert asked.plan.approvals_needed == 1
    ground = play.bench.output(run, "ground")
    assert ground["becomes"] == (
        "goes on from its checkpoint in /shared/ann/trained (by rule 1 of the site)"
    )
    step = ground["checkpoint_step"]
    assert isinstance(step, int)
    assert step >= 100
    assert str(ground["resumes"]).startswith(f"its newest complete checkpoint is step {step} of ")
    assert ground["files_read"] == "ann's /shared/ann/trained on gpu-1"


def test_two_persons_approve_where_the_job_starts_from_zero(stand: Stand) -> None:
    play = stand(world(comment=""))
    run = play.ask()
    asked = play.bench.until_asked(run)
    assert asked.plan is not None
    assert (asked.state, asked.plan.approvals_needed) == (RunState.AWAITING_APPROVAL, 2)
    (loss,) = play.bench.plan(run).jobs_end
    assert (loss.job, loss.lost, loss.why) == (
        "10",
        True,
        "starts from zero, may overwrite its output",
    )
    assert play.job().restarts == 0


def test_the_card_says_whose_work_ends_from_where_it_goes_on_and_what_follows(stand: Stand) -> None:
    play = stand(world(**TRAINED))
    run = play.ask()
    asked = play.bench.until_asked(run)
    outputs = {step: play.bench.output(run, step) for step in ("facts", "ground")}
    plan, now = play.bench.plan(run), play.plugs.now()
    card = "\n".join(lines(asked, Told(plan=plan, outputs=outputs, name=str, now=now)))
    assert "Ends job 10 (ann, 32 GPUs): goes on from its checkpoint" in card
    assert "its newest complete checkpoint is step" in card
    assert "its age in the queue begins again" in card


def test_one_person_is_enough_where_it_goes_on(stand: Stand) -> None:
    play = stand(world())
    asked = play.bench.until_asked(play.ask())
    assert asked.plan is not None
    assert asked.plan.approvals_needed == 1


def test_the_plan_locks_the_job_and_all_of_its_ground(stand: Stand) -> None:
    play = stand(world())
    run = play.ask()
    play.bench.until_asked(run)
    wanted = {"job:10", "node:gpu-2", *(f"node:{name}" for name in GROUND)}
    assert set(play.bench.plan(run).locks) == wanted


def nothing_moved(play: Play, said: str) -> str:
    """The run waits for a person, who is told why; the cluster is as it was."""
    run = play.ask()
    asked = play.bench.to_the_end(run)
    assert asked.state is RunState.NEEDS_PERSON
    assert said in asked.why
    assert play.job().restarts == 0
    assert not play.cluster.fresh_node(SICK).draining
    assert play.cluster.fresh_reservations() == ()
    assert play.bench.marks() == []
    return asked.why


def test_a_job_that_names_the_sick_node_is_left_to_a_person(stand: Stand) -> None:
    why = nothing_moved(stand(world(required_nodes="gpu-2")), "asks for gpu-2 by name (-w)")
    assert "its nodes would go to job 20 (bo, 2 nodes" in why


def test_a_job_of_a_higher_qos_that_waits_is_left_to_a_person(stand: Stand) -> None:
    urgent = {
        "id": "50", "name": "urgent", "user": "eve", "partition": "train", "node_count": 5,
        "qos": "urgent",
    }  # fmt: skip
    wanted = world(qos="normal")
    jobs = wanted["jobs"]
    assert isinstance(jobs, list)
    wanted["jobs"] = [*({**job, "qos": job.get("qos", "normal")} for job in jobs), urgent]
    wanted["preempt_type"] = "preempt/qos"
    nothing_moved(stand(wanted), "job 50 (eve, QOS urgent) waits and may preempt job 10")


def test_without_a_spare_it_is_left_to_a_person(stand: Stand) -> None:
    wanted = world()
    jobs = wanted["jobs"]
    assert isinstance(jobs, list)
    more = {"id": "12", "name": "five", "user": "cyd", "partition": "train", "nodes": SPARE}
    wanted["jobs"] = [*jobs, more]
    nothing_moved(stand(wanted), "no spare for gpu-2")


def test_a_persons_yes_to_nothing_moves_nothing(stand: Stand) -> None:
    play = stand(world(required_nodes="gpu-2"))
    run = play.ask()
    play.bench.to_the_end(run)
    play.bench.requests.resume(run, ANN, "seen", True)
    assert play.bench.to_the_end(run).state is RunState.SUCCEEDED
    assert play.job().restarts == 0
    assert not play.cluster.fresh_node(SICK).draining


def test_slurm_was_faster_and_the_job_is_not_requeued_again(stand: Stand) -> None:
    play = stand(world())
    run = play.ask()
    assert play.bench.until_asked(run).state is RunState.AWAITING_APPROVAL
    play.plugs.pull("requeue_job", job=10)
    done = play.bench.to_the_end(run)
    assert done.state is RunState.NEEDS_PERSON
    assert "Slurm has requeued job 10 already (Restarts 1)" in done.why
    assert play.job().restarts == 1
    assert play.bench.marks() == []


def test_a_spare_that_was_taken_meanwhile_moves_nothing(stand: Stand) -> None:
    play = stand(world())
    run = play.ask()
    play.bench.until_asked(run)
    play.plugs.pull("admin_drain", node=SPARE, reason="new cable", by="dana")
    done = play.bench.to_the_end(run)
    assert done.state is RunState.NEEDS_PERSON
    assert "since the plan was made the cluster changed" in done.why
    assert (play.job().restarts, play.bench.marks()) == (0, [])


def test_a_silent_node_is_not_taken_for_dead(stand: Stand) -> None:
    play = stand(world())
    play.plugs.pull("cut_link", node=SICK)
    play.plugs.forward(timedelta(seconds=200))
    assert not play.cluster.fresh_node(SICK).responding
    run = play.ask()
    asked = play.bench.to_the_end(run)
    assert asked.state is RunState.NEEDS_PERSON
    assert "not answering is not dead" in asked.why
    assert play.job().restarts == 0


def test_a_drain_of_somebody_else_is_left_as_it_is(stand: Stand) -> None:
    play = stand(world())
    play.plugs.pull("admin_drain", node=SICK, reason="RMA 4711", by="dana")
    done = play.bench.to_the_end(play.ask())
    assert done.state is RunState.SUCCEEDED, done.why
    assert play.cluster.fresh_node(SICK).reason == "RMA 4711"
    assert set(play.job().nodes) == GROUND
