"""Processes that come and go around a world: what was written stays, and nobody holds up another."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from datetime import timedelta
from multiprocessing import get_context
from multiprocessing.context import ForkProcess
from pathlib import Path

import pytest

from actions.contract import Unreadable, WriteUnknown
from actions.simulated.client import Line, SimulatedCluster
from actions.simulated.plugs import Plugs
from actions.simulated.server import SimulationServer
from actions.simulated.stage import Stage
from actions.simulated.wire import Request
from actions.simulated.world import World
from actions.simulated.writes import FaultKind
from config.ids import ClusterName
from config.node_names import NodeName
from tests.actions.simulated.small import N7, N8, SECOND, Served
from tests.patience import DEADLINE

FORK = get_context("fork")


def in_child(work: Callable[[], None]) -> ForkProcess:
    """Run this in a forked process."""
    process = FORK.Process(target=work)
    process.start()
    return process


def ended(child: ForkProcess) -> int | None:
    """Wait for a child; its exit code, or the signal that ended it with a minus."""
    # Not by `waitpid`: whoever starts a further process reaps those that have ended.
    child.join(DEADLINE)
    return child.exitcode


def test_a_write_whose_caller_is_killed_while_it_waits_still_happens(
    world: World, socket_path: Path
) -> None:
    line = Line(path=socket_path, limit=timedelta(seconds=DEADLINE))
    cluster = SimulatedCluster(name=ClusterName("sim"), line=line)
    arrived = threading.Event()

    def watch(moment: str, request: Request, pid: int) -> None:
        if request.verb == "drain":
            arrived.set()

    with SimulationServer(Stage(world), socket_path, watch):
        plugs = Plugs(path=socket_path)
        plugs.fail_next(FaultKind.APPLIED_LATER, delay=3 * SECOND, holds=True)
        child = in_child(lambda: cluster.drain(N7, "x"))
        assert arrived.wait(DEADLINE)
        child.kill()
        assert ended(child) == -signal.SIGKILL
        assert not cluster.fresh_node(N7).draining
        plugs.forward(3 * SECOND)
        assert cluster.fresh_node(N7).draining


def test_a_watch_can_kill_the_caller_before_or_after_its_effect(
    world: World, socket_path: Path
) -> None:
    moments = iter(["before", "after"])
    kill_at = next(moments)
    line = Line(path=socket_path, limit=timedelta(seconds=DEADLINE))
    cluster = SimulatedCluster(name=ClusterName("sim"), line=line)

    def watch(moment: str, request: Request, pid: int) -> None:
        if request.verb == "drain" and moment == kill_at:
            os.kill(pid, signal.SIGKILL)

    with SimulationServer(Stage(world), socket_path, watch):
        for name in (N7, N8):
            child = in_child(lambda name=name: cluster.drain(name, "x"))  # type: ignore[misc]
            assert ended(child) == -signal.SIGKILL
            assert cluster.fresh_node(name).draining
            kill_at = next(moments, "")


def test_a_process_forked_in_the_middle_of_a_call_does_not_hold_its_caller(
    world: World, socket_path: Path
) -> None:
    children: list[ForkProcess] = []
    read, write = os.pipe()

    def stay() -> None:
        os.read(read, 1)

    def watch(moment: str, request: Request, pid: int) -> None:
        if moment == "before":
            children.append(in_child(stay))

    with SimulationServer(Stage(world), socket_path, watch):
        line = Line(path=socket_path, limit=timedelta(seconds=DEADLINE))
        SimulatedCluster(name=ClusterName("sim"), line=line).drain(N7, "x")
        (child,) = children
        assert child.is_alive()
        os.write(write, b"x")
        assert ended(child) == 0
    os.close(read)
    os.close(write)


def test_a_held_caller_gives_up_by_itself(served: Served) -> None:
    served.plugs.fail_next(FaultKind.APPLIED_NO_ANSWER, holds=True)
    hasty = SimulatedCluster(
        name=ClusterName("sim"),
        line=Line(path=served.cluster.line.path, limit=timedelta(seconds=2)),
    )
    with pytest.raises(WriteUnknown, match="timed out"):
        hasty.drain(N7, "x")
    assert served.cluster.fresh_node(N7).draining


def test_a_new_server_at_the_same_path_goes_on_with_the_same_world(
    world: World, socket_path: Path
) -> None:
    cluster = SimulatedCluster(name=ClusterName("sim"), line=Line(path=socket_path))
    with SimulationServer(Stage(world), socket_path):
        cluster.drain(N7, "x")
    with pytest.raises(Unreadable):
        cluster.snapshot()
    with SimulationServer(Stage(world), socket_path):
        assert cluster.fresh_node(N7).draining


def test_many_processes_at_once_each_get_their_own_answer(served: Served) -> None:
    names = [NodeName(f"gpu-{number}") for number in range(1, 9)]

    def look(name: NodeName) -> None:
        for _ in range(20):
            assert served.cluster.fresh_node(name).name == name

    children = [in_child(lambda name=name: look(name)) for name in names]  # type: ignore[misc]
    assert [ended(child) for child in children] == [0] * len(names)


def test_it_runs_as_a_process_of_its_own_and_ends_on_sigterm(socket_path: Path) -> None:
    command = [sys.executable, "-m", "actions.simulated", "--socket", str(socket_path), "--frozen"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert str(socket_path) in process.stdout.readline()
        cluster = SimulatedCluster(name=ClusterName("sim"), line=Line(path=socket_path))
        assert len(cluster.snapshot().nodes) == 80
        process.terminate()
        assert process.wait(DEADLINE) == 0
    assert not socket_path.exists()
