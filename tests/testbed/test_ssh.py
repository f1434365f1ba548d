"""A command over ssh to a node sees that node, and each way to be unreachable is a real one."""

import subprocess

import pytest

from bot.testbed import SlurmTestbed

pytestmark = pytest.mark.slurm

_ROOT = "sudo -n /usr/local/sbin/nodewarden-helper"


def _ssh(testbed: SlurmTestbed, node: str, command: str) -> subprocess.CompletedProcess[str]:
    argv = ["ssh", "-F", str(testbed.ssh_config), "-o", "ConnectTimeout=2", node, command]
    return subprocess.run(testbed.as_bot(argv), capture_output=True, text=True, check=False)


def _says(testbed: SlurmTestbed, node: str, command: str) -> str:
    done = _ssh(testbed, node, command)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def _properties(testbed: SlurmTestbed, node: str, names: str) -> dict[str, str]:
    shown = _says(testbed, node, f"systemctl show -p {names} slurmd")
    pairs = (line.partition("=") for line in shown.splitlines())
    return {name: value for name, _, value in pairs}


def test_each_node_answers_with_its_own_boot_id_and_name(slurm_testbed: SlurmTestbed) -> None:
    answer = _says(slurm_testbed, "gpu-03", "cat /proc/sys/kernel/random/boot_id; hostname")
    other = _says(slurm_testbed, "gpu-04", "cat /proc/sys/kernel/random/boot_id")

    assert answer.split() == [slurm_testbed.boot_id("gpu-03"), "gpu-03"]
    assert other.strip() == slurm_testbed.boot_id("gpu-04") != slurm_testbed.boot_id("gpu-03")


def test_the_session_on_a_node_is_not_root(slurm_testbed: SlurmTestbed) -> None:
    assert _says(slurm_testbed, "gpu-03", "id -un").strip() == slurm_testbed.bot_user


def test_systemctl_shows_the_real_slurmd(slurm_testbed: SlurmTestbed) -> None:
    names = "ActiveState,SubState,MainPID,KillMode,Delegate,Result,ActiveEnterTimestamp"
    shown = _properties(slurm_testbed, "gpu-03", names)
    command = _says(slurm_testbed, "gpu-03", f"cat /proc/{shown['MainPID']}/cmdline")

    assert command.split("\0")[:4] == ["/usr/sbin/slurmd", "-D", "-N", "gpu-03"]
    assert (shown["ActiveState"], shown["SubState"]) == ("active", "running")
    assert (shown["KillMode"], shown["Delegate"], shown["Result"]) == ("process", "yes", "success")
    assert shown["ActiveEnterTimestamp"].endswith(" UTC")


def test_the_bot_starts_a_dead_slurmd_by_sudo_and_in_no_other_way(
    slurm_testbed: SlurmTestbed,
) -> None:
    slurm_testbed.kill_slurmd("gpu-05")
    denied = _ssh(slurm_testbed, "gpu-05", "systemctl start slurmd")
    other = _ssh(slurm_testbed, "gpu-05", "sudo -n systemctl start slurmd")
    dead = _properties(slurm_testbed, "gpu-05", "ActiveState,Result,InactiveEnterTimestamp,MainPID")
    _says(slurm_testbed, "gpu-05", f"{_ROOT} service-start slurmd nw-test-start-1")
    alive = _properties(slurm_testbed, "gpu-05", "ActiveState,MainPID")

    assert denied.stderr == "Failed to start slurmd.service: Access denied\n"
    assert (other.returncode, other.stderr) == (1, "sudo: a password is required\n")
    assert (dead["ActiveState"], dead["Result"], dead["MainPID"]) == ("failed", "signal", "0")
    assert dead["InactiveEnterTimestamp"].endswith(" UTC")
    assert alive["ActiveState"] == "active"
    assert alive["MainPID"] != "0"


def test_a_restart_gives_slurmd_a_new_process(slurm_testbed: SlurmTestbed) -> None:
    before = _properties(slurm_testbed, "gpu-06", "MainPID")
    _says(slurm_testbed, "gpu-06", f"{_ROOT} service-restart slurmd nw-test-restart-1")

    assert _properties(slurm_testbed, "gpu-06", "MainPID") != before
    assert _says(slurm_testbed, "gpu-06", "systemctl is-active slurmd") == "active\n"


