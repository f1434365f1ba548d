"""Faults of one virtual node. Each is real: a signal, a file of the node, a key, a reboot."""

import signal
from typing import Any

from bot.testbed import configuration, disks, network
from bot.testbed.commands import ask, write
from bot.testbed.core import Core
from bot.testbed.preparation import keygen, write_known_hosts


class NodeFaults(Core):
    """What can go wrong on a node, and the way back."""

    def unit(self, node: str, name: str = "slurmd") -> dict[str, Any]:
        """What process 1 of the node says about slurmd or sshd: state, sub, pid, result."""
        return ask(self.layout.node_socket(node), "show", name)

    def kill_slurmd(self, node: str) -> None:
        """SIGKILL; its running steps live on. Returns when the unit is failed."""
        ask(self.layout.node_socket(node), "signal", "slurmd", signal.SIGKILL)
        self.wait_for(lambda: self.unit(node)["state"] == "failed", f"slurmd of {node} to die")

    def hang_slurmd(self, node: str) -> None:
        """SIGSTOP: the unit is active and does not answer. `kill_slurmd` or `wake_slurmd` ends."""
        ask(self.layout.node_socket(node), "signal", "slurmd", signal.SIGSTOP)

    def wake_slurmd(self, node: str) -> None:
        """SIGCONT after `hang_slurmd`."""
        ask(self.layout.node_socket(node), "signal", "slurmd", signal.SIGCONT)

    def stop_slurmd(self, node: str) -> None:
        """As `systemctl stop slurmd`: inactive, not failed."""
        ask(self.layout.node_socket(node), "stop", "slurmd")

    def start_slurmd(self, node: str) -> None:
        """As `systemctl start slurmd`, without waiting for the registration."""
        ask(self.layout.node_socket(node), "start", "slurmd")

    def shrink_gres(self, node: str, gpus: int = 7) -> None:
        """Fewer GPUs than configured, and a slurmd that says so. Returns at INVALID_REG."""
        self._gres(node, gpus)
        self.wait_for(lambda: "INVALID_REG" in self.node_states(node), f"INVALID_REG of {node}")

    def restore_gres(self, node: str) -> None:
        """All GPUs again. A drain that Slurm set meanwhile stays, as in real life."""
        self._gres(node, self.options.gpus)
        self.wait_for(lambda: "INVALID_REG" not in self.node_states(node), f"{node} to be valid")

    def gpus_late(self, node: str, gpus: int = 7) -> None:
        """slurmd registered before the driver was there; the node itself sees all GPUs by now.

        A restart of slurmd ends it. Returns at INVALID_REG.
        """
        self.shrink_gres(node, gpus)
        home = self.layout.node_folder(node)
        write(home / "gres.conf", configuration.gres_conf(self.layout, self.options.gpus))
        self.set_gpus_seen(node, self.options.gpus)

    def _gres(self, node: str, gpus: int) -> None:
        home = self.layout.node_folder(node)
        write(home / "gres.conf", configuration.gres_conf(self.layout, gpus))
        self.set_gpus_seen(node, gpus)
        ask(self.layout.node_socket(node), "restart", "slurmd")

    def set_gpus_seen(self, node: str, gpus: int) -> None:
        """How many `nvidia-smi -L` lists; 0 is a driver that does not answer."""
        write(self.layout.node_folder(node) / "gpus", configuration.gpu_list(gpus))

    def set_memory_seen(self, node: str, mib: int = configuration.NODE_MEMORY_MIB) -> None:
        """What `slurmd -C` finds; the default is all that is configured."""
        write(self.layout.node_folder(node) / "hardware", configuration.hardware(node, mib))

    def stop_sshd(self, node: str) -> None:
        """Connections are refused; the node itself lives."""
        ask(self.layout.node_socket(node), "stop", "sshd")
        self.wait_for(lambda: not self._ssh_is_open(node), f"sshd of {node} to close")

    def start_sshd(self, node: str) -> None:
        """Connections are taken again, with the present key and configuration."""
        ask(self.layout.node_socket(node), "start", "sshd")
        self.wait_for(lambda: self._ssh_is_open(node), f"sshd of {node} to listen")

    def _ssh_is_open(self, node: str) -> bool:
        process = network.process_of(self.layout.node_socket(node))
        return network.listens(process, self.layout.ssh_port)

    def hang_sshd(self, node: str) -> None:
        """SIGSTOP: TCP connects, no banner comes, clients time out."""
        ask(self.layout.node_socket(node), "signal", "sshd", signal.SIGSTOP)

    def wake_sshd(self, node: str) -> None:
        """SIGCONT after `hang_sshd`."""
        ask(self.layout.node_socket(node), "signal", "sshd", signal.SIGCONT)

    def hang_shell(self, node: str) -> None:
        """Login works and the command never answers. `restore_sshd` ends it."""
        self._sshd(node, "ForceCommand sleep infinity\n")

    def refuse_key(self, node: str) -> None:
        """The bot's key is not accepted. `restore_sshd` ends it."""
        self._sshd(node, "RevokedKeys " + str(self.layout.identity.with_suffix(".pub")) + "\n")

    def restore_sshd(self, node: str) -> None:
        """The configuration of the first start; the host key stays as it is."""
        self._sshd(node, "")

    def _sshd(self, node: str, more: str) -> None:
        text = configuration.sshd_config(self.layout, node, self.options)
        write(self.layout.node_folder(node) / "sshd_config", text + more)
        self.stop_sshd(node)
        self.start_sshd(node)

    def change_host_key(self, node: str) -> None:
        """A new host key, unknown to the client until `trust_host_keys`."""
        keygen(self.layout.node_folder(node) / "host_key", "root")
        self.stop_sshd(node)
        self.start_sshd(node)

    def trust_host_keys(self) -> None:
        """The client's known hosts become the present keys of all nodes."""
        write_known_hosts(self.layout)

    def reboot(self, node: str) -> None:
        """Everything on the node ends; new boot id, kernel log moved on, `slurmd -b`."""
        ask(self.layout.node_socket(node), "reboot")
        disks.thaw(self.layout, node)

    def power(self, node: str) -> str:
        """`on` or `off`, as the node's BMC would know it."""
        return str(ask(self.layout.node_socket(node), "power")["power"])

    def power_off(self, node: str) -> None:
        """Everything on the node ends, as at a loss of power; nothing answers."""
        ask(self.layout.node_socket(node), "power_off")
        disks.thaw(self.layout, node)  # what waited for it is killed by now, and ends

    def power_on(self, node: str) -> None:
        """A boot after `power_off`, at least 2 s after it; nothing on a node that has power."""
        ask(self.layout.node_socket(node), "power_on")

    def boot_id(self, node: str) -> str:
        """What /proc/sys/kernel/random/boot_id says on the node."""
        return (self.layout.node_folder(node) / "boot_id").read_text(encoding="ascii").strip()

    def write_kernel_log(self, node: str, text: str, *, previous_boot: bool = False) -> None:
        """Replace what `journalctl -k` prints of this boot or of the one before."""
        name = "kernel-previous.log" if previous_boot else "kernel.log"
        write(self.layout.node_folder(node) / name, text)
