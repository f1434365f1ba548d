"""The simulated cluster as a playground: it runs in a process of its own, with the real clock."""

import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path

from actions.cluster import Job, Node, Snapshot
from actions.contract import Refusal, Rejected, UnknownNode, Unreadable
from actions.shell import Runner, packages
from actions.simulated.client import Line, LostCall
from actions.simulated.plugs import Plugs
from actions.simulated.stage import SNAPSHOT
from actions.simulated.wire import Sort
from bot.sandbox.children import Child
from bot.sandbox.playground import (
    BotSeat,
    JobView,
    NodeView,
    PlugRefused,
    SandboxError,
    View,
    folder_of_tools,
)
from bot.sandbox.waiting import wait_for
from config.node_names import fold

TWELVE = Path(__file__).with_name("twelve.yaml")
SCENES = {"small": str(TWELVE), "demo": "demo"}
"""Scenes that ship; another word is `scale:NODES` or a file."""
WHO = "dana"
"""The simulated person who drains, submits and edits."""
_MINUTE = timedelta(minutes=1)
_ERRORS = (Rejected, Refusal, UnknownNode, Unreadable, ConnectionError, LostCall, ValueError)


class SimulatedPlayground:
    """A simulated cluster, started at once. Raises SandboxError."""

    def __init__(self, runner: Runner, folder: Path, scene: str) -> None:
        """Serve the scene at a socket below the folder."""
        self._socket = folder / "cluster.sock"
        self._socket.unlink(missing_ok=True)
        self._scene = scene
        argv = [sys.executable, "-m", "actions.simulated", "--socket", str(self._socket)]
        argv += ["--scene", SCENES.get(scene, scene)]
        environment = {"PATH": folder_of_tools(), "PYTHONPATH": packages(), "TZ": "UTC"}
        self._child = Child(
            runner, "the simulated cluster", argv, environment, folder / "cluster.log"
        )
        self._plugs = Plugs(path=self._socket)
        try:
            wait_for(self._answers, "the simulated cluster to answer")
            self.cluster = str(self._snapshot().cluster)
        except BaseException:
            self._child.stop()
            raise
        self._last_job = 0

    @property
    def title(self) -> str:
        """What it is."""
        return f"a simulated cluster of {len(self._snapshot().nodes)} nodes"

    @property
    def node_plugs(self) -> Mapping[str, Callable[[str], None]]:
        """What can be done to one node."""
        return {
            "kill slurmd": self.kill_slurmd,
            "start slurmd": partial(self._pull, "start_slurmd"),
            "lose a GPU": self._lose_gpu,
            "all GPUs back": self._all_gpus,
            "a person drains it": partial(
                self._pull, "admin_drain", reason="fan is loud, vendor comes", by=WHO
            ),
            "a person resumes it": partial(self._pull, "admin_resume"),
            "host dies": partial(self._pull, "kill_host"),
            "power on": partial(self._pull, "power_on"),
            "reboot": partial(self._pull, "reboot"),
        }

    @property
    def cluster_plugs(self) -> Mapping[str, Callable[[], None]]:
        """What can be done to the cluster."""
        return {
            "controller down": partial(self._try, "controller_down"),
            "controller up": partial(self._try, "controller_up"),
            "submit a job": self._submit,
            "end the newest job": self._end,
            "clock +1 min": self._minute,
        }

    def view(self) -> View:
        """How it looks now."""
        try:
            snapshot = self._snapshot()
        except _ERRORS as problem:
            return View(trouble=str(problem))
        nodes = tuple(_node(node) for node in snapshot.nodes.values())
        return View(nodes=nodes, jobs=tuple(_job(job) for job in snapshot.jobs))

    def quiet_for(self) -> float:
        """The simulated slurmctld has run for days."""
        return 0.0

    def settings(self) -> Mapping[str, object]:
        """The cluster's section of the configuration."""
        return {
            "kind": "simulated",
            "simulated_socket": str(self._socket),
            "units": ["slurmd", "munge"],
            "protected": "ctl-1",
            "power": {"kind": "simulated"},
        }

    def partitions(self) -> Mapping[str, int]:
        """Partitions by size."""
        return {part.name: len(part.nodes) for part in self._snapshot().partitions}

    def seat(self) -> BotSeat:
        """The bot runs as whoever started the sandbox."""
        return BotSeat(command=(sys.executable,))

    def train(self, nodes: Sequence[str]) -> str:
        """A training job on exactly these nodes."""
        number = int(
            self._plugs.pull(
                "submit_job",
                name="train",
                user="ann",
                partition=self._partition_of(nodes),
                shape=f"{len(nodes)}x8",
                held="JobHeldUser",
            )
        )
        self._plugs.pull("start_job", job=number, nodes=fold(nodes))
        self._last_job = number
        return str(number)

    def progress(self, job: str, node: str) -> int | None:
        """Simulated jobs write no steps."""
        return None

    def kill_slurmd(self, node: str) -> None:
        """`kill -9`."""
        self._pull("kill_slurmd", node)

    def foreign_drain(self, node: str, reason: str) -> None:
        """A person drains a node."""
        self._pull("admin_drain", node, reason=reason, by=WHO)

    def forward(self, by: timedelta) -> None:
        """Let time pass in the simulated world alone."""
        self._plugs.forward(by)

    def stop(self) -> None:
        """End the process."""
        self._child.stop()

    def _answers(self) -> bool:
        self._child.check()
        try:
            self._snapshot()
        except ConnectionError:
            return False
        return True

    def _snapshot(self) -> Snapshot:
        line = Line(path=self._socket, caller="sandbox")
        return SNAPSHOT.validate_json(line.ask(Sort.READ, "snapshot", {}))

    def _pull(self, plug: str, node: str, **more: object) -> None:
        self._try(plug, node=node, **more)

    def _try(self, plug: str, **arguments: object) -> None:
        try:
            self._plugs.pull(plug, **arguments)
        except _ERRORS as problem:
            raise PlugRefused(str(problem)) from problem

    def _gpus(self, node: str) -> int:
        return next(found.gpus for found in self._snapshot().nodes.values() if found.name == node)

    def _lose_gpu(self, node: str) -> None:
        self._pull("shrink_gpus", node, present=max(0, self._gpus(node) - 1))

    def _all_gpus(self, node: str) -> None:
        self._pull("shrink_gpus", node, present=self._gpus(node))

    def _submit(self) -> None:
        first = min(self.partitions())
        self._try("submit_job", name="evaluation", user="ben", partition=first)

    def _end(self) -> None:
        running = [job.slurm_id for job in self._snapshot().jobs if job.state == "RUNNING"]
        if not running:
            raise PlugRefused("no job runs")
        self._try("end_job", job=max(running))

    def _minute(self) -> None:
        self.forward(_MINUTE)

    def _partition_of(self, nodes: Sequence[str]) -> str:
        for part in self._snapshot().partitions:
            if set(nodes) <= set(part.nodes):
                return part.name
        raise SandboxError(f"no partition of scene {self._scene} has all of {fold(nodes)}")


def _node(node: Node) -> NodeView:
    return NodeView(
        name=node.name, words=(node.base.value, *sorted(node.flags)), reason=node.reason
    )


def _job(job: Job) -> JobView:
    return JobView(
        id=job.id,
        name=job.name,
        user=job.user,
        nodes=fold(job.nodes),
        state=job.state,
        restarts=job.restarts,
    )
