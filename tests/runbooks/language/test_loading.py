"""A runbook is accepted whole or refused with everything that is wrong in it, and where."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actions.contract import ValueType
from config.permissions import Permission
from runbooks.load import load_runbook
from runbooks.model import OnFailure
from tests.runbooks.language.specs import REGISTRY, RUNBOOK, mend, problems_of, with_step


def _one(text: str) -> str:
    """The only problem of a runbook, as people read it."""
    found = problems_of(text)
    assert len(found) == 1, [str(problem) for problem in found]
    return str(found[0])


def test_a_runbook_is_what_its_file_says() -> None:
    runbook = mend()
    assert (runbook.name, runbook.version, runbook.permission) == (
        "mend",
        1,
        Permission.NODE_REPAIR,
    )
    assert runbook.on_failure is OnFailure.STOP
    assert [parameter.type for parameter in runbook.parameters] == [
        ValueType.NODE,
        ValueType.NODES,
        ValueType.TEXT,
    ]
    assert [parameter.required for parameter in runbook.parameters] == [True, False, False]
    assert [(step.id, step.do, step.line) for step in runbook.steps] == [
        ("facts", "node.observe", 11),
        ("hold", "node.drain", 14),
    ]
    assert runbook.locks == ("node:{{ node }}",)
    assert runbook.text == RUNBOOK


def test_a_loop_and_its_limits_are_read() -> None:
    text = with_step(
        """
