"""Makes the recordings `22.05-*`: `python tests/recordings/record.py`, as root, with Slurm's packages.

Starts a testbed, brings it into states that only a real Slurm can show, and keeps what its tools
answered to the program's own questions, asked as users who are not root. What stands in
`expected.yaml` was read by a person from these answers.
"""

import json
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from actions.contract import Unreadable
from actions.shell import Command, CommandFinished
from actions.slurm.tools import SlurmSettings, Tools
from bot.testbed import SlurmTestbed, commands, network
from bot.testbed.options import TestbedError, TestbedOptions
from config.ids import ClusterName
from config.node_names import NodeName

HERE = Path(__file__).parent
SLEEP = "#!/bin/sh\nsleep 3600\n"
LIMIT = timedelta(seconds=30)
BACKUP = "backup"
MORE = """
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SlurmctldTimeout=10
PartitionName=urgent Nodes=gpu-[11-12] PriorityTier=10 MaxTime=1-0
PartitionName=secret Nodes=gpu-[09-10] Hidden=YES MaxTime=1-0
"""


class Recorder:
    """Asks as one user and keeps each answer, with this machine's own names replaced."""

    def __init__(self, testbed: SlurmTestbed, user: str) -> None:
        self._testbed = testbed
        self._user = user
        self.answers: list[dict[str, object]] = []

    def run(self, command: Command) -> CommandFinished:
        words = self._testbed.as_user(self._user, command.argv)
        pid = main_process(self._testbed)
        done = subprocess.run(
            ["nsenter", f"--net=/proc/{pid}/ns/net", "--", *words],
            capture_output=True,
            env=commands.environment(self._testbed.slurm_conf),
            cwd="/",
            check=False,
        )
        out, errors = (self._plain(text) for text in (done.stdout, done.stderr))
        answer = {"argv": list(command.argv), "exit": done.returncode}
        self.answers.append(answer | {"stdout": out.split("\n"), "stderr": errors.split("\n")})
        return CommandFinished(exit_code=done.returncode, stdout=out, stderr=errors)

    def _plain(self, text: bytes) -> str:
        plain = text.decode("utf-8", errors="backslashreplace")
        return plain.replace(str(self._testbed.folder), "/srv/slurm")


def main_process(testbed: SlurmTestbed) -> int:
    """Process 1 of the machine on which the controller runs."""
    return network.process_of(testbed.layout.main_socket)


def keep(testbed: SlurmTestbed, name: str, user: str, ask: Callable[[Tools], None]) -> None:
    """One recording."""
    recorder = Recorder(testbed, user)
    settings = SlurmSettings(
        cluster=ClusterName(testbed.options.cluster),
        slurm_conf=str(testbed.slurm_conf),
        own_user=user,
    )
    try:
        ask(Tools(settings, recorder))
    except Unreadable as error:
        print(f"{name}: {error}")
    recorder.run(Command(argv=("scontrol", "ping"), time_limit=LIMIT))
    told = {"user": user, "at": datetime.now(UTC).replace(microsecond=0).isoformat()}
    folder = HERE / f"22.05-{name}"
    folder.mkdir(exist_ok=True)
    text = json.dumps(told | {"answers": recorder.answers}, indent=0, ensure_ascii=False)
    (folder / "answers.json").write_text(text + "\n")
    print(name, len(text))


def whole(tools: Tools) -> None:
    """What a snapshot asks, jobs in both forms, and the jobs of the suspended one's node."""
    tools.controller()
    tools.nodes()
    tools.jobs()
    tools.partitions()
    tools.reservations(datetime.now(UTC))
    tools.jobs_on(NodeName("gpu-04"))


def in_rows(tools: Tools) -> None:
    """The same without the long JSON list of jobs."""
    tools.without_json.add("jobs")
    whole(tools)


def crowd(testbed: SlurmTestbed) -> None:
    """The scene."""
    submit = testbed.submit
    busy = submit(SLEEP, "--job-name=llama-70b", "--nodelist=gpu-[01-02]", "-N2", "--gres=gpu:8",
                  "--comment=ckpt=/ckpt/llama/last", "--exclude=gpu-09")  # fmt: skip
    suspended = submit(SLEEP, "--job-name=paused", "--nodelist=gpu-04", "--gres=gpu:h100:2")
    loser = submit(SLEEP, "--job-name=loser", "--nodelist=gpu-11", "--exclusive", "-p", "spare")
    victim = submit(SLEEP, "--job-name=victim", "--nodelist=gpu-12", "--exclusive", "--no-requeue",
                    "-p", "spare")  # fmt: skip
    rebooting = submit(SLEEP, "--job-name=on-06", "--nodelist=gpu-06")
    hidden = submit(SLEEP, "--job-name=x JobState=COMPLETED NodeList=gpu-99", "-p", "secret")
    for job in (busy, suspended, loser, victim, rebooting, hidden):
        wait_for(testbed, job, "RUNNING")
    testbed.as_admin("scontrol", "suspend", str(suspended))
    for node in ("gpu-11", "gpu-12"):
        urgent = submit(SLEEP, "--job-name=urgent", f"--nodelist={node}", "--exclusive", "-p",
                        "urgent")  # fmt: skip
        wait_for(testbed, urgent, "RUNNING")
    array = submit(SLEEP, "--job-name=sweep", "--array=0-9%2", "--gres=gpu:1", "-w", "gpu-03")
    submit(SLEEP, "--job-name=late", "--array=4,6,8-12:2%1", "--hold", "--exclude=gpu-[01-02]")
    testbed.run_as(
        testbed.options.job_user, "sbatch", "--output=/dev/null", "-J", "pair", "-p", "short",
        "-w", "gpu-07", "--gres=gpu:1", ":", "-w", "gpu-08", "--gres=gpu:2", "-p", "short",
        script(testbed),
    )  # fmt: skip
    testbed.admin_drain("gpu-05", "RMA 4711: who=ann State=IDLE")
    testbed.reserve("held", "gpu-05", user="root", flags="MAINT,IGNORE_JOBS")
    testbed.reserve("ours", "gpu-10", user=testbed.options.job_user, flags="IGNORE_JOBS")
    submit(SLEEP, "--job-name=wants-05", "--nodelist=gpu-05", "--gres=gpu:8")
    submit(
        SLEEP, "--job-name=in-ours", "--reservation=ours", "-p", "short", "--dependency=afterok:1"
    )
    testbed.as_admin("scontrol", "reboot", "gpu-06")
    send(testbed, "gpu-10", signal.SIGSTOP)  # else it would answer again at once
    testbed.as_admin("scontrol", "reboot", "gpu-10")
    testbed.wait_for(lambda: "REBOOT_ISSUED" in testbed.node_states("gpu-10"), "the reboot")
    wait_for(testbed, array, "RUNNING")


