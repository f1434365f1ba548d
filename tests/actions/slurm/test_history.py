"""What accounting says about earlier Reasons. The answers are those of slurmdbd 22.05.8."""

from datetime import timedelta

import pytest

from actions.contract import Unreadable
from actions.hands import WrittenReason
from actions.slurm.history import AccountingHistory
from actions.slurm.tools import SlurmSettings
from config.ids import ClusterName
from config.node_names import NodeName
from tests.actions.slurm.conftest import AT, HandClock, ToldRunner, done, words

NODE = NodeName("gpu-02")
OURS = "nw A1 [run-8/0a1b2c3d]"
SETTINGS = SlurmSettings(cluster=ClusterName("mini"), own_user="nodewarden")
REFUSED = "sacctmgr: error: Sending PersistInit msg: Connection refused\n"


def stamp(seconds: int) -> str:
    return f"{AT + timedelta(seconds=seconds):%Y-%m-%dT%H:%M:%S}"


def line(reason: str, *, by: str, start: int, end: int | None = None, node: str = NODE) -> str:
    ended = "Unknown" if end is None else stamp(end)
    return f"{node}|{by}|{stamp(start)}|{ended}|{reason}\n"


@pytest.fixture
def history(told: ToldRunner, clock: HandClock) -> AccountingHistory:
    return AccountingHistory(SETTINGS, told, clock, clock.pass_by)


def test_a_reason_that_was_replaced_is_found_with_its_writer(
    told: ToldRunner, history: AccountingHistory
) -> None:
    lost = line("RMA 2", by="nwoperator(1003)", start=0, end=1)
    told.tell("show event", lost + line(OURS, by="nodewarden(1001)", start=1))
    assert history.written_since(NODE, AT + timedelta(milliseconds=700)) == [
        WrittenReason(reason="RMA 2", by="nwoperator", at=AT),
        WrittenReason(reason=OURS, by="nodewarden", at=AT + timedelta(seconds=1)),
    ]
    assert f"nodes=gpu-02 start={stamp(0)} format=" in words(told.asked)[0]
    assert "clusters=mini" in words(told.asked)[0]


def test_an_earlier_event_that_only_ended_since_is_not_among_them(
    told: ToldRunner, history: AccountingHistory
) -> None:
    ours = line(OURS, by="nodewarden(1001)", start=-90, end=3)
    told.tell("show event", ours + line("RMA 5", by="ann(7)", start=3, end=3))
    assert [entry.reason for entry in history.written_since(NODE, AT)] == ["RMA 5"]


def test_it_is_waited_for_until_accounting_has_heard_of_the_write(
    told: ToldRunner, clock: HandClock
) -> None:
    def pass_by(time: timedelta) -> None:
        clock.pass_by(time)
        if clock.wall - AT > timedelta(seconds=1):
            told.tell("show event", old + line(OURS, by="nodewarden(1001)", start=0))

    old = line("fan", by="ann(7)", start=-90, end=-80)
    told.tell("show event", old)
    history = AccountingHistory(SETTINGS, told, clock, pass_by)
    assert [entry.reason for entry in history.written_since(NODE, AT)] == [OURS]


@pytest.mark.parametrize(
    "answer",
    [
        "",
        done(stderr=REFUSED, code=1),
        "no events of that kind\n",
        line(OURS, by="nodewarden(1001)", start=0, node="gpu-03"),
    ],
)
def test_no_answer_about_this_node_is_no_clean_history(
    told: ToldRunner, history: AccountingHistory, answer: str
) -> None:
    told.tell("show event", answer)
    with pytest.raises(Unreadable):
        history.written_since(NODE, AT)


def test_separators_and_line_ends_in_a_reason_stay_in_it(
    told: ToldRunner, history: AccountingHistory
) -> None:
    text = 'a|b\nsecond | line "q" ?????'
    told.tell("show event", line(text, by="ann(7)", start=0) + line("x", by="ben(8)", start=1))
    found = history.written_since(NODE, AT)
    assert [(entry.reason, entry.by) for entry in found] == [(text, "ann"), ("x", "ben")]
