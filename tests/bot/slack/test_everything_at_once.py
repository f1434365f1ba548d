"""Commands are acknowledged while the bot and its machine are asked for everything at once."""

from pathlib import Path

from tests.bench.everything_at_once import Load, everything


def test_nothing_stays_unacknowledged_while_everything_happens_at_once(tmp_path: Path) -> None:
    told = everything(tmp_path, Load(commands=50, threads=32, jobs=2_000))
    assert told.missed == 0
    assert told.unanswered == 0
    assert told.faults == 0
    assert told.commands == 50
    assert min(told.submitted, told.snapshots, told.verified, told.backups) > 0, told
