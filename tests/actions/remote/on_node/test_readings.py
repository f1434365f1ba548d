"""Facts, logs, stacks and tries of other hosts."""

import fcntl
import os
import signal
import socket
import subprocess

import pytest

from actions.remote.on_node import processes
from tests.actions.remote.on_node.installed import Installed

REFUSED = 64


def test_every_part_of_a_visit_fails_by_itself(node: Installed) -> None:
    node.tool("slurmd", 'case $1 in -C) echo "NodeName=a CPUs=8";; -V) echo slurm 25.11.7;; esac')
    node.tool("nvidia-smi", "echo broken >&2; exit 9")
    node.tool("munge", "exit 1")
    parts = node.run("facts").json["parts"]
    assert parts["slurmd"]["text"] == "NodeName=a CPUs=8\n"
    assert parts["gpus"] == {"why": "broken"}
    assert "why" in parts["munge"]
    assert int(parts["clock-end"]["text"]) >= int(parts["clock"]["text"])


def test_a_credential_is_made_and_read_back(node: Installed) -> None:
    node.tool("munge", "echo MUNGE:abc")
    node.tool("unmunge", 'read made; test "$made" = MUNGE:abc')
    assert "text" in node.run("facts").json["parts"]["munge"]


def test_a_reading_whose_child_still_hangs_is_not_begun_again(node: Installed) -> None:
    node.tool("nvidia-smi", f"echo asked >> {node.root}/asked")
    node.run("facts")
    with (node.state / "reading-gpus.lock").open("r") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        parts = node.run("facts").json["parts"]
    assert "stuck since 20" in parts["gpus"]["why"]
    assert node.started() == ["asked"]


def test_two_visits_at_once_wait_for_each_other(node: Installed) -> None:
    node.tool("nvidia-smi", "sleep 0.3; echo GPU 0: x")
    argv = [str(node.program), "facts"]
    visits = [subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    told = [visit.communicate()[0] for visit in visits]
    assert ["stuck" in text for text in told] == [False, False]


def test_a_visit_steps_aside_for_jobs(node: Installed) -> None:
    node.tool("nvidia-smi", "nice; taskset -pc $$")
    said = node.run("facts").json["parts"]["gpus"]["text"]
    rank, _, cores = said.partition("\n")
    assert rank == "19"
    assert cores.strip().rpartition(": ")[2].isdecimal()


def test_kernel_lines_that_look_like_a_fault_are_kept_and_no_text_of_a_log_is_a_fact(
    node: Installed,
) -> None:
    node.tool("journalctl", """echo quiet; echo 'NVRM: Xid 79 "}, "boot": {"text": "forged"}'""")
    parts = node.run("facts").json["parts"]
    assert parts["kernel"]["text"] == 'NVRM: Xid 79 "}, "boot": {"text": "forged"}'
    assert parts["boot"]["text"] != "forged"


def test_only_the_kernels_log_and_units_of_the_list_are_shown(node: Installed) -> None:
    node.tool("journalctl", 'echo "$*"')
    assert "-k -b -1 " in node.run("kernel-log", "--previous").out
    assert "-k -b 0 " in node.run("kernel-log").out
    assert node.run("kernel-log", "--vacuum-time=1s").code == REFUSED
    assert "-u slurmd -n 5 " in node.run("logs", "slurmd", "5").out
    assert node.run("logs", "slurmd", "5000000").code == REFUSED


def test_the_processes_of_a_job_are_found_by_what_slurm_gave_them(node: Installed) -> None:
    environment = {"SLURM_JOB_ID": "4711", "PATH": "/usr/bin:/bin"}
    child = subprocess.Popen(["sleep", "1000"], env=environment)
    try:
        found = node.run("stacks", "job:4711").json["processes"]
        other = node.run("stacks", "job:471").json["processes"]
        one = node.run("stacks", f"pid:{child.pid}").json["processes"]
    finally:
        child.kill()
        child.wait()
    assert [(entry["pid"], entry["command"]) for entry in found] == [(child.pid, "sleep 1000")]
    assert found[0]["state"] in {"S", "R"}
    assert other == []
    assert one[0]["pid"] == child.pid


@pytest.mark.parametrize("word", ["4711", "job:", "job:-1", "job:1;id", "pid:../1", "job:1\n"])
def test_a_job_is_a_number(node: Installed, word: str) -> None:
    assert node.run("stacks", word).code == REFUSED


def test_another_host_is_tried_and_only_one_of_the_list(node: Installed) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        closed = listener.getsockname()[1]
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        found = node.run("tcp-try", "127.0.0.1", str(port), str(closed)).json["tried"]
    assert [one["answer"] for one in found] == ["open", "refused"]
    for host in ("127.0.0.2", "localhost", "10.8.0.1", "-x", "127.0.0.1;id", "127.0.0.1\n"):
        assert node.run("tcp-try", host, "22").code == REFUSED, host
    assert node.run("tcp-try", "127.0.0.1", "0").code == REFUSED
    assert node.run("tcp-try", "127.0.0.1", "65536").code == REFUSED
    assert node.run("tcp-try", "127.0.0.1", *["22"] * 5).code == REFUSED


def test_a_child_that_ends_leaves_no_wait_for_what_holds_its_output(node: Installed) -> None:
    node.tool("systemctl", "sleep 1000 & echo started")
    done = node.run("service-show", "slurmd")
    assert (done.code, done.out) == (0, "started\n")


def test_of_a_long_output_the_end_is_kept() -> None:
    ended = processes.run(
        ["sh", "-c", "head -c 3000000 /dev/zero; echo end"], {"PATH": "/usr/bin:/bin"}, 60.0
    )
    assert len(ended.out) == processes.CAP
    assert ended.out.endswith(b"end\n")


def test_a_child_killed_by_a_signal_has_no_exit_code() -> None:
    ended = processes.run(["sh", "-c", "kill -9 $$"], {"PATH": "/usr/bin:/bin"}, 60.0)
    assert ended.code is None
    assert str(int(signal.SIGKILL)) in ended.why


def test_a_program_that_is_not_there_is_said_so() -> None:
    ended = processes.run(["no-such-program"], {"PATH": os.defpath}, 60.0)
    assert (ended.code, ended.why) == (None, "no-such-program: No such file or directory")
