"""Expressions mean what stands in the file, whatever the values hold."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from config.json_values import Json
from runbooks.expressions import (
    LARGEST_RESULT,
    ExpressionError,
    evaluate,
    known_truth,
    names_used,
    sole_name,
    template_names,
    truth,
    value_of,
)

NAMES: dict[str, Json] = {
    "node": "gpu-017",
    "count": 8,
    "digits": "010",
    "yes": True,
    "nothing": None,
    "steps": {
        "facts": {"output": {"flags": ["DRAIN", "IDLE"], "items": "a key", "x": {"y": 1}}},
        "odd-id": {"output": {"id": "A1"}},
    },
}

json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=30),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=12,
)
hostile = st.sampled_from(
    [
        "{{ node }}", "{{ 7 * 7 }}", "{% for x in y %}", "{# x #}", "}}", "{{", "${node}",
        "{{ steps.facts.output }}", "'; drop", "010", "1:30", "no", "null", "1e3", "__class__",
        "{{ ''.__class__.__mro__ }}", "%s", "{0.__class__}", "\ud800", "\x00",
    ]
) | st.text(max_size=40)  # fmt: skip


@given(json_values)
def test_one_expression_alone_keeps_value_and_type(value: Json) -> None:
    got = evaluate("{{ x }}", {"x": value})
    assert got == value
    assert type(got) is type(value)


@given(hostile)
def test_a_value_is_never_evaluated_again(value: str) -> None:
    names: dict[str, Json] = {"x": value, "node": "gpu-1", "steps": {"facts": {"output": {"s": 1}}}}
    assert evaluate("{{ x }}", names) == value
    assert evaluate("<{{ x }}>", names) == f"<{value}>"
    assert evaluate({"a": ["{{ x }}{{ x }}"]}, names) == {"a": [value + value]}


@given(st.integers(-(2**53), 2**53))
def test_a_text_of_digits_stays_text(number: int) -> None:
    names = {"x": str(number)}
    assert evaluate("{{ x }}", names) == str(number)
    assert truth("x == 5", {"x": "5"}) is False
    with pytest.raises(ExpressionError, match="never read as one"):
        value_of("x + 1", names)


@given(st.text(max_size=60))
def test_a_text_without_braces_is_itself(text: str) -> None:
    plain = text.replace("{", "").replace("}", "").replace("#", "").replace("%", "")
    assert evaluate(plain, {}) == plain


@given(st.text(alphabet="{}%#()[]|.'\"~*+-/ abxy019_,:=!<>\\\n", max_size=60))
def test_any_template_gives_a_value_or_an_expression_error(text: str) -> None:
    for read in (evaluate, value_of):
        try:
            json.dumps(read(text, NAMES))
        except ExpressionError:
            continue


@pytest.mark.parametrize(
    "template",
    [
        "{{ node.upper() }}",
        "{{ range(9) }}",
        "{{ lipsum() }}",
        "{{ cycler('a') }}",
        "{% for x in [1] %}a{% endfor %}",
        "{% set x = 1 %}",
        "{# note #}",
        "{{ 'a' ~ 'b' }}",
        "{{ 2 ** 9 }}",
        "{{ 1 / 2 }}",
        "{{ 1.5 }}",
        "{{ node[0:2] }}",
        "{{ {'a': 1} }}",
        "{{ (1, 2) }}",
        "{{ [1, 2] | random }}",
        "{{ node | replace('g', 'h') }}",
        "{{ node | attr('upper') }}",
        "{{ node is callable }}",
        "{{ node | join(d=',') }}",
        "{{ 'x' if yes }}",
        "{{ }}",
        "{{ node",
        "{{ 9007199254740993 }}",
        "{{ " + "(" * 900 + "1" + ")" * 900 + " }}",
        "{{ " + "not " * 1000 + "yes }}",
        "{{ node }}" + "x" * 4096,
    ],
)
def test_what_is_not_part_of_the_language_is_refused(template: str) -> None:
    with pytest.raises(ExpressionError):
        evaluate(template, NAMES)


@pytest.mark.parametrize("template", ["{{ 'a' * 3 }}", "{{ node * count }}", "{{ [1] * 3 }}"])
def test_only_numbers_are_multiplied(template: str) -> None:
    with pytest.raises(ExpressionError, match="not a number"):
        evaluate(template, NAMES)


def test_numbers_stay_within_what_the_ledger_holds() -> None:
    assert value_of("count * 2 + 1 - 3 // 2 % 5", NAMES) == 16
    with pytest.raises(ExpressionError, match="beyond"):
        value_of("count * 9007199254740992", NAMES)
    with pytest.raises(ExpressionError, match="division by zero"):
        value_of("count // 0", NAMES)


@pytest.mark.parametrize(
    "name", ["__class__", "upper", "format", "keys", "pop", "__init__", "get", "append"]
)
def test_a_dot_looks_up_keys_and_nothing_else(name: str) -> None:
    for base in ("node", "steps", "steps.facts.output.flags", "count"):
        assert truth(f"{base}.{name} is defined", NAMES) is False
        assert truth(f'{base}["{name}"] is defined', NAMES) is False
    assert value_of("steps.facts.output.items", NAMES) == "a key"


def test_a_missing_name_is_an_error_that_names_it_unless_asked() -> None:
    with pytest.raises(ExpressionError, match=r"steps\.gone\.output\.id"):
        value_of("steps.gone.output.id == 'A1'", NAMES)
    with pytest.raises(ExpressionError, match="nowhere"):
        evaluate({"a": [{"b": "{{ nowhere }}"}]}, NAMES)
    assert truth("steps.gone is defined", NAMES) is False
    assert truth("steps.gone.output.id is defined", NAMES) is False
    assert truth("steps.facts is defined and steps.gone is undefined", NAMES) is True
    assert value_of("steps.gone.output.id | default('none')", NAMES) == "none"
    with pytest.raises(ExpressionError):
        value_of("[steps.gone]", NAMES)


def test_true_is_not_one_and_text_is_not_true() -> None:
    assert truth("yes == 1", NAMES) is False
    assert truth("1 in [yes]", NAMES) is False
    assert truth("steps.facts.output.x == steps.facts.output.x", NAMES) is True
    for expression in ("node and yes", "not node", "count or yes", "node if count else node"):
        with pytest.raises(ExpressionError, match="not true or false"):
            value_of(expression, NAMES)


@pytest.mark.parametrize("expression", ["node", "count", "nothing", "steps.facts.output.flags"])
def test_a_condition_gives_a_boolean_or_an_error(expression: str) -> None:
    with pytest.raises(ExpressionError, match="must give true or false"):
        truth(expression, NAMES)


@pytest.mark.parametrize("expression", ["{{ yes }}", "yes }} {{ node", "yes node", ""])
def test_a_bare_expression_has_no_braces_and_nothing_after_it(expression: str) -> None:
    with pytest.raises(ExpressionError):
        truth(expression, NAMES)


def test_null_and_lists_do_not_slip_into_text() -> None:
    with pytest.raises(ExpressionError, match="null cannot stand inside text"):
        evaluate("is {{ nothing }}", NAMES)
    with pytest.raises(ExpressionError, match="a list cannot stand inside text"):
        evaluate("is {{ steps.facts.output.flags }}", NAMES)
    assert evaluate("{{ steps.facts.output.flags | join('+') }}", NAMES) == "DRAIN+IDLE"
    assert evaluate("is {{ yes }} {{ count }} {{ digits }}", NAMES) == "is true 8 010"
    assert evaluate("is {{ nothing | if_empty('unset') }}", NAMES) == "is unset"


def test_a_result_is_bounded() -> None:
    big: dict[str, Json] = {"x": "a" * 40_000, "l": ["b" * 1000] * 50}
    assert len(str(evaluate("{{ x }}", big))) == 40_000
    too_much: tuple[Json, ...] = (
        ["{{ x }}", "{{ x }}"],
        {"a": {"b": "{{ x }}"}, "c": "{{ x }}"},
    )
    for template in too_much:
        with pytest.raises(ExpressionError, match=f"{LARGEST_RESULT:,}"):
            evaluate(template, big)
    for text in ("{{ x }}{{ x }}", "{{ l | join('c' ) }}{{ x }}"):
        with pytest.raises(ExpressionError, match="the text would be larger"):
            evaluate(text, big)


def test_filters_say_what_people_read() -> None:
    facts: dict[str, Json] = {
        "age": 93_600,
        "log": "ok\nNVRM: Xid (PCI:1): 79, x\nlast",
        "p": {"b": "UP", "a": "DOWN"},
    }
    assert value_of("age | age", facts) == "1 d 2 h"
    assert value_of("log | line_with('Xid') | shorten(10)", facts) == "NVRM: Xid…"
    assert value_of("p | pairs", facts) == "a DOWN, b UP"
    assert value_of("p | values", facts) == ["DOWN", "UP"]
    assert value_of("['x', 'y'] | prefixed('node:')", facts) == ["node:x", "node:y"]
    assert value_of("log is starting_with('ok')", facts) is True


def test_the_names_that_an_expression_reads_are_known() -> None:
    used = names_used('steps.cause.output.id == "A1" and node in ["x"] or steps["odd-id"].output')
    assert used == {"steps.cause.output.id", "node", "steps.odd-id.output"}
    assert names_used("steps.gone is defined") == {"steps.gone"}
    assert template_names({"a": ["{{ node }} {{ x.y | if_empty(z) }}"], "b": 3}) == {
        "node",
        "x.y",
        "z",
    }
    assert sole_name("{{ a.b }}") == "a.b"
    assert sole_name("{{ a.b }} ") is None
    assert sole_name("{{ a | trim }}") is None


@pytest.mark.parametrize(
    ("expression", "truth_of_it"),
    [
        ("known and open == 1", None),
        ("not known and open == 1", False),
        ("known or open == 1", True),
        ("not known or open == 1", None),
        ("not (open == 1)", None),
        ("open is null", None),
        ("open in [1] or not (known and known)", None),
        ("known and (open == 1 or known)", True),
    ],
)
def test_what_is_not_known_is_neither_true_nor_false(
    expression: str, truth_of_it: bool | None
) -> None:
    assert known_truth(expression, {"known": True, "open": None}) is truth_of_it
