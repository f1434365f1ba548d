"""slurmctld is killed 0.5 s after each write of a run and comes back without its last seconds (hands 1).

Restarted or failed over, then `scontrol reconfigure`, under each ReturnToService. The run ends as if
nothing had happened or a person is told; meanwhile no node is open to work that nobody has let back,
and what a person drained stays drained. The bot does nothing for a minute after each start of
slurmctld: one case is tried in every run, the others by `make long-tests`.
tests/sweep/test_forgetting.py plays all of it on the simulated cluster.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from bot.testbed import SlurmTestbed, TestbedOptions
from tests.e2e import quiet
from tests.e2e.forgetting import (
    EARLY,
    LATE,
    SICK,
    Return,
    Stage,
    may_become_the_canary,
    staged,
)
from tests.e2e.twins import carry_out, state
from tests.testbed.fixture import fresh_folder

pytestmark = [pytest.mark.e2e, pytest.mark.slurm]
MODES = (0, 1, 2)
EVERY = 99
GROUND, AFTER = "gpu-[01-02]", "gpu-[01,03]"
"""Nodes of the job: the first ones, and without the sick one."""


@dataclass(frozen=True)
class Play:
    """A run, what was before it, and what differs at its end from a run in peace."""

    words: tuple[str, ...]
    before: Callable[[Stage], None]
    differs: Callable[[Stage], str]


def _nothing(_stage: Stage) -> None:
    return


def _drained_by_us(stage: Stage) -> None:
    quiet.settle(stage.testbed)
    assert carry_out(stage.bot, "drain", SICK, "fans")[0] == "succeeded"


def _down(stage: Stage) -> None:
    stage.testbed.kill_slurmd(SICK)
    stage.testbed.wait_for(lambda: "DOWN" in stage.testbed.node_states(SICK), f"{SICK} is DOWN")


def _training(stage: Stage) -> None:
    # Its nodes are not asked for by name: such a job could never leave one of them.
    job = stage.testbed.queue_coupled("--nodes=2", "--comment=nw:restartable")
    stage.job = job
    stage.testbed.wait_for_iteration(job, 20)
    assert stage.testbed.job(job.id)["NodeList"] == GROUND


def _out(stage: Stage) -> str:
    shown = stage.testbed.node(SICK)
    fine = "DRAIN" in shown["State"] and shown.get("Reason", "").startswith("nw")
    return "" if fine else f"{SICK} is {shown['State']} {shown.get('Reason', '')}"


def _back(stage: Stage) -> str:
    flags = stage.testbed.node_states(SICK)
    unit = stage.testbed.unit(SICK)["state"]
    fine = flags == {"IDLE"} and unit == "active"
    return "" if fine else f"{SICK}: {sorted(flags)}, {unit}"


def _restarted(stage: Stage) -> str:
    if stage.testbed.boot_id(SICK) == stage.boot_id:
        return f"{SICK} was not restarted"
    return _back(stage)


def _moved(stage: Stage) -> str:
    assert stage.job is not None
    shown = stage.testbed.job(stage.job.id)
    facts = [shown[name] for name in ("JobState", "Restarts", "NodeList")]
    left = stage.testbed.run("scontrol", "show", "reservations").lower()
    if facts != ["RUNNING", "1", AFTER] or "no reservations" not in left:
        return f"the job is {facts}, {left}"
    return _out(stage)


PLAYS = {
    "drain-node": Play(("drain", SICK, "fans"), _nothing, _out),
    "return-node": Play(("return", SICK), _drained_by_us, _back),
    "node-dropped": Play(("run", "node-dropped", SICK), _down, _back),
    "reboot-node": Play(("run", "reboot-node", SICK, "reason=leak"), _nothing, _restarted),
    "requeue-job": Play(("requeue", "{job}", SICK), _training, _moved),
    "replace-node": Play(("replace", SICK, "board"), _training, _moved),
}


def play(stage: Stage, name: str, most: int = EVERY, person: str = "") -> None:
    """One run to its end, and what must be true of it."""
    wanted = PLAYS[name]
    stage.bot.start()
    wanted.before(stage)
    quiet.settle(stage.testbed)
    job = str(stage.job.id) if stage.job is not None else ""
    run = stage.carry_out(tuple(word.format(job=job) for word in wanted.words), most, person)
    print(f"{name}: {state(stage.bot, run)}; {stage.seen}; {wanted.differs(stage)}")
    assert stage.seen.losses, stage.told()
    assert stage.seen.unvalidated == [], stage.told()
    stage.testbed.wait_for(
        lambda: (
            not wanted.differs(stage) or state(stage.bot, run) == "needs_person" or stage.pages()
        ),
        f"{run} ends as in peace, or a person is told: {wanted.differs(stage)}\n{stage.told()}",
        seconds=120,
    )
    for node in {EARLY, LATE, person} - {""}:
        shown = stage.testbed.node(node)
        assert "DRAIN" in shown["State"], f"{node}: {shown}\n{stage.told()}"
        assert shown["Reason"].startswith("RMA"), f"{node}: {shown}\n{stage.told()}"
    assert "sound" in stage.bot.ask("audit", "verify").text


def cluster(mode: int, way: Return) -> Iterator[SlurmTestbed]:
    """Six nodes; a silent one is given up after 15 s."""
    if why := SlurmTestbed.missing():
        pytest.skip(why)
    options = TestbedOptions(
        cluster="forgetful",
        slurmd_timeout=15,
        return_to_service=mode,
        backup_controller=way is Return.FAIL_OVER,
    )
    with fresh_folder() as folder, SlurmTestbed(folder, nodes=6, options=options) as running:
        yield running


@pytest.fixture(scope="module")
def obliging() -> Iterator[SlurmTestbed]:
    """ReturnToService=1: a silent node is IDLE as soon as its slurmd is heard again."""
    yield from cluster(1, Return.RESTART)


def test_a_drain_that_was_forgotten_lets_no_dead_node_back_unseen(obliging: SlurmTestbed) -> None:
    with staged(obliging, Return.RESTART, "sample") as stage:
        play(stage, "node-dropped", most=1)
        assert "State=DRAIN" in stage.seen.losses[0]


@pytest.fixture(
    scope="module",
    params=[(mode, way) for way in Return for mode in MODES],
    ids=lambda param: f"{param[1]} with {param[0]}",
)
def forgetful(request: pytest.FixtureRequest) -> Iterator[tuple[SlurmTestbed, Return]]:
    """Each ReturnToService with each way back."""
    mode, way = request.param
    for testbed in cluster(mode, way):
        yield testbed, way


@pytest.mark.long
@pytest.mark.parametrize("name", PLAYS)
def test_each_write_may_be_forgotten(forgetful: tuple[SlurmTestbed, Return], name: str) -> None:
    testbed, way = forgetful
    with staged(testbed, way, name) as stage:
        play(stage, name)


@pytest.mark.long
def test_each_write_around_a_canary_may_be_forgotten(
    forgetful: tuple[SlurmTestbed, Return],
) -> None:
    if not Path("/usr/bin/sudo").exists():
        pytest.skip("sudo is not installed")
    testbed, way = forgetful
    with may_become_the_canary(testbed), staged(testbed, way, "canary", canary=True) as stage:
        play(stage, "return-node")


@pytest.mark.long
def test_a_drain_of_a_person_on_the_very_node_stays(
    forgetful: tuple[SlurmTestbed, Return],
) -> None:
    testbed, way = forgetful
    with staged(testbed, way, "person") as stage:
        play(stage, "node-dropped", person=SICK)
