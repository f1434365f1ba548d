"""Two bots on one cluster, each with a database of its own, and what it takes to catch them in the act.

Both are fresh, so that they give the same run numbers. The first one's scontrol can be stopped right
before a write, which is the one moment that a test from outside could not hit.
"""

import shutil
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from bot.testbed import SlurmTestbed
from tests.e2e.served import ServedBot
from tests.patience import DEADLINE

POLICY = """\
policy:
  autonomy:
    rules:
      - {runbook: node-dropped, cause: A1, level: act}
      - {runbook: node-dropped, cause: A4a, level: act}
      - {runbook: drain-node, asked_by: person, level: act}
      - {runbook: return-node, asked_by: person, level: act}
"""
_SCONTROL = """\
#!/bin/sh
# As long as the gate of a node is closed, a write to it waits here.
case " $* " in *" update "*)
    words="$*"; node=${{words#*NodeName=}}; gate={tools}/${{node%% *}}
    if [ -e "$gate" ]; then : > "$gate.reached"; while [ -e "$gate" ]; do sleep 0.02; done; fi ;;
esac
exec {scontrol} "$@"
"""
AWAKE = 0.001


def until(condition: Callable[[], object], what: str, seconds: float = DEADLINE) -> None:
    """Look a thousand times a second: what is waited for is over in a moment."""
    never, end = threading.Event(), time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"{what}: not within {seconds:g} s"
        never.wait(AWAKE)


def rows(bot: ServedBot, question: str, *given: object) -> list[Any]:
    """From the bot's database, opened read-only."""
    with closing(sqlite3.connect(f"file:{bot.data}/nodewarden.db?mode=ro", uri=True)) as database:
        return database.execute(question, given).fetchall()


def intents(bot: ServedBot, node: str) -> list[Any]:
    """Run and step of each effect that was intended for a node."""
    return rows(
        bot,
        "SELECT run, step FROM ledger WHERE kind = 'step.intended' AND node = ? ORDER BY seq",
        node,
    )


def state(bot: ServedBot, run: str) -> str:
    """State of a run."""
    return str(rows(bot, "SELECT state FROM runs WHERE id = ?", run)[0][0])


def last_run(bot: ServedBot) -> str:
    """The newest run."""
    return str(rows(bot, "SELECT id FROM runs ORDER BY number DESC LIMIT 1")[0][0])


def rests(bot: ServedBot, run: str) -> bool:
    """Whether nothing goes on in it any more."""
    return state(bot, run) not in {"requested", "planning", "running", "waiting"}


def settle(bot: ServedBot, run: str, seconds: float = 2 * DEADLINE) -> str:
    """The state in which a run comes to rest."""
    bot.testbed.wait_for(lambda: rests(bot, run), f"{run} comes to rest", seconds=seconds)
    return state(bot, run)


def approve(bot: ServedBot, run: str) -> str:
    """What the bot says to the yes of the person on call, who is not the one that asked."""
    return approve_as(bot, run, bot.testbed.options.admin_user)


def approve_as(bot: ServedBot, run: str, person: str) -> str:
    """The same of any OS user."""
    argv = [*bot.testbed.bot_python(), "-m", "bot.cli", "approve", run]
    argv += ["--socket", str(bot.data / "nodewarden.sock")]
    bot.data.chmod(0o711)  # the way to the socket, which a site puts outside the data folder
    try:
        return bot.testbed.run_as(person, *argv)
    finally:
        bot.data.chmod(0o700)


def carry_out(bot: ServedBot, *words: str) -> tuple[str, str]:
    """State and card of a run, once it has come to rest."""
    run = bot.json(*words, "--no-wait").run
    return settle(bot, run), bot.ask("status", run).text


def kill_when(bot: ServedBot, words: tuple[str, ...], condition: Callable[[], object]) -> None:
    """Send a command, kill the bot the moment the condition holds, and start it again."""
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(bot.ask, *words)
        until(condition, f"{words[0]} came so far")
        bot.kill()
        asked.result()
    bot.start()


@dataclass(frozen=True)
class Twins:
    """The bots, and the gate before the first one's writes."""

    first: ServedBot
    second: ServedBot

    @contextmanager
    def between_look_and_write(self, node: str) -> Iterator[None]:
        """The first bot is at its drain of a node while the body runs; afterwards it has asked."""
        gate = self.first.folder / "bin" / node
        gate.touch(0o666)
        reached = gate.with_name(f"{node}.reached")
        with ThreadPoolExecutor(1) as pool:
            asked = pool.submit(self.first.ask, "drain", node, "fans", "--no-wait")
            try:
                until(reached.exists, "the bot is at its write")
                yield
            finally:
                gate.unlink()
                asked.result()


def _bot(settled: SlurmTestbed, name: str) -> ServedBot:
    # The template has one place for further sections of the configuration: that of Slack.
    bot = ServedBot(settled, settled.folder / name, slack=POLICY)
    tools = bot.folder / "bin"
    tools.mkdir()
    tools.chmod(0o777)
    script = tools / "scontrol"
    script.write_text(_SCONTROL.format(tools=tools, scontrol=shutil.which("scontrol")))
    script.chmod(0o755)
    text = bot.config.read_text().replace("nwann", settled.options.admin_user)
    text = text.replace("max_out: 4", "max_out: 8")  # the tests of a session share the pool
    bot.config.write_text(text.replace("units:", f"slurm_binaries: {tools}\n    units:"))
    bot.start()
    return bot


@pytest.fixture(scope="session")
def twins(settled: SlurmTestbed) -> Iterator[Twins]:
    """Both at work."""
    found = Twins(_bot(settled, "twin-1"), _bot(settled, "twin-2"))
    yield found
    found.first.stop()
    found.second.stop()


@dataclass(frozen=True)
class Namesakes:
    """Two runs of the same number: the first bot's drain of gpu-05 and the second one's return."""

    drain: str
    back: str
    told: str
    """What the second bot says of its own."""


@pytest.fixture(scope="session")
def namesakes(twins: Twins) -> Namesakes:
    """The very first run of each."""
    drained = twins.first.json("drain", "gpu-05", "fans", "--no-wait").run
    assert settle(twins.first, drained) == "succeeded"
    back = twins.second.json("return", "gpu-05", "--no-wait").run
    assert settle(twins.second, back) == "needs_person"
    return Namesakes(drained, back, twins.second.ask("status", back).text)


@dataclass(frozen=True)
class Orphans:
    """Runs whose bot was killed right after the intent of an effect."""

    drain: str
    """Of the first bot, on gpu-07."""
    start: str
    """Of the second, on gpu-01."""


@pytest.fixture(scope="session")
def orphans(settled: SlurmTestbed, twins: Twins, namesakes: Namesakes) -> Orphans:
    """Such runs wait until their attempt cannot happen any more, so they are begun early."""
    first, second = twins.first, twins.second
    settled.kill_slurmd("gpu-01")
    kill_when(first, ("drain", "gpu-07", "fans"), lambda: intents(first, "gpu-07"))
    started = ("run", "node-dropped", "gpu-01")
    kill_when(second, started, lambda: intents(second, "gpu-01"))
    return Orphans(intents(first, "gpu-07")[0][0], intents(second, "gpu-01")[0][0])
