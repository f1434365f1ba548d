"""reboot-node through the real engine on the simulated cluster: no job ends, the drain outlives it."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from actions.simulated.client import Line, SimulatedNodes
from actions.simulated.writes import FaultKind, WriteVerb
from config.json_values import Json
from runbooks.machine import RunState
from tests.actions.engine_bench import Bench, bench_over, without_canary
from tests.actions.simulated.small import N5, small_world


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with bench_over(tmp_path, small_world(), site=without_canary) as made:
        yield made


def ask() -> dict[str, Json]:
    return {"node": N5, "reason": "kernel leak"}


def verbs(bench: Bench) -> list[str]:
    return [verb for verb, _ in bench.written()]


def boot(bench: Bench) -> str:
    return SimulatedNodes(line=Line(path=bench.plugs.path)).boot_ids((N5,))[N5].value


def test_an_idle_node_is_drained_restarted_and_given_back(bench: Bench) -> None:
    before = boot(bench)
    run = bench.settle(bench.ask("reboot-node", **ask()))
    assert run.state is RunState.SUCCEEDED, run.why
    after = bench.cluster.fresh_node(N5)
    assert (after.draining, after.reason) == (False, "")
    assert bench.output(run.id, "rebooted")["boot_id"] == boot(bench) != before
    assert verbs(bench) == ["drain", "reboot", "resume"]
    assert bench.marks() == []


def test_the_drain_stands_until_the_node_is_given_back(bench: Bench) -> None:
    run = bench.ask("reboot-node", **ask())
    bench.settle(run, lambda: "reboot" in verbs(bench))
    seen = 0
    while (due := bench.turn(lambda: "resume" in verbs(bench))) is not None:
        assert bench.cluster.fresh_node(N5).draining
        bench.plugs.forward(due - bench.now())
        seen += 1
    assert seen > 2
    assert bench.settle(run).state is RunState.SUCCEEDED


def test_jobs_go_on_to_their_end_before_the_restart(tmp_path: Path) -> None:
    job = {"id": "20", "name": "n", "partition": "short", "nodes": N5, "runs_for": "PT25M"}
    world = small_world(jobs=[job])
    with bench_over(tmp_path, world, site=without_canary) as bench:
        began = bench.now()
        run = bench.settle(bench.ask("reboot-node", **ask()))
        assert run.state is RunState.SUCCEEDED, run.why
        assert bench.now() - began > timedelta(minutes=20)
        killed = [what for what in bench.plugs.history() if "requeue" in what.what]
        assert killed == []


def test_a_node_in_other_hands_is_not_restarted(bench: Bench) -> None:
    bench.plugs.pull("admin_drain", node=N5, reason="RMA 4711", by="dana")
    run = bench.settle(bench.ask("reboot-node", **ask()))
    assert run.state is RunState.NEEDS_PERSON
    assert "dana" in run.why
    assert verbs(bench) == []


def test_what_another_run_took_out_is_restarted_and_stays_out(bench: Bench) -> None:
    first = bench.settle(bench.ask("drain-node", nodes=[N5], reason="fans"))
    run = bench.settle(bench.ask("reboot-node", **ask()))
    assert run.state is RunState.SUCCEEDED, run.why
    assert verbs(bench) == ["drain", "reboot"]
    assert bench.cluster.fresh_node(N5).draining
    assert bench.marks() == [("drain", N5)]
    assert first.id in str(bench.output(run.id, "stays")["say"])


def test_without_a_reboot_program_the_drain_is_left_and_a_person_asked(tmp_path: Path) -> None:
    with bench_over(tmp_path, small_world(reboot_program="")) as bench:
        run = bench.settle(bench.ask("reboot-node", **ask()))
        assert run.state is RunState.NEEDS_PERSON
        assert "RebootProgram" in run.why
        assert verbs(bench) == ["drain"]


def test_a_boot_that_takes_longer_than_resume_timeout_forbids_the_restart(tmp_path: Path) -> None:
    with bench_over(tmp_path, small_world(), boot_time=timedelta(minutes=16)) as bench:
        run = bench.settle(bench.ask("reboot-node", **ask()))
        assert run.state is RunState.NEEDS_PERSON
        assert "ResumeTimeout is 15m" in run.why
        assert verbs(bench) == ["drain"]


@pytest.mark.parametrize("later", [timedelta(0), timedelta(minutes=5)])
def test_a_bot_that_died_in_the_restart_finds_it_and_asks_for_no_second(
    bench: Bench, later: timedelta
) -> None:
    run = bench.ask("reboot-node", **ask())
    bench.plugs.fail_next(FaultKind.APPLIED_NO_ANSWER, WriteVerb.REBOOT)
    bench.settle(run, lambda: "reboot" in verbs(bench))
    assert bench.steps(run)["reboot"] == "intended"
    bench.plugs.forward(later)
    bench.restart()
    assert bench.settle(run).state is RunState.SUCCEEDED
    assert verbs(bench) == ["drain", "reboot", "resume"]


def test_a_restart_that_never_reached_slurm_is_asked_for_again(bench: Bench) -> None:
    run = bench.ask("reboot-node", **ask())
    bench.plugs.fail_next(FaultKind.LOST, WriteVerb.REBOOT)
    bench.settle(run, lambda: bench.steps(run).get("reboot") == "intended")
    bench.restart()
    assert bench.settle(run).state is RunState.SUCCEEDED
    assert verbs(bench) == ["drain", "reboot", "resume"]


@pytest.mark.parametrize("mode", [0, 1, 2])
def test_a_host_that_does_not_come_back_in_time_is_drained_again_before_it_can_take_work(
    tmp_path: Path, mode: int
) -> None:
    world = small_world(boot_takes=5400, return_to_service=mode)
    with bench_over(tmp_path, world) as bench:
        run = bench.settle(bench.ask("reboot-node", **ask()))
        assert run.state is RunState.NEEDS_PERSON
        assert "did not come back within" in run.why
        assert verbs(bench) == ["drain", "reboot", "drain"]
        bench.plugs.forward(timedelta(hours=2))
        node = bench.cluster.fresh_node(N5)
        assert node.draining
        assert node.responding


def test_with_a_canary_the_restarted_node_comes_back_through_it(tmp_path: Path) -> None:
    with bench_over(tmp_path, small_world(jobs=[])) as bench:
        run = bench.settle(bench.ask("reboot-node", **ask()))
        assert run.state is RunState.SUCCEEDED, run.why
        assert verbs(bench)[2:] == [
            "create_reservation",
            "canary_start",
            "resume",
            "delete_reservation",
        ]


def test_a_person_agrees_once_where_the_site_wants_that(tmp_path: Path) -> None:
    with bench_over(tmp_path, small_world(jobs=[]), autonomy="propose") as bench:
        bench.plugs.pull("fail_canary", node=N5)
        run = bench.ask("reboot-node", **ask())
        asked = 0
        while bench.settle(run).open and bench.asked(run).state is RunState.AWAITING_APPROVAL:
            asked += 1
            bench.agree()
        assert asked == 2
        assert bench.cluster.fresh_node(N5).draining
        assert verbs(bench)[-2:] == ["drain", "delete_reservation"]
