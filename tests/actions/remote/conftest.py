"""One sshd for all tests of this folder that need a node."""

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from actions.remote.nodes import RemoteNodes
from actions.remote.settings import RemoteSettings
from actions.shell import Runner
from config.system_clock import SystemClock
from tests.actions.remote.sshd import SSHD, Host, running_sshd
from tests.patience import DEADLINE

COMMANDS = frozenset(
    {
        ("hostname",),
        ("true",),
        ("exit-code",),
        ("endless",),
        ("sleep", "1000"),
        ("not-utf8",),
        ("secret",),
        ("echo", "%hosts;$(id) `id` 'x"),
    }
)


@pytest.fixture(scope="session")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    """A node that can be reached."""
    if os.getuid() != 0 or not os.access(SSHD, os.X_OK):
        pytest.skip("needs root and openssh-server: a real sshd on loopback plays the node")
    with running_sshd(tmp_path_factory.mktemp("node")) as running:
        yield running


@pytest.fixture
def host(sshd: Host) -> Iterator[Host]:
    """The node, with none of the programs that an earlier test put there."""
    yield sshd
    shutil.rmtree(sshd.programs)
    sshd.programs.mkdir()


Connect = Callable[..., RemoteNodes]


@pytest.fixture
def connect() -> Iterator[Connect]:
    """Makes node hands for one ssh configuration and ends their agents after the test."""
    made: list[RemoteNodes] = []

    def nodes(config: Path, *, connected: bool = True, **changes: Any) -> RemoteNodes:
        settings = RemoteSettings(
            ssh_config=config,
            units=frozenset({"slurmd", "munge"}),
            commands=COMMANDS,
            connect_limit=timedelta(seconds=DEADLINE),
            read_limit=timedelta(seconds=DEADLINE),
        )
        hands = RemoteNodes(
            replace(settings, **changes),
            Runner(),
            SystemClock(),
            redact=lambda text: text.replace("hunter2", "[redacted]"),
            connected=lambda: connected,
        )
        made.append(hands)
        return hands

    yield nodes
    for hands in made:
        hands.close()
