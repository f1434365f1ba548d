"""The controller is asked at most twice a second, less when it is slow."""

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from actions.slurm.budget import BURST, CALM, RATE, SLOWEST, QuestionBudget
from tests.actions.slurm.conftest import HandClock

SECOND = timedelta(seconds=1)


@given(
    st.lists(
        st.tuples(st.integers(1, 6), st.floats(0, 30, allow_nan=False)), min_size=1, max_size=60
    )
)
def test_callers_that_wait_as_told_stay_within_the_rate(steps: list[tuple[int, float]]) -> None:
    clock = HandClock()
    budget = QuestionBudget(clock)
    asked: list[tuple[timedelta, int]] = []
    for questions, silence in steps:
        clock.pass_by(timedelta(seconds=silence))
        clock.pass_by(budget.take(questions))
        asked.append((clock.monotonic, questions))
    for index, (start, _) in enumerate(asked):
        total = 0
        for at, questions in asked[index:]:
            total += questions
            assert total <= BURST + RATE * ((at - start) / SECOND) + 6 + 0.01


def test_a_slow_answer_halves_the_rate_and_calm_restores_it() -> None:
    clock = HandClock()
    budget = QuestionBudget(clock)
    budget.answered(took=timedelta(seconds=4))
    assert budget.rate == RATE / 2
    budget.answered(took=timedelta(seconds=1))
    assert budget.rate == RATE / 2
    clock.pass_by(CALM)
    assert budget.rate == RATE


def test_a_rate_limit_answer_halves_the_rate() -> None:
    budget = QuestionBudget(HandClock())
    budget.answered(took=timedelta(), limited=True)
    assert budget.rate == RATE / 2


def test_the_rate_never_falls_to_nothing() -> None:
    budget = QuestionBudget(HandClock())
    for _ in range(20):
        budget.answered(took=timedelta(seconds=60))
    assert budget.rate == SLOWEST
