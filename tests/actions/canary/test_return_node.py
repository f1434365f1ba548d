"""return-node through the real engine: no work starts on a node before its canary passed there."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from actions.simulated.writes import FaultKind, WriteVerb
from config.ids import RunId
from runbooks.machine import RunState
from tests.actions.engine_bench import CANARY, Bench, bench_over, without_canary
from tests.actions.simulated.small import N5, small_world


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with bench_over(tmp_path, small_world(jobs=[])) as made:
        yield made


def drained(bench: Bench) -> RunId:
    run = bench.settle(bench.ask("drain-node", nodes=[N5], reason="fans"))
    assert run.state is RunState.SUCCEEDED
    return bench.ask("return-node", node=N5)


def verbs(bench: Bench) -> list[str]:
    return [verb for verb, _ in bench.written()][1:]


PASSED = ["create_reservation", "canary_start", "resume", "delete_reservation"]
FAILED = ["create_reservation", "canary_start", "resume", "drain", "delete_reservation"]


def test_a_canary_that_passes_gives_the_node_back(bench: Bench) -> None:
    run = bench.settle(drained(bench))
    assert run.state is RunState.SUCCEEDED, run.why
    assert verbs(bench) == PASSED
    assert not bench.cluster.fresh_node(N5).draining
    assert bench.cluster.fresh_reservations() == ()
    assert bench.marks() == []


def test_the_canary_runs_alone_in_a_maintenance_reservation_of_exactly_that_node(
    bench: Bench,
) -> None:
    run = drained(bench)
    bench.plugs.pull("submit_job", name="waits", user="ann", partition="short", shape="4x8")
    bench.settle(run, lambda: "resume" in verbs(bench))
    (held,) = bench.cluster.fresh_reservations()
    assert (held.nodes, held.users) == ((N5,), (CANARY,))
    assert held.flags >= {"MAINT", "IGNORE_JOBS"}
    bench.plugs.forward(timedelta(seconds=5))
    there = bench.cluster.fresh_jobs(N5)
    assert [(job.user, job.name, job.reservation) for job in there] == [
        (CANARY, held.name, held.name)
    ]
    assert bench.settle(run).state is RunState.SUCCEEDED


def test_a_canary_that_fails_leaves_the_node_drained_and_asks_a_person(bench: Bench) -> None:
    bench.plugs.pull("fail_canary", node=N5)
    run = bench.asked(bench.settle(drained(bench)).id)
    assert run.state is RunState.NEEDS_PERSON
    assert "did not pass" in run.why
    assert verbs(bench) == FAILED
    node = bench.cluster.fresh_node(N5)
    assert node.draining
    assert node.reason.startswith("nw canary failed [")
    assert bench.cluster.fresh_reservations() == ()
    assert bench.marks() == [("drain", N5)]
    assert bench.output(run.id, "tried")["lines"] == "canary: no NVLink"


def test_a_canary_that_never_ends_is_ended_before_its_reservation_goes(tmp_path: Path) -> None:
    with bench_over(tmp_path, small_world(jobs=[], canary_takes=86400)) as bench:
        run = bench.settle(drained(bench))
        assert "it has not ended" in bench.asked(run.id).why
        assert verbs(bench) == [*PASSED[:3], "drain", "canary_end", "delete_reservation"]
        assert bench.cluster.fresh_node(N5).draining


def test_a_gate_that_does_not_hold_leaves_the_node_out_whatever_the_canary(bench: Bench) -> None:
    run = drained(bench)
    bench.plugs.pull("lose_gpus", node=N5, present=7)
    bench.settle(run)
    assert bench.asked(run).state is RunState.NEEDS_PERSON
    assert "resume" not in verbs(bench)
    assert bench.cluster.fresh_node(N5).draining


def test_a_canary_that_cannot_be_submitted_leaves_the_node_out(bench: Bench) -> None:
    run = drained(bench)
    bench.plugs.fail_next(FaultKind.REJECTED, WriteVerb.CANARY_START)
    bench.settle(run)
    assert bench.asked(run).state is RunState.NEEDS_PERSON
    assert "resume" not in verbs(bench)
    assert bench.cluster.fresh_node(N5).draining


@pytest.mark.parametrize(
    "verb", [WriteVerb.CREATE_RESERVATION, WriteVerb.CANARY_START, WriteVerb.RESUME]
)
def test_a_bot_that_died_after_a_write_goes_on_and_starts_no_second_canary(
    bench: Bench, verb: WriteVerb
) -> None:
    run = drained(bench)
    bench.plugs.fail_next(FaultKind.APPLIED_NO_ANSWER, verb)
    bench.settle(run, lambda: verb.value in verbs(bench))
    bench.restart()
    assert bench.settle(run).state is RunState.SUCCEEDED
    assert verbs(bench) == PASSED


def test_without_a_canary_the_gate_alone_decides_and_it_is_said(tmp_path: Path) -> None:
    with bench_over(tmp_path, small_world(jobs=[]), site=without_canary) as bench:
        run = bench.settle(drained(bench))
        assert run.state is RunState.SUCCEEDED, run.why
        assert verbs(bench) == ["resume"]
        assert "no canary configured" in str(bench.output(run.id, "canary")["why"])


def test_a_node_that_is_in_service_is_left_as_it_is(bench: Bench) -> None:
    bench.settle(bench.ask("return-node", node=N5))
    assert bench.written() == []
    assert not bench.cluster.fresh_node(N5).draining
