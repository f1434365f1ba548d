"""How fast the hands are: one question to many hosts over ssh, and a stuck job back at work.

The recovery runs on a real Slurm with virtual nodes, and needs root; Slurm itself keeps a requeued job
waiting for 120 s (measured, hands 3), so what is beyond that is the bot's share and the job's own end.
"""

import subprocess
import threading
import time
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from actions.remote.nodes import RemoteNodes
from actions.remote.settings import RemoteSettings
from actions.shell import Runner
from bot.testbed import SlurmTestbed
from config.node_access import NodeAccess
from config.node_names import NodeName
from config.system_clock import SystemClock
from runbooks.machine import RunState
from tests.actions.job.test_requeue_on_a_real_slurm import staged
from tests.actions.remote.sshd import running_sshd
from tests.bench.rows import Number
from tests.testbed.fixture import fresh_folder

SLURMS_OWN_WAIT = 120.0
_SINGLY = 20


def fan_out(folder: Path, hosts: int) -> list[Number]:
    """The boot id of many hosts, asked together; beside it one plain ssh after the other."""
    names = tuple(NodeName(f"n{number:03}") for number in range(hosts))
    with TemporaryDirectory(dir=folder) as room, running_sshd(Path(room)) as host:
        config = host.ssh_config("all", dict.fromkeys(names, host.port))
        settings = RemoteSettings(ssh_config=config, access=NodeAccess.PLAIN)
        nodes = RemoteNodes(
            settings, Runner(), SystemClock(), redact=lambda text: text, connected=lambda: True
        )
        try:
            took = _asked(nodes, names)
        finally:
            nodes.close()
        alone = _one_after_the_other(config, names[:_SINGLY]) / _SINGLY * hosts
    return [
        Number(
            name=f"boot ids of {hosts} hosts over ssh, fanned out",
            value=took,
            unit="s",
            baseline=alone,
            under=f"one sshd for all; baseline: one ssh after the other, reckoned from {_SINGLY}",
        )
    ]


def _asked(nodes: RemoteNodes, names: tuple[NodeName, ...]) -> float:
    began = time.monotonic()
    found = nodes.boot_ids(names)
    lost = [name for name in names if not found[name].value]
    assert not lost, f"{len(lost)} hosts gave no boot id: {found[lost[0]].lost}"
    return time.monotonic() - began


def _one_after_the_other(config: Path, names: tuple[NodeName, ...]) -> float:
    began = time.monotonic()
    for name in names:
        argv = ["ssh", "-F", str(config), name, "cat", "/proc/sys/kernel/random/boot_id"]
        subprocess.run(argv, check=True, capture_output=True)
    return time.monotonic() - began


def recovery(folder: Path) -> list[Number]:
    """From a rank in D state to a step of the restarted job past its checkpoint."""
    why = SlurmTestbed.missing() or SlurmTestbed.missing_disks()
    name = "rank in D state to the job past its checkpoint, real Slurm"
    if why:
        print(f"recovery is not measured: {why}")
        return []
    with fresh_folder() as place, SlurmTestbed(place) as testbed:
        _quiet()
        with staged(testbed, folder) as play:
            play.is_stuck()
            began, stood_at = time.monotonic(), play.job.checkpoint()
            done = play.ask()
            assert done.state is RunState.SUCCEEDED, done.why
            testbed.wait_for(
                lambda: any(at.restart == 1 and at.step > stood_at for at in play.job.entries()),
                "a step past the checkpoint",
            )
            took = time.monotonic() - began
    return [
        Number(
            name=name,
            value=took,
            unit="s",
            baseline=SLURMS_OWN_WAIT,
            under="baseline: so long Slurm itself keeps a requeued job waiting",
        )
    ]


def _quiet() -> None:
    """The first minute of a slurmctld, in which the bot does nothing."""
    threading.Event().wait(timedelta(seconds=62).total_seconds())
