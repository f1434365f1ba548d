"""A backup taken at any commit, put back later: nothing is done before a person confirms."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from audit_log.backup import back_up, restore
from config.ids import RunId
from runbooks.machine import RunState
from tests.sweep.crash import KEY, End, Sweep
from tests.sweep.mortal import Moment, Point, Sort
from tests.sweep.night import ANN, Night
from tests.sweep.scenarios import SCENARIOS, Asked
from tests.sweep.theatre import Kept, Stops, Theatre

ROUNDS = 30
"""Turns without a confirmation, each at the time that is due next."""


class Restored:
    """A scenario with a backup of each of its commits, and the state that each was taken in."""

    def __init__(self, stage: Theatre, name: str, folder: Path) -> None:
        self.stage = stage
        self.sweep = Sweep(stage, SCENARIOS[name])
        self.backups: list[tuple[Path, Kept]] = []

        def meanwhile() -> None:
            target = folder / f"{len(self.backups)}.db"
            back_up(stage.folder / "nodewarden.db", target)
            self.backups.append((target, stage.keep()))

        def wanted(point: Point) -> bool:
            return point.sort is Sort.COMMIT and point.moment is Moment.AFTER

        stage.put(self.sweep.start)
        stops = Stops(wanted=wanted, meanwhile=meanwhile)
        stage.must_live(self.sweep.scenario, self.sweep.play, stops)
        self.end = stage.keep()

    def quiet(self, backup: Path, world: Kept) -> int:
        """Restore it in that world and let a bot work: how many effects it made."""
        self.stage.put(world)
        restore(backup, self.stage.folder / "nodewarden.db")
        before = len(self.stage.effects())
        self.stage.must_live(self.sweep.scenario, _unconfirmed)
        return len(self.stage.effects()) - before

    def confirmed(self, how: Callable[[Night, Asked], None]) -> End:
        """A person confirms, and the bot goes on to the end."""

        def play(bot: Night) -> str:
            how(bot, self.sweep.scenario.asked)
            return self.sweep.play(bot)

        life = self.stage.must_live(self.sweep.scenario, play)
        return self.sweep.end(life)


def unnumbered(end: End) -> str:
    """An end without the numbers of runs: a run that is asked for after a restore has a new one."""
    return re.sub(r"run-\d+", "run", repr(end))


def _unconfirmed(bot: Night) -> None:
    """Work on, for as long as a bot would that nobody answers."""
    assert bot.ledger.restore_pending()
    for _ in range(ROUNDS):
        due = bot.turn()
        if due is None:
            return
        bot.forward(due)
    assert all(run.state is not RunState.FAILED for run in bot.runs())


def one_run(bot: Night, asked: Asked) -> None:
    """Where the run is younger than the backup it is asked for again, and confirmed like the others."""
    bot.ask(asked, KEY)
    for run in bot.runs():
        bot.requests.confirm_restore(ANN.id, run.id, "looked at it")


def all_runs(bot: Night, asked: Asked) -> None:
    bot.requests.confirm_restore(ANN.id, None, "looked at all of it")


@pytest.mark.parametrize("how", [one_run, all_runs])
@pytest.mark.parametrize("name", ["drain-node", "return-node", "dropped-A1", "dropped-A1-down"])
def test_a_restored_backup_does_nothing_before_a_person_confirms_and_then_goes_on(
    stage: Theatre, tmp_path: Path, name: str, how: Callable[[Night, Asked], None]
) -> None:
    played = Restored(stage, name, tmp_path)
    for backup, then in played.backups:
        assert played.quiet(backup, then) == 0, f"{name}, {backup.stem}, in the world of then"
        end = played.confirmed(how)
        assert unnumbered(end) == unnumbered(played.sweep.reference)


@pytest.mark.parametrize("name", list(SCENARIOS))
def test_a_backup_that_is_restored_after_the_end_does_nothing_by_itself(
    stage: Theatre, tmp_path: Path, name: str
) -> None:
    played = Restored(stage, name, tmp_path)
    for backup, _ in played.backups:
        assert played.quiet(backup, played.end) == 0, f"{name}, {backup.stem}, after the end"


def test_a_run_asked_for_after_a_restore_never_takes_the_number_of_one_that_was_given_up(
    stage: Theatre, tmp_path: Path
) -> None:
    """Its marks on the cluster would else be taken for those of the new run."""
    played = Restored(stage, "drain-node", tmp_path)
    before_it, _ = played.backups[0]
    stage.put(played.end)
    restore(before_it, stage.folder / "nodewarden.db")

    def ask_again(bot: Night) -> tuple[RunId, str]:
        all_runs(bot, SCENARIOS["drain-node"].asked)
        run = bot.live(bot.ask(SCENARIOS["drain-node"].asked, KEY))
        return run.id, run.why

    life = stage.must_live(played.sweep.scenario, ask_again)
    assert life.told is not None
    run, why = life.told["played"]
    assert run not in {"run-1", "run-2"}
    assert "carries a mark of this bot that its ledger does not know" in why
