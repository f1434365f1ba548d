"""A controller that has too much to do is asked half as often, and doctor says why."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actions.slurm.budget import CALM
from actions.slurm.cli import SlurmCli
from actions.slurm.load import overload
from tests.actions.slurm.conftest import HandClock, done
from tests.actions.slurm.rows import SDIAG, RowsRunner, client, runner

__all__ = ["client", "runner"]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("Server thread count:  3", ""),
        ("Server thread count:  128", ""),
        ("Server thread count:  201", "server thread count 201 (above 128)"),
        ("Agent queue size:     999999", "agent queue size 999999 (above 500)"),
        ("Agent queue size: many", ""),
    ],
)
def test_what_is_above_its_limit_is_named(line: str, said: str) -> None:
    assert overload(f"sdiag output\n{line}\nJobs submitted: 100000\n") == said


@given(st.text())
def test_no_answer_is_an_error(answer: str) -> None:
    assert isinstance(overload(answer), str)


def test_an_overloaded_controller_halves_the_rate_until_it_is_calm(
    client: SlurmCli, runner: RowsRunner, clock: HandClock
) -> None:
    client.snapshot()
    assert client.remarks() == ()
    runner.tell("sdiag", SDIAG.replace("count:  3", "count:  250"))
    clock.pass_by(timedelta(seconds=20))
    client.snapshot()
    (said,) = client.remarks()
    assert (
        said == "slurmctld is asked at most 1 times a second: server thread count 250 (above 128)"
    )
    runner.tell("sdiag", SDIAG)
    clock.pass_by(CALM)
    client.snapshot()
    assert client.remarks() == ()


def test_where_sdiag_does_not_answer_nothing_changes(client: SlurmCli, runner: RowsRunner) -> None:
    runner.tell("sdiag", done(stderr="sdiag: error: Access denied", code=1))
    assert len(client.snapshot().nodes) == 12
    assert client.remarks() == ()
