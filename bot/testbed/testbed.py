"""The testbed as a whole: start and stop. See the package's docstring for its shape."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

from bot.testbed import disks, layout, network, preparation, processes, requirements
from bot.testbed.cluster_faults import ClusterFaults
from bot.testbed.commands import ask
from bot.testbed.link_faults import LinkFaults
from bot.testbed.node_faults import NodeFaults
from bot.testbed.options import TestbedError
from bot.testbed.resource_faults import ResourceFaults
from bot.testbed.training import Training

_ACCOUNT = "research"


class SlurmTestbed(NodeFaults, LinkFaults, ResourceFaults, ClusterFaults, Training):
    """A real Slurm with virtual nodes below one folder; a context manager.

    The folder must not exist yet, its path must be short (Unix sockets lie below it), and other
    users must be able to pass through it.
    """

    @staticmethod
    def missing() -> str:
        """One line that says why no testbed can run here, or empty text."""
        return requirements.missing()

    @staticmethod
    def stop_folder(folder: Path) -> None:
        """End the testbed of this folder from any process, also after a crash of its starter."""
        disks.thaw_all(folder)
        processes.end(layout.process_file(folder))

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
        try:
            if why := self.missing():
                raise TestbedError(why)
            preparation.make_folder(self.folder)
        except TestbedError:
            self._claim.close()  # the folder may hold another testbed: it is not stopped
            raise
        try:
            self._start()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End exactly what was started; returns when no process of it is left."""
        self.stop_folder(self.folder)
        self._claim.close()

    def _start(self) -> None:
        preparation.ensure_users(self.options)
        preparation.prepare_folders(self.layout, self.options)
        with ThreadPoolExecutor() as pool:
            database = pool.submit(preparation.make_database, self.layout)
            preparation.prepare_files(self.layout, self.options)
            processes.spawn(self.layout)
            self.wait_for(partial(_answers, self.layout.main_socket), "the main machine")
            network.connect_host(self.layout)
            for name in self.layout.machines:
                self.wait_for(partial(_answers, self.layout.node_socket(name)), f"{name} to boot")
            network.connect_machines(self.layout)
            database.result()
        self._start_accounting()
        self.start_controller()
        if self.layout.backup:
            self.start_backup()
        for node in self.nodes:
            ask(self.layout.node_socket(node), "start", "sshd")
            self.start_slurmd(node)
        self.wait_for(self._all_idle, "all nodes IDLE")

    def _start_accounting(self) -> None:
        self.start_service("mariadbd", self.layout.database_port)
        self.start_accounting()
        options, account = self.options, f"account={_ACCOUNT}"
        self._book("add", "cluster", options.cluster)
        self._book("add", "account", _ACCOUNT)
        self._book("add", "user", options.admin_user, account, "adminlevel=Admin")
        self._book("add", "user", options.bot_user, account, f"adminlevel={options.bot_level}")
        self._book("add", "user", options.job_user, account)
        if options.preemption:
            self._book("add", "qos", "high", "priority=1000", "preempt=normal")
            self._book("modify", "user", options.job_user, "set", "qos+=high")

    def _book(self, *words: str) -> None:
        self.run("sacctmgr", "-i", *words)

    def _all_idle(self) -> bool:
        shown = self.run("sinfo", "--noheader", "--Node", "--format=%N %T")
        states = dict(line.split() for line in shown.splitlines())
        return states == dict.fromkeys(self.nodes, "idle")


def _answers(control: Path) -> bool:
    """A socket's file exists a moment before it takes connections."""
    return bool(network.process_of(control))
