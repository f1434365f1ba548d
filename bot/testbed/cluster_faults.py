"""Foreign acts and faults of the whole cluster: an admin at work, the controller gone."""

import signal

from bot.testbed import network
from bot.testbed.commands import ask
from bot.testbed.core import Core
from bot.testbed.layout import BACKUP


class ClusterFaults(Core):
    """An admin's drains, partitions and reservations; slurmctld and slurmdbd down and up."""

    def as_admin(self, *argv: str) -> str:
        """Output of a tool run by a person with AdminLevel=Admin who is not the bot."""
        return self.run_as(self.options.admin_user, *argv)

    def admin_drain(self, node: str, reason: str) -> None:
        """A person's drain."""
        self.as_admin("scontrol", "update", f"NodeName={node}", "State=DRAIN", f"Reason={reason}")

    def admin_resume(self, node: str) -> None:
        """A person's resume."""
        self.as_admin("scontrol", "update", f"NodeName={node}", "State=RESUME")

    def set_partition(self, name: str, **fields: str) -> None:
        """`scontrol update PartitionName=...`, as in `set_partition("train", State="DOWN")`."""
        words = [f"{field}={value}" for field, value in fields.items()]
        self.as_admin("scontrol", "update", f"PartitionName={name}", *words)

    def reserve(
        self, name: str, nodes: str, *, user: str = "root", flags: str = "", minutes: int = 60
    ) -> None:
        """A reservation made by a person, starting now."""
        words = [
            f"ReservationName={name}",
            f"Nodes={nodes}",
            f"Users={user}",
            "StartTime=now",
            f"Duration={minutes}",
        ]
        if flags:
            words.append(f"Flags={flags}")
        self.as_admin("scontrol", "create", *words)

    def delete_reservation(self, name: str) -> None:
        """The way back from `reserve`."""
        self.as_admin("scontrol", "delete", f"ReservationName={name}")

    def stop_controller(self) -> None:
        """SIGTERM: slurmctld saves its state and ends."""
        ask(self.layout.main_socket, "stop", "slurmctld")

    def kill_controller(self) -> None:
        """SIGKILL: what was not saved yet is forgotten, jobs and drains of the last 5 s among it."""
        ask(self.layout.main_socket, "signal", "slurmctld", signal.SIGKILL)
        self.wait_for(lambda: not self.controller_runs(), "slurmctld to die")

    def forget_since(self, saved: bytes) -> None:
        """Kill slurmctld and start it with the nodes as they were saved then, as if it had died before
        it came to save what was written since.
        """
        self.kill_controller()
        for name in ("node_state", "node_state.old"):
            (self.folder / "slurmctld" / name).write_bytes(saved)
        self.start_controller()

    def saved_nodes(self) -> bytes:
        """The nodes as slurmctld last saved them; for `forget_since`."""
        return (self.folder / "slurmctld" / "node_state").read_bytes()

    def start_controller(self) -> None:
        """Returns when it answers."""
        self.start_service("slurmctld", self.layout.controller_port)
        self.wait_for(lambda: self._controls("primary"), "slurmctld to answer")

    def start_backup(self) -> None:
        """The second slurmctld; returns when it stands by, or takes over where it is alone."""
        ask(self.layout.node_socket(BACKUP), "start", "slurmctld")
        self.wait_for(lambda: self._controls("backup"), "the second slurmctld to answer")

    def kill_backup(self) -> None:
        """SIGKILL to the second slurmctld. `start_backup` is the way back."""
        ask(self.layout.node_socket(BACKUP), "signal", "slurmctld", signal.SIGKILL)
        self.wait_for(lambda: not self._controls("backup"), "the second slurmctld to die")

    def fail_over(self, *, forgetful: bool = True) -> None:
        """The first slurmctld ends; returns when the second, which noticed by itself, rules.

        Forgetful: it is killed, and what it had not saved yet is lost, a started job among it.
        """
        if forgetful:
            self.kill_controller()
        else:
            self.stop_controller()
        self.wait_for(lambda: self.run("sinfo", "--noheader"), "the second slurmctld to rule")

    def fail_back(self) -> None:
        """The way back: the first takes over from the second, which stands by again."""
        self.start_controller()
        self.wait_for(lambda: self._controls("backup"), "the second slurmctld to stand by")

    def _controls(self, part: str) -> bool:
        """Whether the controller of this part answers: primary or backup."""
        lines = self.run("scontrol", "ping").splitlines()
        return any(line.startswith(f"Slurmctld({part})") and "UP" in line for line in lines)

    def controller_runs(self) -> bool:
        """Whether the process is there."""
        return bool(ask(self.layout.main_socket, "show", "slurmctld")["state"] == "active")

    def stop_accounting(self) -> None:
        """slurmdbd ends; slurmctld goes on and queues its records."""
        ask(self.layout.main_socket, "stop", "slurmdbd")

    def start_accounting(self) -> None:
        """Returns when slurmdbd takes connections."""
        self.start_service("slurmdbd", self.layout.accounting_port)

    def start_service(self, unit: str, port: int) -> None:
        """Start one of the main machine's services; returns when its port is open."""
        ask(self.layout.main_socket, "start", unit)
        self.wait_for(lambda: self._listens(unit, port), f"{unit} to open its port")

    def _listens(self, unit: str, port: int) -> bool:
        """False while it starts; a service that has ended is an error without further waiting."""
        facts = ask(self.layout.main_socket, "show", unit)
        if facts["state"] != "active":
            raise RuntimeError(f"{unit} ended ({facts['result']}); see {self.layout.logs}")
        return network.listens(network.process_of(self.layout.main_socket), port)
