"""A real Slurm with twelve virtual nodes as a playground; see `bot.testbed` for how it is made."""

import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial

from bot.sandbox.playground import BotSeat, JobView, NodeView, PlugRefused, View
from bot.testbed import SlurmTestbed, TestbedError
from bot.testbed.jobs import TrainingJob

QUIET_AFTER_START = timedelta(seconds=60)
"""No bot of ours acts in this time: a controller that has just started does not know its nodes yet."""
_BOOT_TIME = re.compile(r"^BOOT_TIME\s*= (\S+)$", re.MULTILINE)
_NODE = re.compile(r"NodeName=(\S+).*? State=(\S+)(?:.*? Reason=(.*?) \[[^\[\]]*@[^\[\]]*\])?")


class SlurmPlayground:
    """A testbed, started at once. Raises TestbedError."""

    def __init__(self, testbed: SlurmTestbed) -> None:
        """Start it; it is ended by `stop`."""
        self._testbed = testbed
        self._testbed.start()
        self._jobs: dict[str, TrainingJob] = {}

    @staticmethod
    def missing() -> str:
        """Why there can be none on this machine; empty when there can."""
        return SlurmTestbed.missing()

    @property
    def title(self) -> str:
        """What it is."""
        version = self._testbed.run("scontrol", "--version").strip()
        return f"a real {version} with {len(self._testbed.nodes)} virtual nodes"

    @property
    def cluster(self) -> str:
        """Slurm's ClusterName."""
        return self._testbed.options.cluster

    @property
    def node_plugs(self) -> Mapping[str, Callable[[str], None]]:
        """What can be done to one node."""
        bed = self._testbed
        verbs: dict[str, Callable[[str], None]] = {
            "kill slurmd": bed.kill_slurmd,
            "start slurmd": bed.start_slurmd,
            "lose a GPU": bed.shrink_gres,
            "all GPUs back": bed.restore_gres,
            "a person drains it": partial(self.foreign_drain, reason="fan is loud, vendor comes"),
            "a person resumes it": bed.admin_resume,
            "host dies": bed.power_off,
            "power on": bed.power_on,
            "reboot": bed.reboot,
        }
        return {words: partial(_pull, verb) for words, verb in verbs.items()}

    @property
    def cluster_plugs(self) -> Mapping[str, Callable[[], None]]:
        """What can be done to the cluster."""
        bed = self._testbed
        verbs: dict[str, Callable[[], None]] = {
            "controller down": bed.stop_controller,
            "controller up": bed.start_controller,
            "submit a job": self._submit,
            "end the newest job": self._end,
        }
        return {words: partial(_pull, verb) for words, verb in verbs.items()}

    def view(self) -> View:
        """How it looks now."""
        try:
            nodes = self._testbed.run("scontrol", "--oneliner", "--all", "show", "node")
            return View(nodes=nodes_in(nodes), jobs=self._job_views())
        except TestbedError as problem:
            return View(trouble=str(problem))

    def quiet_for(self) -> float:
        """What is left of slurmctld's first minute."""
        found = _BOOT_TIME.search(self._testbed.run("scontrol", "show", "config"))
        booted = datetime.fromisoformat(f"{found[1]}+00:00") if found else datetime.now(UTC)
        left = booted + QUIET_AFTER_START - datetime.now(UTC)
        return max(0.0, left.total_seconds())

    def settings(self) -> Mapping[str, object]:
        """The cluster's section of the configuration."""
        place = self._testbed.layout
        return {
            "kind": "slurm",
            "slurm_conf": str(self._testbed.slurm_conf),
            "ssh_config": str(self._testbed.ssh_config),
            "units": ["slurmd"],
            "protected": "ctl-1",
            "reference_hosts": [f"{place.controller_address}:{place.controller_port}"],
        }

    def partitions(self) -> Mapping[str, int]:
        """Partitions by size."""
        shown = self._testbed.run("sinfo", "--noheader", "--all", "--format=%R %D")
        sizes: dict[str, int] = {}
        for name, count in (line.split() for line in shown.splitlines()):
            sizes[name] = sizes.get(name, 0) + int(count)
        return sizes

    def seat(self) -> BotSeat:
        """An ordinary user with AdminLevel=Admin."""
        # The kernel forgets the wish to die with the parent at a change of user: wished again.
        again = ["setpriv", "--pdeathsig", "KILL", "--"]
        command = self._testbed.as_bot([*again, *self._testbed.bot_python()])
        return BotSeat(command=tuple(command), owner=self._testbed.bot_user)

    def train(self, nodes: Sequence[str]) -> str:
        """A training job on exactly these nodes; returns when each has written a step."""
        job = self._testbed.train(nodes)
        self._jobs[str(job.id)] = job
        return str(job.id)

    def progress(self, job: str, node: str) -> int | None:
        """The last step in the job's journal."""
        found = self._jobs.get(job)
        steps = found.steps(node) if found else ()
        return steps[-1].number if steps else None

    def kill_slurmd(self, node: str) -> None:
        """`kill -9`; the unit is failed afterwards."""
        self._testbed.kill_slurmd(node)

    def foreign_drain(self, node: str, reason: str) -> None:
        """Another admin drains a node."""
        self._testbed.admin_drain(node, reason)

    def stop(self) -> None:
        """End Slurm and all its nodes, and take its files away."""
        self._testbed.stop()
        shutil.rmtree(self._testbed.folder, ignore_errors=True)

    def _submit(self) -> None:
        script = "#!/bin/sh\nsleep 3600\n"
        self._testbed.submit(script, "--job-name=evaluation", "--gres=gpu:h100:8")

    def _end(self) -> None:
        running = [job for job in self._job_views() if job.state == "RUNNING"]
        if not running:
            raise TestbedError("no job runs")
        self._testbed.run("scancel", max((job.id for job in running), key=int))

    def _job_views(self) -> tuple[JobView, ...]:
        argv = ("squeue", "--noheader", "--all", "--format=%i|%u|%N|%T|%j")
        lines = self._testbed.run(*argv).splitlines()
        return tuple(self._job(*line.split("|", 4)) for line in lines)

    def _job(self, number: str, user: str, nodes: str, state: str, name: str) -> JobView:
        restarts = self._testbed.job(int(number)).get("Restarts", "0") if number.isdigit() else "0"
        return JobView(
            id=number, name=name, user=user, nodes=nodes, state=state, restarts=int(restarts)
        )


def _pull(verb: Callable[..., None], *node: str) -> None:
    try:
        verb(*node)
    except (TestbedError, OSError) as problem:
        raise PlugRefused(str(problem)) from problem


def nodes_in(text: str) -> tuple[NodeView, ...]:
    """The nodes in the one-line output of `scontrol show node`; `*` is NOT_RESPONDING."""
    found = []
    for line in text.splitlines():
        match = _NODE.match(line)
        if match:
            words = match[2].replace("*", "+NOT_RESPONDING").split("+")
            found.append(NodeView(name=match[1], words=tuple(words), reason=match[3] or ""))
    return tuple(found)
