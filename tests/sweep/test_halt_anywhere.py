"""The halt file appears between any two commits: the effect that was not begun then never begins."""

import pytest

from tests.sweep.crash import KEY, play
from tests.sweep.mortal import Moment, Point, Sort
from tests.sweep.night import Night
from tests.sweep.scenarios import SCENARIOS
from tests.sweep.theatre import Stops, Theatre

ROUNDS = 30


@pytest.mark.parametrize("name", ["drain-node", "return-node", "dropped-A1-down"])
def test_no_effect_begins_after_a_halt_and_all_go_on_after_it(stage: Theatre, name: str) -> None:
    scenario = SCENARIOS[name]
    start = stage.begin(scenario)
    life = stage.must_live(scenario, play(scenario))
    wanted = len(stage.effects())
    commits = sum(sort is Sort.COMMIT for sort, _ in life.labels)
    for commit in range(1, commits - 1):
        stage.put(start)
        before = halted_at(stage, name, commit)
        assert len(stage.effects()) == before, f"{name}, halted after commit {commit}"
        (stage.folder / "halt").unlink()
        stage.must_live(scenario, play(scenario))
        assert len(stage.effects()) == wanted, f"{name}, resumed after commit {commit}"


def halted_at(stage: Theatre, name: str, commit: int) -> int:
    """Let the halt file appear after that commit and the bot work on; effects at that moment."""
    scenario, seen = SCENARIOS[name], []

    def halt() -> None:
        (stage.folder / "halt").write_text("smoke", "utf-8")
        seen.append(len(stage.effects()))

    def work(bot: Night) -> None:
        bot.ask(scenario.asked, KEY)
        for _ in range(ROUNDS):
            due = bot.turn()
            if due is not None:
                bot.forward(due)
            elif not bot.agree():
                return

    point = Point(sort=Sort.COMMIT, number=commit, moment=Moment.AFTER)
    stage.must_live(scenario, work, Stops(wanted=lambda here: here == point, meanwhile=halt))
    return seen[0]
