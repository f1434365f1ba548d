"""One request asks many simulated hosts, and each answers for itself."""

from pathlib import Path

from actions.remote_values import BootId
from actions.simulated.client import Line, SimulatedNodes
from actions.simulated.server import SimulationServer
from actions.simulated.stage import Stage
from actions.simulated.wire import Request
from actions.simulated.world import World
from config.node_names import NodeName
from tests.actions.simulated.small import N7, Served

N1, GONE = NodeName("gpu-1"), NodeName("gpu-999")


def test_all_boots_come_in_one_request(world: World, socket_path: Path) -> None:
    asked: list[str] = []

    def watch(moment: str, request: Request, _pid: int) -> None:
        asked.append(f"{moment} {request.verb}")

    with SimulationServer(Stage(world), socket_path, watch):
        found = SimulatedNodes(line=Line(path=socket_path)).boot_ids((N1, N7))
    assert asked == ["before boot_ids", "after boot_ids"]
    assert found == {node: BootId(value=world.host_facts(node).boot_id) for node in (N1, N7)}


def test_a_host_that_is_silent_or_unknown_says_so_and_keeps_nobody_from_answering(
    served: Served,
) -> None:
    served.plugs.pull("cut_off", node=N7)
    found = served.nodes.boot_ids((N1, N7, GONE))
    assert found[N1].value == served.nodes.host_facts(N1).boot_id
    assert (found[N7].value, found[GONE].value) == ("", "")
    assert "Connection timed out" in found[N7].lost
    assert GONE in found[GONE].lost


def test_without_an_answer_no_host_has_a_boot(socket_path: Path) -> None:
    found = SimulatedNodes(line=Line(path=socket_path)).boot_ids((N1, N7))
    assert [boot.value for boot in found.values()] == ["", ""]
    assert all("nobody listens" in boot.lost for boot in found.values())