id: every
do: node.drain
for_each: nodes
at_most: 2
stop_after: 3
timeout: 90s
with: {node: "{{ item }}", reason: x}
"""
    )
    step = load_runbook(text, "x", REGISTRY).steps[-1]
    assert (step.for_each, step.at_most, step.stop_after) == ("nodes", 2, 3)
    assert step.time_limit == timedelta(seconds=90)


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("1:30", "more than one number"),
        ("no", "true, false"),
        ("010", "more than one number"),
        ("1.10", "more than one number"),
        ("0x1F", "more than one number"),
        ("2026-11-30", "a date"),
        ("!!str x", "a tag"),
        ("&x y", "an anchor"),
        ("*x", "an alias"),
    ],
)
def test_what_yaml_reads_in_two_ways_must_be_quoted(value: str, says: str) -> None:
    found = problems_of(RUNBOOK.replace("title: Mend a node", f"title: {value}"))
    assert says in str(found[0])
    assert (found[0].source, found[0].line) == ("mend.yaml", 3)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (f"%YAML 1.1\n---\n{RUNBOOK}", "directives"),
        (f"{RUNBOOK}---\na: b\n", "second document"),
        (f"{RUNBOOK}title: again\n", "stands twice"),
        (f"{RUNBOOK}1: x\n", "a key must be text"),
        (f"{RUNBOOK}<<: {{a: b}}\n", "merge key"),
        (f"{RUNBOOK}x: [" + "[" * 200, "deeper than"),
        (f"{RUNBOOK}x: '" + "y" * (1024 * 1024) + "'", "larger than"),
        ("[]", "a mapping at the top"),
        ("\x00", "not YAML"),
    ],
)
def test_what_the_format_does_not_have_is_refused(text: str, says: str) -> None:
    assert any(says in str(problem) for problem in problems_of(text))


def test_all_problems_of_a_file_are_told_at_once_with_line_column_and_key() -> None:
    text = (
        RUNBOOK.replace("version: 1", "version: 0")
        .replace("permission: node.repair", "permission: node.repare")
        .replace("do: node.drain", "do: node.drian")
        .replace("on_failure: stop", "on_failure: panic\nextra: 1")
    )
    found = [(problem.line, problem.key) for problem in problems_of(text)]
    assert found == [
        (2, "version"),
        (4, "permission"),
        (16, "steps.1.do"),
        (18, "on_failure"),
        (19, "extra"),
    ]
    said = "\n".join(str(problem) for problem in problems_of(text))
    assert "did you mean node.repair?" in said
    assert "did you mean node.drain?" in said
    assert "mend.yaml:16:5: steps.1.do:" in said


@pytest.mark.parametrize(
    ("step", "says"),
    [
        ("id: facts\ndo: node.return\nwith: {node: '{{ node }}'}", "stands twice; first in line"),
        ("id: Bad_Id\ndo: node.return\nwith: {node: '{{ node }}'}", "is not a name"),
        ("id: x\ndo: node.return", "the argument node is missing"),
        ("id: x\ndo: node.return\nwith: {node: '{{ node }}', host: z}", "unknown argument"),
        ("id: x\ndo: node.return\nwith: {node: 'a b'}", "is not a node name"),
        ("id: x\ndo: node.return\nwith: {node: '{{ nodes }}'}", "is nodes"),
        ("id: x\ndo: node.return\nwith: {node: '{{ why }}'}", "is text"),
        ("id: x\ndo: node.return\nwith: {node: '{{ node }}-bmc'}", "makes it text"),
        ("id: x\ndo: page.send\nwith: {summary: 3}", "expected text, not a number"),
        ("id: x\ndo: page.send\nwith: {summary: s, level: '{{ why }}'}", "is text"),
        ("id: x\ndo: page.send\nwith: {summary: s, level: '3'}", "expected a whole number"),
        ("id: x\ndo: service.start\nwith: {node: '{{ node }}', unit: 'a b'}", "systemd unit"),
        ("id: x\ndo: page.send\nwith: {summary: '{{ nod }}'}", "there is no name 'nod'"),
        ("id: x\ndo: page.send\nwith: {summary: '{{ item }}'}", "only in a step with for_each"),
        ("id: x\ndo: page.send\nwith: {summary: '{{ node '}", "cannot be read"),
        ("id: x\ndo: page.send\nwith: {summary: '{{ steps.later.output }}'}", "there is no step"),
        ("id: x\ndo: page.send\nwith: {summary: '{{ steps.x.output }}'}", "has no output yet"),
        ("id: x\ndo: page.send\nwith: {summary: '{{ steps.facts.state }}'}", "only an output"),
        ("id: x\ndo: page.send\nwith: {summary: '{{ steps.facts.output.bass }}'}", "mean base?"),
        ("id: x\nwhen: node ==\ndo: page.send\nwith: {summary: s}", "cannot be read"),
        ("id: x\nwhen: '{{ node }}'\ndo: page.send\nwith: {summary: s}", "without {{ }}"),
        ("id: x\nwhen: why.upper()\ndo: page.send\nwith: {summary: s}", "call is not part"),
        ("id: x\nwhen: nde == 'a'\ndo: page.send\nwith: {summary: s}", "did you mean node?"),
        ("id: x\nfor_each: nodes\ndo: node.return\nwith: {node: '{{ node }}'}", "in for_each needs"),
        ("id: x\nfor_each: nodes\ndo: node.observe\nwith: {node: '{{ node }}'}", "would do the same"),
        ("id: x\nat_most: 2\ndo: node.return\nwith: {node: '{{ node }}'}", "without for_each"),
        ("id: x\ntimeout: '90'\ndo: node.return\nwith: {node: '{{ node }}'}", "a unit"),
        ("id: x\ndo: node.return\ncall: z\nwith: {node: '{{ node }}'}", "exactly one of do"),
        ("id: x\napprove: Go on?\nwith: {a: b}", "means nothing in an approve step"),
        ("id: x\ndo: diagnose\nwith: {causes: '{{ why }}', facts: {}}", "must be written out"),
    ],
)  # fmt: skip
def test_a_wrong_step_is_refused_before_any_night(step: str, says: str) -> None:
    assert says in _one(with_step(step))


def test_a_later_step_has_no_output_yet() -> None:
    text = RUNBOOK.replace('node: "{{ node }}"}', 'node: "{{ steps.hold.output }}"}', 1)
    assert "the step hold has no output yet" in _one(text)


def test_an_id_with_a_hyphen_is_explained() -> None:
    text = with_step("id: a-b\ndo: node.observe\nwith: {node: '{{ node }}'}")
    text = text.replace("on_failure", "  - {id: c, approve: '{{ steps.a.output }}'}\non_failure")
    assert 'is written steps["a-b"]' in _one(text)


def test_undo_is_promised_only_where_every_effect_can_be_undone() -> None:
    text = with_step("id: x\ndo: node.return\nwith: {node: '{{ node }}'}")
    undoing = text.replace("on_failure: stop", "on_failure: undo")
    assert "node.return cannot be undone" in _one(undoing)
    assert problems_of(undoing.replace("id: x", "id: x\n    point_of_no_return: true")) == ()


@pytest.mark.parametrize(
    ("parameter", "says"),
    [
        ("x: {type: txt, help: h}", "did you mean text?"),
        ("x: {type: number, help: h, default: '3'}", "expected a whole number"),
        ("x: {type: node, help: h, required: true, default: a}", "has no default"),
        ("x: {type: text}", "is missing; expected text"),
        ("steps: {type: text, help: h}", "is not a parameter name"),
        ("X-Y: {type: text, help: h}", "is not a parameter name"),
    ],
)
def test_a_wrong_parameter_is_refused(parameter: str, says: str) -> None:
    text = RUNBOOK.replace("parameters:\n", f"parameters:\n  {parameter}\n")
    assert says in _one(text)


def test_a_runbook_has_a_length_that_people_read() -> None:
    more = "".join(f"  - {{id: s{number}, approve: Go on?}}\n" for number in range(99))
    assert "101 steps" in _one(RUNBOOK.replace("on_failure", f"{more}on_failure"))


@given(st.text(max_size=200))
def test_any_text_is_a_runbook_or_a_list_of_problems(text: str) -> None:
    for attempt in (text, RUNBOOK.replace("Mend a node", text, 1), with_step(text or "x")):
        problems = problems_of(attempt)
        if not problems:
            assert load_runbook(attempt, "any.yaml", REGISTRY).text == attempt
