"""The testbed itself: start, stop, and who the bot is in it."""

import socket
import threading
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from bot.testbed import layout as layouts
from bot.testbed import preparation, processes, requirements
from bot.testbed.commands import ask, as_user, environment, listens, run, wait_for
from bot.testbed.layout import Layout
from bot.testbed.options import TestbedError, TestbedOptions

_READY_SECONDS = 90.0
_ACCOUNT = "research"


class SlurmTestbed:
    """A real Slurm with virtual nodes below one folder."""

    def __init__(
        self, folder: Path, nodes: int = 12, options: TestbedOptions = TestbedOptions()
    ) -> None:
        self.folder = folder
        self.options = options
        self.bot_user = options.bot_user
        self.nodes = layouts.node_names(nodes)
        first, self._claim = layouts.claim_ports()
        self.layout = Layout(folder=folder, nodes=self.nodes, first_port=first)
        self.slurm_conf = self.layout.slurm_conf
        self.ssh_config = self.layout.ssh_config
        self._environment = environment(self.slurm_conf)

    @staticmethod
    def missing() -> str:
        """One line that says why no testbed can run here, or empty text."""
        return requirements.missing()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start everything; returns when every node is IDLE. On an error nothing stays behind."""
        if why := self.missing():
            raise TestbedError(why)
        try:
            self._start()
        except BaseException:
            self.stop()
            raise

    def _start(self) -> None:
        preparation.ensure_users(self.options)
        preparation.prepare(self.layout, self.options)
        layouts.save(self.layout)
        preparation.make_database(self.layout)
        processes.spawn(self.layout)
        wait_for(self.layout.main_socket.exists, _READY_SECONDS, "the main machine")
        self._start_accounting()
        self._start_controller()
        for node in self.nodes:
            wait_for(self.layout.node_socket(node).exists, _READY_SECONDS, f"{node} to boot")
            ask(self.layout.node_socket(node), "start", "slurmd")
        wait_for(self._all_idle, _READY_SECONDS, "all nodes IDLE")

    def _start_accounting(self) -> None:
        self._service("mariadbd", self.layout.database_port)
        self._service("slurmdbd", self.layout.accounting_port)
        self.run("sacctmgr", "-i", "add", "cluster", self.options.cluster)
        self.run("sacctmgr", "-i", "add", "account", _ACCOUNT)
        users = {
            self.options.bot_user: ["adminlevel=Admin"],
            self.options.admin_user: ["adminlevel=Admin"],
            self.options.job_user: [],
        }
        for user, more in users.items():
            self.run("sacctmgr", "-i", "add", "user", user, f"account={_ACCOUNT}", *more)

    def _start_controller(self) -> None:
        self._service("slurmctld", self.layout.controller_port)
        wait_for(lambda: "UP" in self.run("scontrol", "ping"), _READY_SECONDS, "slurmctld")

    def _service(self, unit: str, port: int) -> None:
        ask(self.layout.main_socket, "start", unit)
        wait_for(lambda: self._listening(unit, port), _READY_SECONDS, f"{unit} to open its port")

    def _listening(self, unit: str, port: int) -> bool:
        """False while it starts; an error as soon as it has ended, without waiting longer."""
        facts = ask(self.layout.main_socket, "show", unit)
        if facts["state"] != "active":
            raise SystemError(f"{unit} ended ({facts['result']}); see {self.layout.logs}")
        return listens(port)

    def _all_idle(self) -> bool:
        shown = self.run("sinfo", "--noheader", "--Node", "--format=%N %T")
        states = dict(line.split() for line in shown.splitlines())
        return states == dict.fromkeys(self.nodes, "idle")

    def stop(self) -> None:
        """End exactly what was started."""
        processes.end(self.layout.process_file)
        self._claim.close()

    def run(self, *argv: str) -> str:
        """Output of a Slurm tool, run as root."""
        return run(argv, self._environment)

    def as_bot(self, argv: Sequence[str]) -> list[str]:
        """The command that runs `argv` as the bot's user with the cluster's SLURM_CONF."""
        return as_user(self.options.bot_user, argv, {"SLURM_CONF": str(self.slurm_conf)})
