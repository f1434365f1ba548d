"""A bot with its Slack door and its socket, whose commands are typed by the people of the matrix."""

import codecs
import contextlib
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

from actions.simulated.server import SimulationServer
from actions.simulated.stage import Stage
from audit_log.records import Event, EventKind
from bot.desk import Request
from bot.local_door import LocalDoor
from bot.phrases import parse
from bot.replies import Reply
from bot.standalone import run_standalone
from bot.standin.server import SlackStandIn
from config.actors import Door, Identity
from config.policy import Autonomy, Limits
from config.system_clock import SystemClock
from runbooks import rails
from runbooks.machine import RunState
from runbooks.plan import Plan
from runbooks.rails import Needed, PlanGate
from tests.bot.lenient import LENIENT, unhurried
from tests.bot.slack.conftest import Site
from tests.matrix.people import BOSS, PEOPLE, STRANGER, UIDS, cluster, configuration
from tests.matrix.shells import Shell, prepare


class Spot(Site):
    """A site that also listens at its socket."""

    local: LocalDoor

    @property
    def socket(self) -> Path:
        """Where the command line finds the bot."""
        assert self.bot.settings.bot.socket is not None
        return self.bot.settings.bot.socket

    def open_without_slack(self) -> None:
        """Start while Slack does not answer."""
        self.open(connected=False)

    def open(self, *, connected: bool = True) -> None:
        """Start everything."""
        self.start(connected=connected)
        self.local = LocalDoor(self.socket, self.bot.desk, self.bot.identities, self.bot.answers)
        self.local.start()

    def shut(self) -> None:
        """Stop everything."""
        self.local.stop()
        self.stop()

    def boss(self, text: str) -> Reply:
        """What the one who prepares says, at the desk itself."""
        return self.at_the_shell(BOSS, text)

    def rested(self, run: str) -> RunState:
        """The state of a run once nothing goes on by itself."""
        self.until(lambda: not RunState(self.state(run)).acts)
        return RunState(self.state(run))

    def tidy(self) -> None:
        """End what is open, so that the next cell sees a quiet cluster."""
        for run in self.open_runs():
            if not self.rested(run).final:
                self.boss(f"abort {run} tidy")
            self.until(lambda run=run: RunState(self.state(run)).final)  # type: ignore[misc]

    def open_runs(self) -> list[str]:
        """Runs that have not ended."""
        rows = self.bot.parts.ledger.query("SELECT id FROM runs WHERE open = 1 AND parent IS NULL")
        return [str(row[0]) for row in rows]

    def denials(self) -> list[Event]:
        """Every refusal for want of a right; the gate's minute is over for those that were counted."""
        self.bot.gate.close()
        return [record.event for record in self.records(EventKind.REQUEST_DENIED)]


def drains_ask(
    plan: Plan, autonomy: Autonomy, limits: Limits, asks: bool = False, lacks: str = ""
) -> Needed:
    """As it ships, but every drain needs one other person, as one does that ends a job."""
    if any(step.action.startswith(("node.drain@", "node.return@")) for step in plan.steps):
        return Needed(gate=PlanGate.APPROVE, persons=1, why="1 job would end")
    return rails.needed(plan, autonomy, limits, asks, lacks)


@contextmanager
def ground() -> Iterator[tuple[Path, dict[str, Shell]]]:
    """A folder that every user may enter, a shell for everybody, and the cluster."""
    folder = Path(tempfile.mkdtemp(prefix="matrix"))
    folder.chmod(0o755)
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        stack.enter_context(patch("runbooks.engine.needed", drains_ask))
        _load_everything(folder)
        shells = {name: Shell(uid) for name, uid in UIDS.items()}
        for shell in shells.values():
            stack.callback(shell.close)
        server = SimulationServer(Stage(cluster(), SystemClock()), folder / "sim.sock")
        stack.enter_context(server)
        (folder / "sim.sock").chmod(0o666)
        yield folder, shells


def _load_everything(folder: Path) -> None:
    """Have all modules in memory before the shells are forked: their users may not read Python's."""
    codecs.lookup("unicode_escape")
    config = folder / "first.yaml"
    config.write_text(configuration(folder, folder / "first"), "utf-8")
    with SimulationServer(Stage(cluster(), SystemClock()), folder / "sim.sock"):
        prepare(config, ["drain gpu-001 x", "node gpu-002", "audit export", "audit verify"])
        with contextlib.redirect_stdout(None), contextlib.redirect_stderr(None):
            run_standalone([config], ("doctor",), as_json=False)


@contextmanager
def spot(folder: Path) -> Iterator[Spot]:
    """The served bot, with Slack."""
    strictness = replace(LENIENT, rates=False)
    with SlackStandIn(SystemClock(), strictness=strictness) as slack, ExitStack() as stack:
        stack.enter_context(unhurried())
        for name in (*PEOPLE, STRANGER):
            slack.person(name)
        slack.channel("#ops")
        site = Spot(folder, slack)
        stack.callback(site.end)
        site.settings_text = configuration(folder, folder / "data", slack)
        site.open()
        stack.callback(lambda: site.local.stop())
        yield site


def at_slack(site: Spot, name: str, text: str) -> str:
    """What somebody is told who types this in Slack."""
    typed = site.slack.person(name).command("#ops", f"/ops {text}")
    payload = typed.ack().payload
    if payload.get("text"):
        return "\n".join(_texts(payload))
    return typed.expect_ephemeral(re.compile(r"\S")).seen


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, list):
        for entry in value:
            yield from _texts(entry)
    elif isinstance(value, dict):
        for key, entry in value.items():
            if key == "text" and isinstance(entry, str):
                yield entry
            else:
                yield from _texts(entry)


def at_the_socket(site: Spot, shell: Shell, text: str) -> str:
    """What somebody is told who types this at a terminal."""
    reply = shell.ask(site.socket, text.split())
    return "\n".join(reply["lines"])


def asked_by(site: Spot, name: str, text: str, door: Door) -> Reply:
    """A command of a person whose door is not what is tried."""
    uid = str(UIDS[name])
    actor = site.bot.identities.at_door(Identity(door="os", subject=uid))
    return site.bot.desk.submit(Request(actor=actor, door=door, command=parse(text)))
