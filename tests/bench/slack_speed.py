"""How soon a command in Slack is acknowledged and answered, with 50 of them a second.

The Slack stand-in and the people are in this process, the bot that ships is in another one.
"""

import contextlib
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path

from bot.standin.server import SlackStandIn
from bot.standin.vocabulary import Command
from config.system_clock import SystemClock
from runbooks.machine import Move
from tests.bench.ground import open_engine
from tests.bench.rows import Number, quantile
from tests.bench.served import bot, configuration, end, interpreter, simulated
from tests.bench.start_speed import BOT

RATE = 50
"""Commands a second."""
WAITING = 80
ADVANCING = 20
EACH = 10
"""Nodes that each of the advancing runs drains."""
ADVANCE = 8 * RATE
"""So many commands are typed before the first of the advancing runs ends, on a machine of two cores."""
UNANSWERED = 30_000.0
"""Milliseconds that an answer counts which did not come."""


def acknowledgements(folder: Path, samples: int) -> list[Number]:
    """Acknowledgement and first visible answer, idle and busy, beside a bare echo."""
    with workspace() as slack, _bare(slack):
        echo = typed(slack, samples // 2)
        echoed = _seen(slack, echo)
    with ExitStack() as stack:
        stack.enter_context(simulated(folder))
        rows = open_runs(folder)
        slack = stack.enter_context(workspace())
        stack.enter_context(bot(configuration(folder, slack), slack))
        slack.wait_for_bot(within=120)
        busy = typed(slack, samples)
        answered, missed = _seen(slack, busy), slack.unacked
        idle = _seen(slack, _one_by_one(slack, min(200, samples // 4)))
    under = f"{RATE}/s, {rows:,} rows, {WAITING + ADVANCING} open runs, {ADVANCING} advancing"
    pairs = (
        ("ack p50", _acked(busy), 0.5, "", _acked(echo), under),
        ("ack p99", _acked(busy), 0.99, "<= 300", _acked(echo), under),
        ("ack p99, first seconds", _acked(busy[:ADVANCE]), 0.99, "<= 300", _acked(echo), under),
        ("first visible answer p99, busy", answered, 0.99, "<= 1000", echoed, under),
        ("first visible answer p50, idle", idle, 0.5, "<= 20", echoed, "one by one"),
    )
    missing = Number(
        name="not acknowledged in 3 s", value=missed, unit="", target="<= 0", under=under
    )
    return [*(_row(*pair) for pair in pairs), missing]


@contextmanager
def workspace() -> Iterator[SlackStandIn]:
    """A workspace with one person and one channel."""
    with SlackStandIn(SystemClock()) as slack:
        slack.person("ann")
        slack.channel("#ops")
        yield slack


@contextmanager
def _bare(slack: SlackStandIn) -> Iterator[None]:
    """The comparison, connected."""
    tokens = (slack.base_url, slack.bot_token, slack.app_token)
    argv = [*interpreter(), "tests.bench.bare_bolt", *tokens]
    child = subprocess.Popen(argv, stdout=subprocess.DEVNULL)
    try:
        slack.wait_for_bot(within=30)
        yield
    finally:
        end(child)


def open_runs(folder: Path) -> int:
    """Runs that wait for a long time, and runs that have work; how many rows the ledger has."""
    engine = open_engine(folder, folder / "sim.sock")
    later = engine.parts.clock.now().wall + timedelta(hours=1)
    for number in range(WAITING + ADVANCING):
        first = 1 + EACH * (number % ADVANCING)
        nodes = [f"gpu-{node:03}" for node in range(first, first + EACH)]
        run = engine.begin("drain-node", BOT, nodes=list(nodes), reason="measured")
        if number >= ADVANCING:
            engine.journal.move(run, Move.WAIT, "measured", later)
    head = engine.parts.ledger.head.seq
    engine.parts.ledger.close()
    return head


def typed(slack: SlackStandIn, count: int, first: int = 0) -> list[Command]:
    """Commands typed at a steady rate, and settled; `first` is the number of the first one."""
    person = slack.person("ann")
    sent: list[Command] = []
    begun = time.monotonic()
    for number in range(count):
        time.sleep(max(0.0, begun + number / RATE - time.monotonic()))
        sent.append(person.command("#ops", _words(first + number)))
    slack.wait_until(lambda: all(one.interaction.settled for one in sent), within=30)
    return sent


def _words(number: int) -> str:
    """Every second command commits a record, and no two of those are alike."""
    if number % 2:
        return f"/ops hands-off gpu-{201 + number % 40} measured {number}"
    return ("/ops status", "/ops whoami", "/ops list")[number // 2 % 3]


def _one_by_one(slack: SlackStandIn, count: int) -> list[Command]:
    """Commands of which each is typed when the one before has its answer."""
    sent: list[Command] = []
    for number in range(count):
        sent.append(slack.person("ann").command("#ops", _words(2 * number)))
        sent[-1].expect_ephemeral()
    return sent


def _acked(sent: Sequence[Command]) -> list[float]:
    """Milliseconds to each acknowledgement; one that was given up counts as three seconds."""
    after = [one.interaction.acked_after for one in sent]
    return [3000.0 if took is None else 1000 * took for took in after]


def _seen(slack: SlackStandIn, sent: Sequence[Command]) -> list[float]:
    """Milliseconds until the person was first shown something, by Slack's own message times."""
    with contextlib.suppress(AssertionError):
        slack.wait_until(lambda: len(_first_answers(slack)) >= len(sent), within=10)
    first = _first_answers(slack)
    return [
        1000 * (first[one.interaction.id] - float(one.interaction.began))
        if one.interaction.id in first
        else UNANSWERED
        for one in sent
    ]


def _first_answers(slack: SlackStandIn) -> dict[str, float]:
    """When each command was first answered."""
    first: dict[str, float] = {}
    with slack.world.condition:
        for message in slack.world.messages.values():
            if message.answers is not None:
                first.setdefault(message.answers, float(message.ts))
    return first


def _row(  # noqa: PLR0913  the columns of the table
    name: str,
    took: Sequence[float],
    share: float,
    target: str,
    echo: Sequence[float],
    under: str,
) -> Number:
    return Number(
        name=name,
        value=quantile(took, share),
        unit="ms",
        target=target,
        baseline=quantile(echo, share),
        samples=len(took),
        under=f"{under}; baseline: Bolt's echo",
    )
