"""From exec to the last run resumed, what that process keeps in memory, and how fast help comes."""

import subprocess
import time
from datetime import timedelta
from pathlib import Path

from audit_log.database import open_reader
from config.actors import ENGINE, Actor, ActorKind
from runbooks.machine import Move
from tests.bench.ground import open_engine
from tests.bench.rows import Number, quantile
from tests.bench.served import (
    bot,
    configuration,
    interpreter,
    most_resident,
    resident,
    simulated,
    until,
)

BOT = Actor(id=ENGINE.id, kind=ActorKind.ENGINE, name="bot", roles=frozenset())


def resume(folder: Path, runs: int) -> list[Number]:
    """`runs` open runs that all want to go on, over the rows that this ledger has already."""
    with simulated(folder) as socket:
        engine = open_engine(folder, socket)
        head = engine.parts.ledger.head.seq
        asked = [
            engine.begin("drain-node", BOT, nodes=[f"gpu-{n:03}"], reason="measured")
            for n in range(1, runs + 1)
        ]
        due = engine.parts.clock.now().wall + timedelta(microseconds=1)
        for run in asked:
            engine.journal.move(run, Move.WAIT, "measured", due)
        before = engine.parts.ledger.head.seq
        engine.parts.ledger.close()
        config = configuration(folder, None)
        reader = open_reader(folder / "nodewarden.db")
        looked = "SELECT count(DISTINCT run) FROM ledger WHERE seq > ? AND run IS NOT NULL"
        began = time.monotonic()
        with bot(config) as child:
            until(lambda: child.poll() or reader.execute(looked, (before,))[0][0] >= runs, 120)
            assert child.poll() is None, "the bot ended by itself"
            took = time.monotonic() - began
            now, most = resident(child.pid), most_resident(child.pid)
        reader.close()
    under = f"{head:,} rows, {runs} open runs, simulated cluster"
    return [
        Number(name="exec to last run resumed", value=took, unit="s", target="<= 10", under=under),
        Number(name="resident memory", value=now, unit="MB", target="<= 200", under=under),
        Number(name="resident memory at most", value=most, unit="MB", under=under),
    ]


def help_time(times: int) -> list[Number]:
    """`nodewarden --help`."""
    took = [_timed([*interpreter(), "bot.cli", "--help"]) for _ in range(times)]
    base = [_timed([*interpreter(), "click"], fails=True) for _ in range(times)]
    return [
        Number(
            name="nodewarden --help",
            value=quantile(took, 0.5),
            unit="s",
            target="<= 0.5",
            baseline=quantile(base, 0.5),
            samples=times,
            under="median; baseline: Python that imports click",
        )
    ]


def _timed(argv: list[str], *, fails: bool = False) -> float:
    begun = time.monotonic()
    subprocess.run(argv, check=not fails, capture_output=True)
    return time.monotonic() - begun
