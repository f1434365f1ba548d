"""What is asked reaches the world and comes back with its words; no answer is not a no."""

import os
import socket
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from actions.contract import Refusal, Rejected, UnknownNode, Unreadable, WriteUnknown
from actions.remote_values import Reach, ServiceState
from actions.simulated import wire
from actions.simulated.client import Line, SimulatedCluster, SimulatedNodes
from actions.simulated.plugs import Plugs
from actions.simulated.server import SimulationServer
from actions.simulated.stage import Stage
from actions.simulated.world import World
from actions.simulated.writes import FaultKind, When, WriteVerb
from config.clock import Instant
from config.ids import ClusterName
from config.node_names import NodeName
from tests.actions.simulated.small import N1, N7, SECOND, Served, small_world
from tests.patience import DEADLINE


def test_a_drain_a_resume_and_a_start_reach_the_world(served: Served) -> None:
    served.plugs.pull("kill_slurmd", node=N7)
    served.cluster.drain(N7, "nw x [run-1/i]")
    assert served.cluster.fresh_node(N7).state == "IDLE+DRAIN"
    assert served.nodes.service(N7, "slurmd.service").state is ServiceState.FAILED
    assert served.nodes.start_service(N7, "slurmd", "nw-e-1").ok
    served.cluster.resume(N7)
    served.plugs.forward(SECOND)
    assert served.cluster.fresh_node(N7).state == "IDLE"
    assert [(each.verb, each.arguments) for each in served.plugs.effects()] == [
        ("drain", {"node": N7, "reason": "nw x [run-1/i]"}),
        ("start_service", {"node": N7, "unit": "slurmd", "effect_id": "nw-e-1"}),
        ("resume", {"node": N7}),
    ]


def test_an_effect_says_who_and_which_process(served: Served) -> None:
    served.cluster.drain(N7, "x")
    (effect,) = served.plugs.effects()
    assert (effect.caller, effect.pid) == ("nodewarden", os.getpid())
    assert served.cluster.fresh_node(N7).reason_by == "nodewarden"


def test_a_snapshot_is_the_same_value_on_both_sides(served: Served, world: World) -> None:
    assert served.cluster.snapshot() == world.snapshot(SECOND)


def test_errors_of_the_controller_come_through_with_its_words(served: Served) -> None:
    with pytest.raises(UnknownNode, match="gpu-99"):
        served.cluster.fresh_node(NodeName("gpu-99"))
    with pytest.raises(Rejected, match="Invalid node state"):
        served.cluster.resume(N7)
    served.plugs.pull("hide_jobs")
    with pytest.raises(Refusal, match="no job is visible"):
        served.cluster.fresh_jobs(N1)


def test_an_answer_for_another_cluster_is_not_believed(served: Served) -> None:
    other = SimulatedCluster(name=ClusterName("other"), line=served.cluster.line)
    with pytest.raises(Unreadable, match="'sim' answered"):
        other.snapshot()


def test_without_a_server_a_write_is_known_not_to_have_happened(socket_path: Path) -> None:
    line = Line(path=socket_path)
    with pytest.raises(Unreadable, match="nothing was written"):
        SimulatedCluster(name=ClusterName("sim"), line=line).drain(N7, "x")
    assert SimulatedNodes(line=line).start_service(N7, "slurmd", "e").exit_code is None


@pytest.mark.parametrize(
    "kind, applied", [(FaultKind.APPLIED_NO_ANSWER, True), (FaultKind.LOST, False)]
)
def test_a_lost_answer_is_unknown_whether_or_not_it_was_applied(
    served: Served, kind: FaultKind, applied: bool
) -> None:
    served.plugs.fail_next(kind)
    with pytest.raises(WriteUnknown):
        served.cluster.drain(N7, "x")
    assert served.cluster.fresh_node(N7).draining is applied
    served.plugs.fail_next(kind, WriteVerb.START_SERVICE)
    served.plugs.pull("kill_slurmd", node=N7)
    assert served.nodes.start_service(N7, "slurmd", "e").exit_code is None
    active = served.nodes.service(N7, "slurmd").state is ServiceState.ACTIVE
    assert active is applied


def test_a_late_effect_happens_after_its_delay_and_not_before(served: Served) -> None:
    served.plugs.fail_next(FaultKind.APPLIED_LATER, delay=3 * SECOND)
    with pytest.raises(WriteUnknown):
        served.cluster.drain(N7, "x")
    served.plugs.forward(2 * SECOND)
    assert not served.cluster.fresh_node(N7).draining
    served.plugs.forward(SECOND)
    assert served.cluster.fresh_node(N7).draining


def test_a_rejected_write_changes_nothing_and_is_no_effect(served: Served) -> None:
    served.plugs.fail_next(FaultKind.REJECTED)
    with pytest.raises(Rejected, match="Access/permission denied"):
        served.cluster.drain(N7, "x")
    assert served.plugs.effects() == ()


def test_a_fault_waits_for_its_own_verb(served: Served) -> None:
    served.plugs.fail_next(FaultKind.REJECTED, WriteVerb.RESUME)
    served.cluster.drain(N7, "x")
    with pytest.raises(Rejected):
        served.cluster.resume(N7)