def send(testbed: SlurmTestbed, node: str, number: signal.Signals) -> None:
    """A signal to this node's slurmd."""
    commands.ask(testbed.layout.node_socket(node), "signal", "slurmd", number)


def wait_for(testbed: SlurmTestbed, job: int, state: str) -> None:
    """Until some record of this job is in this state; squeue prints no name that could pose as one."""
    ask = ("squeue", "--all", "--noheader", f"--jobs={job}", "--format=%T")
    testbed.wait_for(lambda: state in testbed.run(*ask).split(), f"job {job} to be {state}")


def script(testbed: SlurmTestbed) -> str:
    """A batch script that sleeps."""
    path = testbed.layout.jobs / "sleep.sh"
    path.write_text(SLEEP)
    path.chmod(0o755)
    return str(path)


def change(testbed: SlurmTestbed, *pairs: tuple[str, str], more: str = "") -> None:
    """Another slurm.conf, with which the controller starts anew."""
    text = testbed.slurm_conf.read_text()
    for old, new in pairs:
        assert old in text, old
        text = text.replace(old, new)
    testbed.slurm_conf.write_text(text + more)
    testbed.stop_controller()
    testbed.wait_for(lambda: not testbed.controller_runs(), "slurmctld to end")
    testbed.start_controller()


def take_over(testbed: SlurmTestbed) -> None:
    """A second controller on an address of its own; then the first is killed."""
    first = next(
        line for line in testbed.slurm_conf.read_text().split("\n") if "SlurmctldHost" in line
    )
    change(testbed, (first, f"{first}\nSlurmctldHost={BACKUP}(127.0.0.2)"))
    pid_file, own = testbed.folder / "slurmctld" / "slurmctld.pid", testbed.folder / "backup.pid"
    own.touch()
    hosts = testbed.folder / "backup.hosts"
    hosts.write_text(f"127.0.0.2 {BACKUP}\n" + Path("/etc/hosts").read_text())
    shutil.chown(own, "slurm")
    start = (
        f"hostname {BACKUP} && mount --bind {own} {pid_file} && "
        f"mount --bind {hosts} /etc/hosts && exec setpriv --reuid=slurm "
        f"--regid=slurm --init-groups slurmctld -D -f {testbed.slurm_conf}"
    )
    net = f"--net=/proc/{main_process(testbed)}/ns/net"
    backup = subprocess.Popen(
        ["nsenter", net, "--", "unshare", "--uts", "--mount", "sh", "-c", start],
        env=commands.environment(testbed.slurm_conf),
    )
    try:
        testbed.wait_for(lambda: testbed.run("scontrol", "ping").count("UP") == 2, "the backup")
        keep(testbed, "before", testbed.bot_user, controller_only)
        testbed.kill_controller()
        testbed.wait_for(lambda: "BOOT_TIME" in testbed.run("scontrol", "show", "config"), "backup")
        keep(testbed, "backup", testbed.bot_user, in_rows)
    finally:
        backup.terminate()
        backup.wait()


def controller_only(tools: Tools) -> None:
    """What the controller says of itself."""
    tools.controller()


def record(folder: Path) -> None:
    """All of them, one after the other on one testbed."""
    with SlurmTestbed(folder, options=TestbedOptions(cluster="mini")) as testbed:
        stays = (f"RebootProgram={testbed.layout.tools}/reboot-node", "RebootProgram=/bin/true")
        change(testbed, stays, more=MORE)
        testbed.wait_for(testbed._all_idle, "all nodes IDLE")
        crowd(testbed)
        keep(testbed, "crowd", testbed.bot_user, whole)
        keep(testbed, "stranger", "nobody", in_rows)
        change(testbed, more="PrivateData=jobs,reservations\n")
        keep(testbed, "private", "nobody", in_rows)
        take_over(testbed)
        keep(testbed, "down", testbed.bot_user, in_rows)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="nwrec-") as parent:
        Path(parent).chmod(0o755)
        try:
            record(Path(parent) / "t")
        except TestbedError as error:
            sys.exit(str(error))