def test_only_slurmd_may_be_touched(slurm_testbed: SlurmTestbed) -> None:
    denied = _ssh(slurm_testbed, "gpu-06", f"{_ROOT} service-restart sshd nw-test-sshd-1")
    unknown = _ssh(slurm_testbed, "gpu-06", "systemctl is-active nginx")

    assert denied.returncode == 64
    assert "unit sshd is not in the list" in denied.stderr
    assert (unknown.returncode, unknown.stdout) == (3, "inactive\n")


def test_a_process_of_the_job_user_may_not_stop_slurmd(slurm_testbed: SlurmTestbed) -> None:
    script = "#!/bin/sh\nsystemctl stop slurmd; echo code $?\n"
    number = slurm_testbed.submit(script, "--nodelist=gpu-11", "--partition=spare")
    slurm_testbed.wait_for_job(number, "COMPLETED")

    output = (slurm_testbed.layout.jobs / f"{number}.out").read_text()
    assert output == "Failed to stop slurmd.service: Access denied\ncode 4\n"


def test_hardware_tools_read_the_nodes_own_files(slurm_testbed: SlurmTestbed) -> None:
    slurm_testbed.set_gpus_seen("gpu-07", 7)
    slurm_testbed.write_kernel_log("gpu-07", "mce: hardware error\n", previous_boot=True)
    listed = _says(slurm_testbed, "gpu-07", "nvidia-smi -L")
    slurm_testbed.set_gpus_seen("gpu-07", 8)

    assert len(listed.splitlines()) == 7
    assert len(_says(slurm_testbed, "gpu-08", "nvidia-smi -L").splitlines()) == 8
    log = _says(slurm_testbed, "gpu-07", "journalctl -k -b -1 --no-pager")
    assert log == "mce: hardware error\n"
    assert _ssh(slurm_testbed, "gpu-08", "journalctl -k -b -1 --no-pager").returncode == 1


def test_a_node_has_the_hardware_that_it_is_configured_with(slurm_testbed: SlurmTestbed) -> None:
    configured = slurm_testbed.node("gpu-07")
    sound = _says(slurm_testbed, "gpu-07", "slurmd -C")
    slurm_testbed.set_memory_seen("gpu-07", 256_000)
    less = _says(slurm_testbed, "gpu-07", "slurmd -C")
    slurm_testbed.set_memory_seen("gpu-07")

    assert sound.startswith(f"NodeName=gpu-07 CPUs={configured['CPUTot']} ")
    assert f" RealMemory={configured['RealMemory']}\n" in sound
    assert " RealMemory=256000\n" in less
    assert _says(slurm_testbed, "gpu-07", "slurmd -V").split()[1] == configured["Version"]


def test_a_stopped_sshd_refuses(slurm_testbed: SlurmTestbed) -> None:
    slurm_testbed.stop_sshd("gpu-08")
    refused = _ssh(slurm_testbed, "gpu-08", "true")
    slurm_testbed.start_sshd("gpu-08")

    assert refused.returncode == 255
    assert "Connection refused" in refused.stderr
    assert _ssh(slurm_testbed, "gpu-08", "true").returncode == 0


def test_a_changed_host_key_is_not_trusted(slurm_testbed: SlurmTestbed) -> None:
    slurm_testbed.change_host_key("gpu-08")
    changed = _ssh(slurm_testbed, "gpu-08", "true")
    slurm_testbed.trust_host_keys()

    assert changed.returncode == 255
    assert "REMOTE HOST IDENTIFICATION HAS CHANGED" in changed.stderr
    assert _ssh(slurm_testbed, "gpu-08", "true").returncode == 0


def test_a_refused_key_is_an_authentication_failure(slurm_testbed: SlurmTestbed) -> None:
    slurm_testbed.refuse_key("gpu-08")
    refused = _ssh(slurm_testbed, "gpu-08", "true")
    slurm_testbed.restore_sshd("gpu-08")

    assert "Permission denied (publickey)" in refused.stderr
    assert _ssh(slurm_testbed, "gpu-08", "true").returncode == 0


def test_a_hung_sshd_times_out(slurm_testbed: SlurmTestbed) -> None:
    slurm_testbed.hang_sshd("gpu-08")
    hung = _ssh(slurm_testbed, "gpu-08", "true")
    slurm_testbed.wake_sshd("gpu-08")

    assert "timed out" in hung.stderr
    assert _ssh(slurm_testbed, "gpu-08", "true").returncode == 0
