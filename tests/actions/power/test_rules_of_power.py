"""Over every scene there can be: whose power is taken is dead or drained, ours or DOWN, and known."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from actions.cluster import Job, Node, NodeBase, drained
from actions.host_verdict import HostVerdict, Verdict
from actions.ownership import Holder, Holding
from actions.power.rules import Seen, against_giving, against_taking
from actions.power_hands import PowerReading, PowerState
from actions.remote_values import Reach, Reachability
from tests.actions.fakes import make_job, make_mark, make_node

FLAGS = st.frozensets(
    st.sampled_from(
        ["DRAIN", "NOT_RESPONDING", "COMPLETING", "REBOOT_ISSUED", "POWERING_UP", "NEW_FLAG"]
    )
)


@st.composite
def scenes(draw: st.DrawFn) -> Seen:
    """Anything that could be read, also what contradicts itself."""
    node: Node = make_node(
        base=draw(st.sampled_from(NodeBase)),
        flags=draw(FLAGS),
        tres_allocated=draw(st.sampled_from(["", "cpu=64"])),
    )
    jobs: tuple[Job, ...] = draw(
        st.sampled_from([(), (make_job(),), (make_job(state="PENDING"),), (make_job(nodes=()),)])
    )
    holder = draw(st.sampled_from(Holder))
    reach = draw(st.sampled_from(Reach))
    return Seen(
        node=node,
        jobs=jobs,
        jobs_blind=draw(st.sampled_from(["", "PrivateData"])),
        holding=Holding(
            holder=holder,
            owner=holder.value,
            why="it says so",
            mark=make_mark() if draw(st.booleans()) else None,
        ),
        reach=Reachability(reach=reach, evidence="it said so"),
        verdict=Verdict(host=draw(st.sampled_from(HostVerdict)), evidence=("it was seen",)),
        power=PowerReading(state=draw(st.sampled_from(PowerState)), evidence="it says so"),
        losses=(),
        boot_id="unknown",
    )


def ours(seen: Seen) -> bool:
    return seen.holding.holder is Holder.US and seen.holding.mark is not None


@given(scenes(), st.booleans())
def test_power_is_taken_only_where_every_rule_of_fencing_holds(
    seen: Seen, comes_back: bool
) -> None:
    if against_taking(seen, comes_back=comes_back):
        return
    node = seen.node
    dead = seen.verdict.host is HostVerdict.DEAD
    reachable = seen.verdict.host is HostVerdict.ALIVE and seen.reach.reach is Reach.ALIVE
    assert dead or (reachable and drained(node, seen.jobs))
    assert seen.holding.holder is not Holder.OTHER
    assert ours(seen) or (node.base is NodeBase.DOWN and not comes_back)
    assert not seen.jobs_blind
    assert not node.unknown_flags
    assert not node.flags & {"REBOOT_ISSUED", "POWERING_UP"}
    shown = [job for job in seen.jobs if job.holds_nodes and node.name in job.nodes]
    assert shown or not node.busy


@given(scenes())
def test_power_is_given_only_under_a_drain_of_ours_by_a_bot_that_sees(seen: Seen) -> None:
    if against_giving(seen):
        return
    assert ours(seen)
    assert seen.verdict.host is not HostVerdict.CUT_OFF
    assert not seen.node.unknown_flags


@given(scenes())
def test_a_dead_node_of_ours_may_always_be_fenced(seen: Seen) -> None:
    fit = replace(
        seen,
        node=make_node(base=NodeBase.DOWN, flags=frozenset({"DRAIN", "NOT_RESPONDING"})),
        holding=Holding(holder=Holder.US, owner="us:run-12", why="ours", mark=make_mark()),
        jobs_blind="",
        verdict=Verdict(host=HostVerdict.DEAD, evidence=("nobody hears it",)),
    )
    assert against_taking(fit, comes_back=True) == ()


@given(scenes())
def test_each_reason_is_a_sentence_that_names_the_node_or_the_bot(seen: Seen) -> None:
    for why in against_taking(seen, comes_back=False):
        assert why.strip()
        assert seen.node.name in why or why.startswith("hands off")
