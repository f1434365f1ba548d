"""A run over more nodes than one record has room for."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from audit_log.rebuild import rebuild
from audit_log.search import AuditQuery, search
from config.ids import ActorId
from config.node_names import NodeName
from runbooks.machine import RunState
from runbooks.packing import FEW, packed, unpacked
from runbooks.requests import CannotDo
from tests.runbooks.engine.lamps import CLUSTER, Bench
from tests.runbooks.engine.test_steps import ROOMY, ROW

MANY = [f"n{number:04}" for number in range(1, 1001)]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path, {"row": ROW}, limits={**ROOMY, "ending_actions_per_hour": 2000})


def test_a_run_over_a_thousand_nodes_holds_them_all(bench: Bench) -> None:
    run = bench.ask("row", nodes=list(MANY))
    assert bench.run(run).parameters["nodes"] == MANY
    locks = [f"node:{name}" for name in MANY]
    bench.parts.halt.set("only the locks are wanted")
    bench.engine.advance(run)
    assert bench.run(run).locks == tuple(locks)
    assert bench.locks() == {f"{CLUSTER}/{lock}": run for lock in locks}
    assert rebuild(bench.ledger).differing == ()


def test_a_label_on_a_thousand_nodes_holds_for_each(bench: Bench) -> None:
    nodes = [NodeName(name) for name in MANY]
    bench.requests.hands_off(CLUSTER, nodes, ActorId("p-ann"), "new rack")
    assert bench.ledger.query("SELECT node FROM hands_off ORDER BY node") == [(n,) for n in MANY]
    assert list(search(bench.ledger, AuditQuery(target="n0500"), 9)), "a search finds each of them"
    bench.requests.hands_off(CLUSTER, nodes, ActorId("p-ann"), None)
    assert bench.ledger.query("SELECT node FROM hands_off") == []


def test_nodes_that_fit_into_no_record_are_refused_with_a_way_out(bench: Bench) -> None:
    scattered = [f"n{number:05}" for number in range(1, 20_000, 7)]
    with pytest.raises(CannotDo, match="fewer at a time"):
        bench.ask("row", nodes=scattered)
    with pytest.raises(CannotDo, match="fewer at a time"):
        bench.requests.hands_off(CLUSTER, [NodeName(n) for n in scattered], ActorId("p-ann"), "x")
    assert bench.ledger.query("SELECT count(*) FROM runs") == [(0,)]


def test_a_few_nodes_are_written_out(bench: Bench) -> None:
    run = bench.go(bench.ask("row", nodes=["l1", "l2"]))
    assert run.state is RunState.SUCCEEDED
    assert not any("packed" in record.event.data for record in bench.ledger.records())


lists = st.lists(
    st.from_regex(
        r"(sim/)?(node:|path:|partition:|)[a-z][a-z0-9\[\]/@-]{0,6}[0-9]{0,3}", fullmatch=True
    ),
    unique=True,
    max_size=3 * FEW,
)


@given(lists)
def test_what_is_packed_unpacks_to_the_same_set(texts: list[str]) -> None:
    assert sorted(unpacked(packed({"atoms": texts, "other": 1}))["atoms"]) == sorted(texts)
