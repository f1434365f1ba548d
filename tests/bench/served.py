"""The bot as it ships, in a process of its own, before a simulated cluster and a Slack stand-in."""

import getpass
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bot.standin.records import HOME_TEAM
from bot.standin.server import SlackStandIn

NODES = 240
"""Nodes of the simulated cluster: 24 for each run that is moved on, and the others."""


def interpreter() -> list[str]:
    """Python, as every child is started."""
    return [sys.executable, "-m"]


@contextmanager
def simulated(folder: Path) -> Iterator[Path]:
    """A simulated cluster in a process of its own; its socket."""
    path = folder / "sim.sock"
    child = subprocess.Popen(
        [*interpreter(), "actions.simulated", "--socket", str(path), "--scene", f"scale:{NODES}"],
        stdout=subprocess.DEVNULL,
    )
    try:
        until(path.exists, 30)
        yield path
    finally:
        end(child)


def configuration(folder: Path, slack: SlackStandIn | None) -> Path:
    """The settings of a bot over that cluster, with that workspace."""
    path = folder / "config.yaml"
    door = (
        f"slack: {{bot_token: env:NW_BOT, app_token: env:NW_APP, team: {HOME_TEAM},"
        f" api_url: {slack.base_url}}}\n"
        if slack
        else ""
    )
    person = f"slack: [{HOME_TEAM}/{slack.person('ann').id}], " if slack else ""
    channel = f"    channel: {slack.channel('#ops').id}\n" if slack else ""
    path.write_text(
        f"bot: {{data_folder: {folder}, socket: {folder}/nw.sock}}\n{door}"
        f"clusters:\n  sim:\n    kind: simulated\n    simulated_socket: {folder}/sim.sock\n{channel}"
        f"    pools: {{all: {{partitions: [train], max_out: {NODES}}}}}\n    protected: sim-ctl\n"
        f"people:\n  ann: {{{person}roles: [admin]}}\n"
        f"  desk: {{os_users: [{getpass.getuser()}], roles: [oncall], shared: true}}\n"
        "pages:\n  - {kind: webhook, url: 'http://127.0.0.1:9/'}\n"
    )
    return path


@contextmanager
def bot(config: Path, slack: SlackStandIn | None = None) -> Iterator["subprocess.Popen[bytes]"]:
    """`nodewarden serve`."""
    tokens = {"NW_BOT": slack.bot_token, "NW_APP": slack.app_token} if slack else {}
    child = subprocess.Popen(
        [*interpreter(), "bot.cli", "serve", "--config", str(config)],
        env={**os.environ, **tokens},
    )
    try:
        yield child
    finally:
        end(child)


def end(child: "subprocess.Popen[bytes]") -> None:
    """As an operator would, and by force if that takes too long."""
    child.send_signal(signal.SIGTERM)
    try:
        child.wait(30)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


def until(fact: Callable[[], object], within: float, pause: float = 0.01) -> None:
    """Wait for it."""
    limit = time.monotonic() + within
    while not fact():
        if time.monotonic() > limit:
            raise TimeoutError(f"not so within {within:.0f} s: {fact}")
        time.sleep(pause)


def resident(pid: int) -> float:
    """Megabytes that this process has in memory now."""
    return _status(pid, "VmRSS")


def most_resident(pid: int) -> float:
    """Megabytes that it had at most."""
    return _status(pid, "VmHWM")


def _status(pid: int, key: str) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{key}:"):
            return int(line.split()[1]) / 1024
    raise LookupError(key)
