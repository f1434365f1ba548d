"""A whole bot on the simulated cluster, its Slack door, and a workspace for it to stand in."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from actions.catalogue import Ground
from actions.hands import Page, PageReceipt
from actions.shell import Runner
from actions.simulated.plugs import Plugs
from actions.simulated.scenes import demo
from actions.simulated.server import SimulationServer
from actions.simulated.stage import Stage
from audit_log.records import EventKind, Record
from bot.desk import Request
from bot.phrases import parse
from bot.replies import Reply
from bot.slack.connection import Watch
from bot.slack.door import SlackDoor
from bot.slack.keeper import Pace
from bot.slack.mention import SlackMentions
from bot.standin.records import HOME_TEAM
from bot.standin.server import SlackStandIn
from bot.wiring import Bot, open_bot
from config.actors import Door, Identity
from config.load import load
from config.redaction import Redactor
from config.secret_store import SecretStore
from config.system_clock import SystemClock
from tests import patience
from tests.bot.lenient import LENIENT, unhurried
from tests.patience import DEADLINE

QUICK = Pace(look=0.05, update=0.15, crowded=0.3, first_pause=0.1, longest_pause=0.5)
PATIENT = Watch(look=0.05, greeting=DEADLINE, silence=2 * DEADLINE)
PEOPLE = {"ann": "oncall", "bob": "oncall", "vic": "viewer", "adm": "admin"}


class NoPager:
    """Pages are another test's matter."""

    def send(self, page: Page, *, deadline: timedelta) -> tuple[PageReceipt, ...]:
        """Accept it."""
        return (PageReceipt(backend="none", accepted=True, detail="ok"),)


class Site:
    """One cluster, one workspace, and a bot that can be stopped and started between them."""

    def __init__(self, folder: Path, slack: SlackStandIn) -> None:
        self.slack = slack
        self.folder = folder
        self.plugs = Plugs(path=folder / "sim.sock")
        self.mentions = SlackMentions()
        self.settings_text = ""
        self._bot: Bot | None = None
        self._door: SlackDoor | None = None
        self.pace = QUICK
        self.watch = PATIENT
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    @property
    def bot(self) -> Bot:
        assert self._bot is not None
        return self._bot

    @property
    def door(self) -> SlackDoor:
        assert self._door is not None
        return self._door

    def start(self, *, connected: bool = True) -> None:
        """Open the bot and its Slack door."""
        config = self.folder / "config.yaml"
        config.write_text(self.settings_text)
        self._bot = open_bot(load([config]), self._ground(), NoPager())
        self._bot.start()
        self._door = self._do(self._open)
        if connected:
            self.slack.wait_for_bot()
            self.until(lambda: self.door.connected)

    async def _open(self) -> SlackDoor:
        door = SlackDoor(self.bot, self._ground(), self.mentions, self.pace, self.watch)
        await door.open()
        return door

    def _ground(self) -> Ground:
        redactor = Redactor()
        environment = {"BOT": self.slack.bot_token, "APP": self.slack.app_token}
        return Ground(
            clock=SystemClock(),
            redactor=redactor,
            runner=Runner(redactor.text),
            secrets=SecretStore(environment),
            pause=lambda _: None,
            os_user="nobody",
        )

    def stop(self) -> None:
        """Close both, as a signal would."""
        if self._door is not None:
            door, self._door = self._door, None
            self._do(door.close)
        if self._bot is not None:
            bot, self._bot = self._bot, None
            bot.close()

    def until(self, fact: Callable[[], object]) -> None:
        """Wait for a fact about the bot; Slack's own facts have `slack.wait_until`."""
        patience.until(fact)

    def end(self) -> None:
        self.stop()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(DEADLINE)
        self._loop.close()

    def _do(self, work: Callable[[], Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work(), self._loop).result(DEADLINE)

    def at_the_shell(self, name: str, text: str) -> Reply:
        """The same person at the command line."""
        actor = self.bot.identities.at_door(Identity(door="os", subject=name))
        return self.bot.desk.submit(Request(actor=actor, door=Door.CLI, command=parse(text)))

    def records(self, *kinds: EventKind) -> list[Record]:
        return [record for record in self.bot.parts.ledger.records() if record.event.kind in kinds]

    def runs(self) -> list[str]:
        return [
            row[0]
            for row in self.bot.parts.ledger.query("SELECT id FROM runs WHERE parent IS NULL")
        ]

    def state(self, run: str) -> str:
        return str(self.bot.parts.ledger.query("SELECT state FROM runs WHERE id = ?", (run,))[0][0])


@pytest.fixture
def slack() -> Iterator[SlackStandIn]:
    """A workspace with the configured people, a stranger to the bot, and a channel."""
    with SlackStandIn(SystemClock(), strictness=LENIENT) as stand_in:
        for name in (*PEOPLE, "eve"):
            stand_in.person(name)
        stand_in.channel("#ops")
        yield stand_in


@pytest.fixture
def cold(tmp_path: Path, slack: SlackStandIn) -> Iterator[Site]:
    """A site whose bot is not started yet."""
    folder = tmp_path / "s"
    folder.mkdir()
    with ExitStack() as stack:
        stack.enter_context(unhurried())
        stage = Stage(demo(SystemClock().now().wall), SystemClock())
        stack.enter_context(SimulationServer(stage, folder / "sim.sock"))
        site = Site(folder, slack)
        site.settings_text = settings(folder, slack)
        stack.callback(site.end)
        yield site


@pytest.fixture
def site(cold: Site) -> Site:
    """A site whose bot is connected."""
    cold.start()
    return cold


def settings(folder: Path, slack: SlackStandIn) -> str:
    people = "\n".join(
        f"  {name}: {{slack: [{HOME_TEAM}/{slack.person(name).id}], os_users: [{name}], roles: [{role}]}}"
        for name, role in PEOPLE.items()
    )
    return f"""
bot: {{data_folder: {folder}/data}}
slack:
  bot_token: env:BOT
  app_token: env:APP
  team: {HOME_TEAM}
  api_url: {slack.base_url}
clusters:
  sim:
    kind: simulated
    simulated_socket: {folder}/sim.sock
    channel: {slack.channel("#ops").id}
    pools:
      train: {{partitions: [train], max_out: 10%}}
      short: {{nodes: "gpu-[069-076]", max_out: 50%}}
    protected: sim-ctl
people:
{people}
pages:
  - {{kind: alertmanager, url: "http://127.0.0.1:9"}}
"""
