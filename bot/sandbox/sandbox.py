"""The sandbox as one object: a playground, the stand-in for Slack with its panels, and the bot.

Used by `bot.cli_sandbox` and the tests as a context manager; whatever way it is left, everything
that it started has ended.
"""

import contextlib
import secrets
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from actions.shell import NotStarted, Runner, packages
from bot.local_client import BotAway, talk
from bot.local_wire import Ask
from bot.sandbox import configuration
from bot.sandbox.children import Child
from bot.sandbox.configuration import Places
from bot.sandbox.panels import Board
from bot.sandbox.playground import BotSeat, Playground, SandboxError, folder_of_tools
from bot.sandbox.simulated import SimulatedPlayground
from bot.sandbox.slurm import SlurmPlayground
from bot.sandbox.waiting import wait_for
from bot.standin.server import SlackStandIn
from bot.testbed import SlurmTestbed, TestbedError
from config.system_clock import SystemClock


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxOptions:
    """What was asked for on the command line."""

    slurm: bool = False
    """A real Slurm; the caller has made sure that there can be one."""
    scene: str = "demo"
    """Of the simulated cluster."""
    port: int = 0
    """Of the page; 0 is any free one."""
    folder: Path | None = None
    """Where state stays afterwards; None is a temporary folder that is taken away."""


class Sandbox:
    """Everything, running."""

    playground: Playground
    slack: SlackStandIn

    def __init__(self, options: SandboxOptions) -> None:
        """Starts nothing yet."""
        self._options = options
        self._ends = contextlib.ExitStack()

    def __enter__(self) -> Self:
        """Start a cluster and the stand-in; the bot begins with `start_bot`. Raises SandboxError."""
        try:
            self._start()
        except BaseException as problem:
            self._ends.close()
            if isinstance(problem, TestbedError | OSError | NotStarted):
                raise SandboxError(str(problem)) from problem
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End everything, in the opposite order."""
        self._ends.close()

    @property
    def url(self) -> str:
        """The page."""
        return self.slack.url

    @property
    def places(self) -> Places:
        """The bot's folder."""
        return Places(folder=self._folder / "bot")

    @property
    def bot_log(self) -> Path:
        """What the bot prints."""
        return self._folder / "bot.log"

    def _start(self) -> None:
        self._folder = self._make_folder()
        self._runner = Runner()
        self.playground = self._make_playground()
        self._ends.callback(self.playground.stop)
        board = Board(self.playground)
        self.slack = SlackStandIn(
            SystemClock(), extra_panels=board.panels(), port=self._options.port
        ).start()
        self._ends.callback(self.slack.stop)
        board.start()
        self._ends.callback(board.stop)
        configuration.populate(self.slack)

    def start_bot(self) -> None:
        """Start the bot and wait until both of its doors are open. Raises SandboxError."""
        places, seat = self.places, self.playground.seat()
        _own_folder(places.folder, seat)
        places.file.write_text(
            configuration.text(self.playground, self.slack, places), encoding="utf-8"
        )
        argv = [*seat.command, "-m", "bot.cli", "serve", "--config", str(places.file)]
        bot = Child(self._runner, "the bot", argv, self._environment(), self.bot_log)
        self._ends.callback(bot.stop)
        wait_for(lambda: self._is_open(bot), "the bot to open its doors")

    def ask(self, *words: str) -> Mapping[str, Any]:
        """The bot's answer to a command of the command line. Raises SandboxError."""
        ask = Ask(words=words, key=f"sandbox-{secrets.token_hex(8)}", follow=False)
        try:
            answer = next(iter(talk(self.places.socket, ask)))
        except BotAway as away:
            raise SandboxError(str(away)) from away
        reply: Mapping[str, Any] = answer["reply"]
        return reply

    def _is_open(self, bot: Child) -> bool:
        bot.check()
        return self.places.socket.exists() and bool(self.slack.sockets.connections)

    def _environment(self) -> dict[str, str]:
        return {
            "PATH": folder_of_tools(),
            "PYTHONPATH": packages(),
            "LC_ALL": "C.UTF-8",
            "TZ": "UTC",
            **configuration.environment(self.slack),
        }

    def _make_folder(self) -> Path:
        wanted = self._options.folder
        if wanted is not None:
            wanted.mkdir(parents=True, exist_ok=True)
            return wanted.resolve()
        folder = Path(tempfile.mkdtemp(prefix="nodewarden-"))
        self._ends.callback(shutil.rmtree, folder, ignore_errors=True)
        folder.chmod(0o711)  # the bot of a real Slurm is another user, and must pass to its own
        return folder

    def _make_playground(self) -> Playground:
        if self._options.slurm:
            return SlurmPlayground(SlurmTestbed(self._folder / "slurm"))
        return SimulatedPlayground(self._runner, self._folder, self._options.scene)


def _own_folder(folder: Path, seat: BotSeat) -> None:
    """The folder of the bot's user; nobody else's program reads the database."""
    folder.mkdir(exist_ok=True)
    if seat.owner is not None:
        shutil.chown(folder, seat.owner)
