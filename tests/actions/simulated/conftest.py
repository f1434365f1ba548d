"""Small worlds, and one behind its socket."""

import tempfile
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from actions.simulated.client import Line, SimulatedCluster, SimulatedNodes
from actions.simulated.plugs import Plugs
from actions.simulated.server import SimulationServer
from actions.simulated.stage import Stage
from actions.simulated.world import World
from config.ids import ClusterName
from tests.actions.simulated.small import Served, small_world
from tests.patience import DEADLINE


@pytest.fixture
def world() -> World:
    return small_world()


@pytest.fixture
def socket_path() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="nws-") as folder:
        yield Path(folder) / "s"


@pytest.fixture
def served(world: World, socket_path: Path) -> Iterator[Served]:
    line = Line(path=socket_path, limit=timedelta(seconds=DEADLINE))
    with SimulationServer(Stage(world), socket_path):
        yield Served(
            cluster=SimulatedCluster(name=ClusterName("sim"), line=line),
            nodes=SimulatedNodes(line=line),
            plugs=Plugs(path=socket_path),
        )
