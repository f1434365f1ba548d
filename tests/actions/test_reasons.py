"""What a Reason says about its writer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actions.reasons import (
    LONGEST_CAUSE,
    ReasonKind,
    classify,
    is_internal,
    mark_text,
    parse_mark,
)
from config.ids import InstanceId, RunId

RUN = RunId("run-12")
INSTANCE = InstanceId("0a1b2c3d")
OURS = "nw A1 slurmd dead [run-12/0a1b2c3d]"


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        ("", ReasonKind.NONE),
        ("Not responding", ReasonKind.INTERNAL),
        ("gres/gpu count reported lower than configured (7 < 8)", ReasonKind.INTERNAL),
        ("gres/gpu:h100 count too low (4 < 8)", ReasonKind.INTERNAL),
        ("Low RealMemory (reported:900 < 100.00% of configured:1000)", ReasonKind.INTERNAL),
        ("Kill task failed", ReasonKind.INTERNAL),
        ("Kill task failed (JobId=12 StepId=0)", ReasonKind.INTERNAL),
        ("Not responding to ping, do not touch", ReasonKind.FOREIGN),
        ("RMA 4711", ReasonKind.FOREIGN),
        ("Xid 79 on GPU 3: fallen off the bus", ReasonKind.FOREIGN),
        ("Xid 79 on GPU 3: fallen off the bus : Not responding", ReasonKind.FOREIGN),
        (OURS, ReasonKind.MARK),
        (f"{OURS} : Not responding", ReasonKind.MARK),
        (f"{OURS} : keep it, RMA 4711", ReasonKind.FOREIGN),
        ("nwfoo [run-1/aa]", ReasonKind.FOREIGN),
        ("nw A1", ReasonKind.FOREIGN),
        ('disk full: /scratch 98% "see <#C123>" & ask', ReasonKind.FOREIGN),
    ],
)
def test_the_first_segment_names_the_writer(reason: str, kind: ReasonKind) -> None:
    assert classify(reason).kind is kind


def test_what_slurm_appends_to_our_mark_is_a_new_fact_and_not_a_new_owner() -> None:
    reading = classify(f"{OURS} : Not responding")
    assert reading.mark is not None
    assert (reading.mark.run, reading.mark.instance) == (RUN, INSTANCE)
    assert reading.internal == ("Not responding",)


@given(st.text(max_size=60))
def test_every_mark_can_be_read_again_whatever_its_cause(cause: str) -> None:
    text = mark_text(cause, RUN, INSTANCE)
    mark = parse_mark(text)
    assert mark is not None
    assert (mark.run, mark.instance) == (RUN, INSTANCE)
    assert 0 < len(mark.cause) <= LONGEST_CAUSE
    assert classify(text).kind is ReasonKind.MARK


@given(st.text(max_size=200))
def test_no_text_is_too_strange_to_classify_and_only_a_mark_carries_a_mark(reason: str) -> None:
    reading = classify(reason)
    assert (reading.mark is not None) == (reading.kind is ReasonKind.MARK)


@given(st.text(st.characters(exclude_characters=" :"), min_size=1, max_size=40))
def test_a_persons_addition_makes_a_mark_foreign(addition: str) -> None:
    if addition.strip() and not is_internal(addition.strip()):
        assert classify(f"{OURS} : {addition}").kind is ReasonKind.FOREIGN
