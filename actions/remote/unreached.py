"""Nodes of a site that configured no way to reach them: every question is "not asked"."""

from collections.abc import Mapping, Sequence
from datetime import timedelta

from actions.contract import Refusal, Unreadable
from actions.node_readings import FileTail, Folder, PortTried, StackedThread
from actions.remote_values import (
    BootId,
    CommandResult,
    HostFacts,
    Reach,
    Reachability,
    Service,
    ServiceState,
)
from config.node_names import NodeName

_WHY = "this cluster has no ssh_config in the settings, so no node of it is asked"


class UnreachedNodes:
    """`NodeHands` and `NodeReadings` that have no hands."""

    def reach(self, node: NodeName) -> Reachability:
        """No finding."""
        return Reachability(reach=Reach.NOT_ASKED, evidence=_WHY)

    def host_facts(self, node: NodeName) -> HostFacts:
        """Raises Unreadable."""
        raise Unreadable(_WHY)

    def boot_ids(self, nodes: Sequence[NodeName]) -> Mapping[NodeName, BootId]:
        """Unknown, each of them."""
        return {node: BootId(lost=_WHY) for node in nodes}

    def service(self, node: NodeName, unit: str) -> Service:
        """Unknown."""
        return Service(unit=unit, state=ServiceState.UNKNOWN, detail=_WHY)

    def start_service(self, node: NodeName, unit: str, effect_id: str) -> CommandResult:
        """Lost before it began."""
        return CommandResult(exit_code=None, lost=_WHY)

    def restart_service(self, node: NodeName, unit: str, effect_id: str) -> CommandResult:
        """Lost before it began."""
        return CommandResult(exit_code=None, lost=_WHY)

    def kernel_log(self, node: NodeName, previous_boot: bool) -> CommandResult:
        """Lost before it began."""
        return CommandResult(exit_code=None, lost=_WHY)

    def run(
        self, nodes: Sequence[NodeName], command: Sequence[str], time_limit: timedelta
    ) -> Mapping[NodeName, CommandResult]:
        """Lost before it began."""
        return {node: CommandResult(exit_code=None, lost=_WHY) for node in nodes}

    def file_tail(self, node: NodeName, user: str, path: str, most: int) -> FileTail:
        """Raises Refusal."""
        raise Refusal(_WHY)

    def file_list(self, node: NodeName, user: str, folder: str, pattern: str) -> Folder:
        """Raises Refusal."""
        raise Refusal(_WHY)

    def stacks(self, node: NodeName, job: int) -> tuple[StackedThread, ...]:
        """Raises Refusal."""
        raise Refusal(_WHY)

    def unit_log(self, node: NodeName, unit: str, lines: int) -> CommandResult:
        """Lost before it began."""
        return CommandResult(exit_code=None, lost=_WHY)

    def tcp_try(self, node: NodeName, host: str, ports: Sequence[int]) -> tuple[PortTried, ...]:
        """Raises Refusal."""
        raise Refusal(_WHY)
