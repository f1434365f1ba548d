"""replace-node through the real engine: fenced before anything takes its place, and all given back."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from actions.catalogue import ClusterSite
from actions.simulated.client import Line
from actions.simulated.plugs import Plugs
from actions.simulated.power import SimulatedPower, SimulatedVantage
from actions.simulated.writes import WriteVerb
from actions.spares import SpareRules
from config.ids import RunId
from config.node_names import NodeName
from runbooks.machine import RunState
from runbooks.partition_watch import PartitionWatch
from runbooks.run import Run
from tests.actions.engine_bench import Bench, bench_over, without_canary
from tests.actions.simulated.small import N1, N5, N6, N7, N8, small_world

SPARES = SpareRules(nodes=frozenset({N7, N8}), features=("image=",), partition_edit=True)
NOBODY = "nwspare"


@contextmanager
def bench_of(folder: Path, *, power: bool = True, **world: object) -> Iterator[Bench]:
    """gpu-[1-6] are train, gpu-[7-8] are spares of a partition of their own."""

    def site(line: Line) -> ClusterSite:
        made = replace(
            without_canary(line),
            vantage=SimulatedVantage(line=line),
            pause=lambda span: _forward(line, span),
            spares=SPARES,
        )
        return replace(made, power=SimulatedPower(line=line)) if power else made

    parts = [
        {"name": "train", "nodes": "gpu-[1-6]", "default": True},
        {"name": "spare", "nodes": "gpu-[7-8]"},
    ]
    with bench_over(folder, small_world(**{"partitions": parts, **world}), site=site) as bench:
        yield bench


def _forward(line: Line, span: timedelta) -> None:
    Plugs(path=line.path).forward(span)


@pytest.fixture
def full(tmp_path: Path) -> Iterator[Bench]:
    """No node of train is idle: gpu-[5-6] work too."""
    jobs = [{"id": "10", "name": "a", "partition": "train", "nodes": "gpu-[1-6]"}]
    with bench_of(tmp_path, jobs=jobs) as bench:
        yield bench


def ask(bench: Bench, node: NodeName = N1) -> RunId:
    return bench.ask("replace-node", node=node, reason="board")


def agreed(bench: Bench, run: RunId) -> Run:
    """Whatever is planned, persons agree to it."""
    for _ in range(8):
        bench.settle(run)
        if bench.asked(run).state is not RunState.AWAITING_APPROVAL:
            break
        bench.agree()
    return bench.run(run)


def verbs(bench: Bench) -> list[str]:
    return [verb for verb, _ in bench.written()]


def kill(bench: Bench, node: NodeName) -> None:
    """Nobody reaches the host any more, and Slurm has noticed."""
    bench.plugs.pull("cut_off", node=node)
    bench.plugs.forward(timedelta(minutes=10))


def test_an_idle_node_of_the_partition_needs_no_spare(tmp_path: Path) -> None:
    with bench_of(tmp_path, jobs=[]) as bench:
        run = agreed(bench, ask(bench))
        assert run.state is RunState.SUCCEEDED, run.why
        assert bench.output(run.id, "spare")["how"] == "none_needed"
        assert verbs(bench) == ["drain"]


def test_a_reservation_of_spares_gives_one_up(tmp_path: Path) -> None:
    parts = [{"name": "train", "nodes": "gpu-[1-8]", "default": True}]
    jobs = [{"id": "10", "name": "a", "partition": "train", "nodes": "gpu-[1-6]"}]
    with bench_of(tmp_path, jobs=jobs, partitions=parts) as bench:
        held = bench.settle(bench.ask("hold-spares", nodes=[N7, N8], user=NOBODY))
        assert held.state is RunState.SUCCEEDED, held.why
        bench.plugs.pull("end_job", job=10)
        bench.plugs.pull("submit_job", name="b", user="ann", partition="train", shape="6x8")
        bench.plugs.forward(timedelta(minutes=1))
        run = agreed(bench, ask(bench, N1))
        assert run.state is not RunState.AWAITING_APPROVAL
        assert bench.output(run.id, "spare")["how"] == "reservation"
        (left,) = bench.cluster.fresh_reservations()
        assert left.nodes == (N8,)


def test_a_drained_spare_is_returned_through_its_gate(tmp_path: Path) -> None:
    parts = [{"name": "train", "nodes": "gpu-[1-8]", "default": True}]
    jobs = [{"id": "10", "name": "a", "partition": "train", "nodes": "gpu-[2-6]"}]
    with bench_of(tmp_path, jobs=jobs, partitions=parts) as bench:
        bench.plugs.pull("kill_slurmd", node=N8)
        assert bench.settle(bench.ask("drain-node", nodes=[N7], reason="spare")).open is False
        bench.plugs.pull("admin_drain", node=N8, reason="RMA", by="dana")
        run = agreed(bench, ask(bench, N1))
        assert run.state is RunState.SUCCEEDED, run.why
        assert bench.output(run.id, "spare")["spare"] == N7
        assert not bench.cluster.fresh_node(N7).draining
        assert bench.cluster.fresh_node(N8).reason == "RMA"


def test_the_last_resort_writes_the_partition_and_says_that_slurm_conf_must_follow(
    full: Bench,
) -> None:
    run = agreed(full, ask(full))
    assert full.output(run.id, "spare")["how"] == "partition"
    train = full.cluster.fresh_partition("train")
    assert train.total_nodes == len(train.nodes) == 7
    assert "train" in full.cluster.fresh_node(N7).partitions
    (taken,) = [child for child in full.children(run.id) if child.runbook == "take-spare"]
    assert "slurm.conf must follow" in str(full.output(taken.id, "edit")["say"])
    assert "slurm.conf must follow" in str(full.output(run.id, "spare")["why"])
    assert ("partition", "train") in full.marks()


def test_an_edit_that_a_reconfigure_undid_is_recorded_and_paged_once(full: Bench) -> None:
    agreed(full, ask(full))
    full.plugs.forward(timedelta(minutes=2))
    watch = PartitionWatch(full.ledger, full.parts.clock, lambda _cluster: full.cluster.snapshot())
    watch.tick()
    assert ("partition", "train") in full.marks()
    full.plugs.pull("controller_restart", killed=False)
    full.plugs.forward(timedelta(minutes=2))
    watch.tick()
    watch.tick()
    assert ("partition", "train") not in full.marks()
    pages = [row[0] for row in full.ledger.query("SELECT summary FROM pages")]
    assert len([page for page in pages if "gpu-7 is no longer in partition train" in page]) == 1


def test_a_list_that_slurm_half_applies_is_taken_back_and_everything_with_it(full: Bench) -> None:
    full.plugs.at_next_write(
        "after",  # type: ignore[arg-type]
        {"plug": "remove_from_partition", "node": N6, "partition": "train"},
        verb=WriteVerb.SET_PARTITION_NODES,
    )
    run = agreed(full, ask(full))
    assert run.state is not RunState.SUCCEEDED
    assert set(full.cluster.fresh_partition("train").nodes) == {
        NodeName(f"gpu-{number}") for number in range(1, 7)
    }
    assert "train" not in full.cluster.fresh_node(N7).partitions
    assert ("partition", "train") not in full.marks()


def test_a_dead_host_is_switched_off_by_two_persons_before_a_spare_takes_its_place(
    full: Bench,
) -> None:
    kill(full, N1)
    run = full.settle(ask(full))
    assert run.state is RunState.AWAITING_APPROVAL
    assert run.plan is not None
    assert run.plan.approvals_needed == 2
    assert verbs(full) == []
    after = agreed(full, run.id)
    assert after.state is RunState.SUCCEEDED, after.why
    order = verbs(full)
    assert order.index("drain") < order.index("power_off")
    node = full.cluster.fresh_node(N1)
    assert node.draining
    assert node.base.value == "DOWN"
    assert "COMPLETING" not in node.flags
    assert full.cluster.fresh_jobs(N1) == ()


def test_without_a_way_to_its_power_a_silent_host_is_not_replaced(tmp_path: Path) -> None:
    jobs = [{"id": "10", "name": "a", "partition": "train", "nodes": "gpu-[1-6]"}]
    with bench_of(tmp_path, power=False, jobs=jobs) as bench:
        kill(bench, N1)
        run = agreed(bench, ask(bench))
        assert run.state is RunState.NEEDS_PERSON
        assert "cannot be fenced" in run.why
        assert verbs(bench) == []


def test_nothing_that_fits_is_told_with_the_differences(tmp_path: Path) -> None:
    nodes = [{"names": "gpu-[1-6]"}, {"names": "gpu-[7-8]", "gpus": 4}]
    jobs = [{"id": "10", "name": "a", "partition": "train", "nodes": "gpu-[1-6]"}]
    with bench_of(tmp_path, jobs=jobs, nodes=nodes) as bench:
        run = agreed(bench, ask(bench, N5))
        assert run.state is RunState.NEEDS_PERSON
        assert "nothing can take the place" in run.why
        assert "GRES" in str(bench.output(run.id, "spare")["refused"])
        assert verbs(bench) == []


def test_a_dead_host_gets_power_once_and_is_waited_for_by_the_boot_that_slurmctld_knew(
    full: Bench,
) -> None:
    kill(full, N1)
    run = agreed(full, full.ask("revive-node", node=N1, reason="dead"))
    assert [verb for verb in verbs(full) if verb.startswith("power")] == ["power_off", "power_on"]
    assert run.state is RunState.NEEDS_PERSON
    assert "its host is silent" in run.why
    assert full.cluster.fresh_node(N1).draining
