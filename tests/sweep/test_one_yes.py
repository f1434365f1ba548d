"""One yes is enough for all that a runbook may do, also for what only a later step decides."""

from runbooks.run import Run
from tests.sweep.crash import KEY
from tests.sweep.night import Night
from tests.sweep.scenarios import SCENARIOS
from tests.sweep.theatre import Theatre


def test_what_a_called_run_will_do_after_a_step_ahead_stands_in_the_plan_that_is_approved(
    stage: Theatre,
) -> None:
    scenario = SCENARIOS["dropped-A1-down"]
    stage.begin(scenario)

    def play(bot: Night) -> tuple[tuple[Run, ...], tuple[tuple[str, bool], ...]]:
        run = bot.live(bot.ask(scenario.asked, KEY))
        plan = bot.plan(run)
        return bot.runs(), tuple((step.key, step.certain) for step in plan.steps)

    life = stage.must_live(scenario, play)
    assert life.told is not None
    (asked, child), steps = life.told["played"]
    assert steps[:2] == (("hold", True), ("start", True))
    assert ("back/resume", False) in steps
    assert {certain for key, certain in steps if key.startswith("back/")} == {False}
    assert (asked.asks, len(asked.approvals)) == (1, 1)
    assert (child.runbook, child.asks, child.state) == ("return-node", 0, "succeeded")
