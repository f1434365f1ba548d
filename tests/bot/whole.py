"""A whole bot without Slack, in this process, on the simulated cluster: what its desk says."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path

from actions.catalogue import Ground
from actions.hands import Page, PageReceipt
from actions.shell import Runner
from actions.simulated.scenes import demo
from actions.simulated.server import SimulationServer
from actions.simulated.stage import Stage
from bot.desk import Request
from bot.phrases import parse
from bot.replies import Reply
from bot.wiring import Bot, open_bot
from config.actors import Door, Identity
from config.load import load
from config.redaction import Redactor
from config.secret_store import SecretStore
from config.system_clock import SystemClock

PEOPLE = {"ann": "oncall", "bob": "oncall", "adm": "admin"}


class Pages:
    """Accepts every page and keeps it."""

    def __init__(self) -> None:
        self.sent: list[Page] = []

    def send(self, page: Page, *, deadline: timedelta) -> tuple[PageReceipt, ...]:
        self.sent.append(page)
        return (PageReceipt(backend="desk", accepted=True, detail="ok"),)


class Whole:
    """The bot, its pages and the people who speak with it."""

    def __init__(self, bot: Bot, pages: Pages) -> None:
        self.bot = bot
        self.pages = pages

    def says(self, name: str, text: str) -> Reply:
        """What somebody is told at the command line."""
        actor = self.bot.identities.at_door(Identity(door="os", subject=name))
        return self.bot.desk.submit(Request(actor=actor, door=Door.CLI, command=parse(text)))

    def told(self, name: str, text: str) -> str:
        """The same, its lines."""
        return "\n".join(self.says(name, text).lines)


@contextmanager
def whole(folder: Path, more: str = "") -> Iterator[Whole]:
    """Opened, the cluster read once, not started: its worker moves nothing by itself."""
    with ExitStack() as stack:
        stage = Stage(demo(SystemClock().now().wall), SystemClock())
        stack.enter_context(SimulationServer(stage, folder / "sim.sock"))
        config = folder / "config.yaml"
        config.write_text(_settings(folder) + more)
        pages, redactor = Pages(), Redactor()
        ground = Ground(
            clock=SystemClock(),
            redactor=redactor,
            runner=Runner(redactor.text),
            secrets=SecretStore({}),
            pause=lambda _: None,
            os_user="nobody",
        )
        bot = open_bot(load([config]), ground, pages)
        stack.callback(bot.close)
        bot.inventory.refresh()
        yield Whole(bot, pages)


def _settings(folder: Path) -> str:
    people = "\n".join(
        f"  {name}: {{os_users: [{name}], roles: [{role}]}}" for name, role in PEOPLE.items()
    )
    return f"""
bot: {{data_folder: {folder}/data}}
clusters:
  sim:
    kind: simulated
    simulated_socket: {folder}/sim.sock
    pools: {{all: {{nodes: "gpu-[001-080]", max_out: 40}}}}
    protected: sim-ctl
people:
{people}
pages:
  - {{kind: alertmanager, url: "http://127.0.0.1:9"}}
"""
