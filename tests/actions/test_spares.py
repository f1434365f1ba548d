"""Who stands in for a lost node: the site's order, and never a node that differs or that others hold."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actions.cluster import Controller, Job, Node, NodeBase, Partition, Reservation, Snapshot
from actions.spares import Choice, Held, SpareHow, SpareRules, choose, difference
from config.node_names import NodeName
from tests.actions.fakes import CLUSTER, NODE, NOW, make_job, make_node

LOST = make_node(base=NodeBase.DOWN, flags=frozenset({"DRAIN"}), features=frozenset({"image=7"}))
S1, S2, S3 = (NodeName(f"sp-{number}") for number in (1, 2, 3))
RULES = SpareRules(nodes=frozenset({S1, S2, S3}), partition_edit=True)
DRAIN = frozenset({"DRAIN"})


def like(name: str, **changes: object) -> Node:
    given = {"name": NodeName(name), "features": frozenset({"image=7", "rack2"})}
    return make_node(**{**given, **changes})


def ask(
    *nodes: Node,
    reservations: tuple[Reservation, ...] = (),
    rules: SpareRules = RULES,
    held: Held | None = None,
    wanted: Job | None = None,
    lost: Node = LOST,
) -> Choice:
    found = {node.name: node for node in (lost, *nodes)}
    groups: dict[str, list[NodeName]] = {}
    for node in found.values():
        for name in node.partitions:
            groups.setdefault(name, []).append(node.name)
    snapshot = Snapshot(
        cluster=CLUSTER,
        taken_at=NOW,
        controller=Controller(
            cluster=CLUSTER,
            version="25.11.7",
            booted_at=None,
            slurmd_timeout=timedelta(seconds=300),
            return_to_service=1,
        ),
        nodes=found,
        jobs=(),
        partitions=tuple(
            Partition(name=name, state="UP", nodes=tuple(names), total_nodes=len(names))
            for name, names in groups.items()
        ),
        reservations=reservations,
    )
    return choose(snapshot, lost, wanted, rules, held or Held())


def kept(*names: NodeName, name: str = "nw-run-1-spares-0a1b2c3d") -> Reservation:
    return Reservation(name=name, nodes=names, starts_at=None, ends_at=None)


KEPT = Held(reservations=frozenset({"nw-run-1-spares-0a1b2c3d"}))
ELSEWHERE = frozenset({"spare"})


def test_the_order_is_idle_then_reservation_then_drain_then_partition() -> None:
    idle = like("gpu-09")
    in_hold = like(S1)
    drained = like(S2, flags=DRAIN)
    other = like(S3, partitions=ELSEWHERE)
    held = replace(KEPT, drained=frozenset({S2}))
    nodes = [idle, in_hold, drained, other]
    found = []
    while nodes:
        hold = (kept(S1, NodeName("sp-9")),) if in_hold in nodes else ()
        found.append(ask(*nodes, reservations=hold, held=held).how)
        nodes.pop(0)
    assert found == [
        SpareHow.NONE_NEEDED,
        SpareHow.RESERVATION,
        SpareHow.DRAINED,
        SpareHow.PARTITION,
    ]
    assert ask().how is SpareHow.NONE


def test_a_reservation_gives_up_one_and_keeps_the_others() -> None:
    choice = ask(like(S1), like(S2), reservations=(kept(S1, S2),), held=KEPT)
    assert (choice.how, choice.node) == (SpareHow.RESERVATION, S1)
    assert (choice.members, choice.before) == ((S2,), (S1, S2))


@pytest.mark.parametrize(
    "held", [Held(), Held(reservations=frozenset({"another"}))], ids=["nobody's", "another"]
)
def test_a_reservation_of_somebody_else_gives_nothing(held: Held) -> None:
    assert ask(like(S1), like(S2), reservations=(kept(S1, S2),), held=held).node is None


def test_a_drain_of_somebody_else_is_left() -> None:
    choice = ask(like(S1, flags=DRAIN))
    assert choice.node is None
    assert choice.refused == (f"{S1} is drained, but not by this bot",)


def test_hands_off_and_nodes_that_are_no_spares_are_left() -> None:
    off = Held(drained=frozenset({S1}), hands_off={S1: "hands off"})
    assert ask(like(S1, flags=DRAIN), held=off).node is None
    assert ask(like("gpu-77", flags=DRAIN), held=Held(drained=frozenset({S1}))).node is None


def test_a_partition_is_written_with_all_that_it_has_and_only_where_the_site_allows_it() -> None:
    member = like("gpu-02", base=NodeBase.ALLOCATED)
    choice = ask(member, like(S1, partitions=ELSEWHERE))
    assert (choice.name, choice.members) == ("train", (NODE, member.name, S1))
    assert choice.before == (NODE, member.name)
    assert "slurm.conf must follow" in choice.why
    closed = replace(RULES, partition_edit=False)
    assert ask(like(S1, partitions=ELSEWHERE), rules=closed).node is None


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"gres": "gpu:a100:8"}, "GRES gpu:a100:8, not gpu:h100:8"),
        ({"gpus": 4, "gres": "gpu:h100:4"}, "GRES gpu:h100:4"),
        ({"cpus": 32}, "32 CPUs, not 64"),
        ({"memory_mib": 999}, "999 MiB, not 1000"),
        ({"features": frozenset({"image=8"})}, "without feature image=7"),
    ],
)
def test_a_spare_that_differs_is_refused_with_the_difference(
    changes: dict[str, object], says: str
) -> None:
    choice = ask(like(S1, flags=DRAIN, **changes), held=Held(drained=frozenset({S1})))
    assert choice.node is None
    assert says in choice.refused[0]


def test_only_the_named_features_count_where_the_site_names_some() -> None:
    lost = replace(LOST, features=frozenset({"image=7", "rack=1", "loud"}))
    same = like(S1, features=frozenset({"image=7", "rack=1"}))
    moved = replace(same, features=frozenset({"image=7", "rack=2"}))
    assert difference(lost, same, ("image=", "rack=")) == ""
    assert "rack=2" in difference(lost, moved, ("image=", "rack="))
    assert difference(lost, moved, ("image=",)) == ""


def test_a_node_that_the_job_excludes_or_holds_is_none() -> None:
    job = make_job(partition="train", excluded_nodes="gpu-0[8-9]", nodes=(NODE, NodeName("gpu-03")))
    assert ask(like("gpu-09"), like("gpu-03"), wanted=job).node is None
    assert ask(like("gpu-10"), wanted=job).node == "gpu-10"
    unreadable = replace(job, excluded_nodes="gpu-[")
    assert ask(like("gpu-10"), wanted=unreadable).node is None


BASES = st.sampled_from([NodeBase.IDLE, NodeBase.MIXED, NodeBase.DOWN, NodeBase.UNKNOWN])
FLAGS = st.frozensets(
    st.sampled_from(["DRAIN", "INVALID_REG", "NOT_RESPONDING", "MAINTENANCE", "NEW_WORD", "FAIL"]),
    max_size=2,
)


@st.composite
def clusters(draw: st.DrawFn) -> tuple[tuple[Node, ...], tuple[Reservation, ...], Held]:
    names = [NodeName(name) for name in ("gpu-08", "gpu-09", "sp-1", "sp-2", "sp-3")]
    nodes = tuple(
        like(
            name,
            base=draw(BASES),
            flags=draw(FLAGS),
            cpus=draw(st.sampled_from([32, 64])),
            partitions=frozenset(draw(st.sets(st.sampled_from(["train", "spare"]), max_size=2))),
        )
        for name in names
    )
    some = st.sets(st.sampled_from(names), max_size=3)
    reservations = tuple(
        kept(*sorted(draw(some)), name=name) for name in ("nw-run-1-spares-0a1b2c3d", "theirs")
    )
    held = Held(
        drained=frozenset(draw(some)),
        reservations=KEPT.reservations if draw(st.booleans()) else frozenset(),
        hands_off=dict.fromkeys(sorted(draw(some)), "off"),
    )
    return nodes, reservations, held


@given(clusters())
def test_whatever_is_chosen_fits_and_is_nobody_elses(
    drawn: tuple[tuple[Node, ...], tuple[Reservation, ...], Held],
) -> None:
    nodes, reservations, held = drawn
    choice = ask(*nodes, reservations=reservations, held=held)
    if choice.node is None:
        assert choice.how is SpareHow.NONE
        return
    node = next(one for one in nodes if one.name == choice.node)
    holders = {one.name for one in reservations if node.name in one.nodes}
    assert difference(LOST, node, RULES.features) == ""
    assert node.base is NodeBase.IDLE
    assert not node.flags & {"FAIL", "NEW_WORD", "INVALID_REG", "NOT_RESPONDING"}
    assert node.draining is (choice.how is SpareHow.DRAINED)
    if choice.how is not SpareHow.NONE_NEEDED:
        assert node.name in RULES.nodes - held.hands_off.keys()
    if choice.how in {SpareHow.NONE_NEEDED, SpareHow.PARTITION}:
        assert not holders
    if choice.how is SpareHow.RESERVATION:
        assert choice.name in held.reservations
        assert set(choice.members) == set(choice.before) - {node.name}
        assert choice.members
    if choice.how is SpareHow.PARTITION:
        assert set(choice.members) == {*choice.before, node.name}