def test_a_foreign_act_falls_exactly_between_look_and_write(served: Served) -> None:
    served.cluster.drain(N7, "nw x")
    served.plugs.at_next_write(When.BEFORE, {"plug": "admin_resume", "node": N7})
    assert served.cluster.fresh_node(N7).draining
    with pytest.raises(Rejected, match="Invalid node state"):
        served.cluster.resume(N7)
    assert [each.verb for each in served.plugs.effects()] == ["drain"]


def test_a_foreign_act_falls_exactly_between_write_and_read_back(served: Served) -> None:
    act: dict[str, object] = {"plug": "edit_reason", "node": N7, "reason": "mine", "by": "dana"}
    served.plugs.at_next_write(When.AFTER, act, verb=WriteVerb.DRAIN)
    served.cluster.drain(N7, "nw x")
    seen = served.cluster.fresh_node(N7)
    assert (seen.reason, seen.reason_by) == ("mine", "dana")
    served.cluster.drain(N7, "again")
    assert served.cluster.fresh_node(N7).reason == "again"


def test_a_reason_that_our_write_replaced_is_still_in_the_history(served: Served) -> None:
    before = served.plugs.now()
    act: dict[str, object] = {"plug": "admin_drain", "node": N7, "reason": "mine", "by": "dana"}
    served.plugs.at_next_write(When.BEFORE, act)
    served.plugs.forward(SECOND)
    served.cluster.drain(N7, "nw x")
    written = served.cluster.written_since(N7, before)
    assert [(each.reason, each.by) for each in written] == [
        ("mine", "dana"),
        ("nw x", "nodewarden"),
    ]
    assert served.cluster.written_since(N7, before + 2 * SECOND) == ()


def test_prepared_faults_and_acts_can_be_dropped(served: Served) -> None:
    served.plugs.fail_next(FaultKind.LOST)
    served.plugs.at_next_write(When.BEFORE, {"plug": "kill_host", "node": N7})
    served.plugs.forget_prepared()
    served.cluster.drain(N7, "x")
    assert served.nodes.reach(N7).reach is Reach.ALIVE


@pytest.mark.parametrize(
    "line",
    [
        b"\n",
        b"{}\n",
        b'{"sort":"read","verb":"nosuch"}\n',
        b'{"sort":"read","verb":"fresh_node"}\n',
        b'{"sort":"plug","verb":"__class__"}\n',
        b'{"sort":"plug","verb":"kill_slurmd","arguments":{"node":"gpu-7","x":1}}\n',
        b'{"sort":"write","verb":"drain","arguments":{"node":"gpu-7"}}\n',
        b'{"sort":"stage","verb":"forward","arguments":{"by":"soon"}}\n',
        b'{"sort":"stage","verb":"forward","arguments":{"by":9e12}}\n',
        b'{"sort":"stage","verb":"forward","arguments":{"by":8e13}}\n',
        b"\xff\xfe\n",
    ],
)
def test_a_request_that_is_not_understood_is_refused_and_the_server_goes_on(
    served: Served, line: bytes
) -> None:
    with socket.socket(socket.AF_UNIX) as caller:
        caller.settimeout(DEADLINE)
        caller.connect(str(served.cluster.line.path))
        caller.sendall(line)
        answer = caller.recv(1 << 16)
    with pytest.raises(ValueError, match=r"."):
        wire.decode_answer(answer)
    assert served.cluster.fresh_node(N7).state == "IDLE"


def test_an_endless_request_is_cut_off(served: Served) -> None:
    with socket.socket(socket.AF_UNIX) as caller:
        caller.settimeout(DEADLINE)
        caller.connect(str(served.cluster.line.path))
        with pytest.raises(OSError, match=r"Broken pipe|reset"):
            caller.sendall(b"x" * (4 * wire.LARGEST_REQUEST))
    assert served.cluster.fresh_node(N7).state == "IDLE"


def test_text_that_is_not_utf_8_survives_readably(served: Served) -> None:
    served.cluster.drain(N7, b"disk \xff\xfe full".decode("utf-8", "surrogateescape"))
    assert served.cluster.fresh_node(N7).reason == "disk \\udcff\\udcfe full"


def test_a_hostile_reason_is_only_text(served: Served) -> None:
    hostile = 'x"; touch F; $(id) `id` <#C1> & – דנה\n{"error": ""}'
    served.cluster.drain(N7, hostile)
    assert served.cluster.snapshot().nodes[N7].reason == hostile


def test_with_a_clock_time_goes_by_and_can_be_moved(socket_path: Path) -> None:
    class Hand:
        wall = datetime(2030, 1, 1, tzinfo=UTC)

        def now(self) -> Instant:
            return Instant(wall=self.wall, monotonic=timedelta(0))

    clock = Hand()
    world = small_world()
    begin = world.state.now
    with SimulationServer(Stage(world, clock), socket_path):
        plugs = Plugs(path=socket_path)
        clock.wall += 40 * SECOND
        assert plugs.now() == begin + 40 * SECOND
        assert plugs.forward(20 * SECOND) == begin + 60 * SECOND
        clock.wall += 1 * SECOND
        assert plugs.now() == begin + 61 * SECOND
