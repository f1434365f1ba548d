"""A causes file is accepted whole or refused with everything that is wrong in it."""

import pytest

from config.policy import Autonomy
from runbooks.causes import Confidence, load_causes
from runbooks.problems import Problems

TABLE = """\
causes: small
version: 1
title: A small table
facts: node
decides_only_if:
  - if: unknown_flags == []
    otherwise: "flags {{ unknown_flags | join }}"
table:
  - id: B1
    title: something
    confidence: high
    specificity: 10
    autonomy: act
    signature:
      - if: base == "IDLE"
        evidence: "state {{ state }}"
      - any_of:
          - host_alive
          - responding
        evidence: alive
    act_only_if:
      - if: dropped_recently < 3
        otherwise: too many
    first_action: look
    verify: look again
    escalate_when: never
"""


def _said(text: str) -> str:
    try:
        load_causes(text, "small.yaml")
    except Problems as error:
        return str(error)
    return ""


def test_a_causes_file_is_what_it_says() -> None:
    causes = load_causes(TABLE, "small.yaml")
    row = causes.table[0]
    assert (causes.name, causes.version, causes.facts) == ("small", 1, "node")
    assert (row.id, row.specificity, row.autonomy) == ("B1", 10, Autonomy.ACT)
    assert row.confidence is Confidence.HIGH
    assert [condition.any_of for condition in row.signature] == [
        ('base == "IDLE"',),
        ("host_alive", "responding"),
    ]
    assert causes.cause("B1") is row
    assert causes.cause("B2") is None


def test_a_cause_is_proposed_unless_it_says_more() -> None:
    quiet = TABLE.replace("    autonomy: act\n", "")
    assert "means nothing unless autonomy is act" in _said(quiet)
    start, end = quiet.index("    act_only_if"), quiet.index("    first_action")
    causes = load_causes(quiet[:start] + quiet[end:], "small.yaml")
    assert causes.table[0].autonomy is Autonomy.PROPOSE


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("base ==", "bass ==", "there is no fact 'bass'; did you mean base?"),
        ("state {{ state }}", "state {{ stqte }}", "did you mean state?"),
        ("- host_alive", "- host_alive.upper()", "call is not part"),
        ("if: dropped", "if: steps.x", "there is no fact 'steps'"),
        ("evidence: alive", "otherwise: alive", "unknown key"),
        ("facts: node", "facts: moon", "there is no set of facts 'moon'"),
        ("id: B1", "id: b-1", "is not an id"),
        ("confidence: high", "confidence: sure", "'sure' is not known"),
        ("specificity: 10", "specificity: high", "expected a whole number"),
        ("verify: look again", "verify: ''", "expected text, not an empty text"),
        ("    signature:\n", "    signatures:\n", "did you mean signature?"),
        ('- if: base == "IDLE"', '- iff: base == "IDLE"', "exactly one of if and any_of"),
        ("          - responding\n", "          - 3\n", "expected text, not a number"),
        ("table:\n", "table: []\nold:\n", "at least one item"),
    ],
)
def test_what_is_wrong_is_named(old: str, new: str, says: str) -> None:
    assert TABLE.replace(old, new, 1) != TABLE
    assert says in _said(TABLE.replace(old, new, 1))


def test_an_id_stands_once() -> None:
    row = TABLE[TABLE.index("  - id: B1") :]
    assert "the id B1 stands twice" in _said(TABLE + row)
