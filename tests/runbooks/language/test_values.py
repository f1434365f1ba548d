"""A value is held against its declared type right before it is used."""

import pytest

from actions.contract import Field, ValueType
from config.json_values import Json
from runbooks.values import misfit, misfits

GOOD: list[tuple[ValueType, Json]] = [
    (ValueType.TEXT, "Kernel 6.1: 'x'"),
    (ValueType.NUMBER, -3),
    (ValueType.TRUTH, False),
    (ValueType.DURATION, "15m"),
    (ValueType.NODE, "gpu-017.cluster"),
    (ValueType.NODES, ["gpu-1", "gpu-2"]),
    (ValueType.UNIT, "slurmd@1.service"),
    (ValueType.JOB, "12"),
    (ValueType.JOB, "12_3"),
    (ValueType.JOB, "12+1"),
    (ValueType.FACTS, {"a": [1]}),
]
BAD: list[tuple[ValueType, Json, str]] = [
    (ValueType.TEXT, 3, "expected text"),
    (ValueType.TEXT, "x" * 4097, "longer than"),
    (ValueType.TEXT, "a\0b", "NUL"),
    (ValueType.NUMBER, "3", "expected a whole number"),
    (ValueType.NUMBER, True, "expected a whole number"),
    (ValueType.TRUTH, 1, "expected true or false"),
    (ValueType.TRUTH, "true", "expected true or false"),
    (ValueType.DURATION, "90", "a unit"),
    (ValueType.DURATION, 90, "such as 90s"),
    (ValueType.NODE, "gpu-[1-4]", "not a node name"),
    (ValueType.NODE, "-oProxyCommand=x", "not a node name"),
    (ValueType.NODE, "gpu-1\n", "not a node name"),
    (ValueType.NODES, [], "never taken to mean all nodes"),
    (ValueType.NODES, "gpu-1", "expected a list"),
    (ValueType.NODES, ["gpu-1", "*"], "not a node name"),
    (ValueType.UNIT, "-x", "systemd unit"),
    (ValueType.JOB, "12_[1-3]", "job id"),
    (ValueType.JOB, "-1", "job id"),
    (ValueType.JOB, "12 13", "job id"),
    (ValueType.JOB, "", "job id"),
    (ValueType.JOB, 12, "job id"),
    (ValueType.UNIT, "a b", "systemd unit"),
    (ValueType.UNIT, "", "systemd unit"),
    (ValueType.UNIT, "ä", "systemd unit"),
    (ValueType.FACTS, "a", "expected a mapping"),
]


@pytest.mark.parametrize(("kind", "value"), GOOD)
def test_a_value_of_its_type_fits(kind: ValueType, value: Json) -> None:
    assert misfit(kind, value) == ""


@pytest.mark.parametrize(("kind", "value", "says"), BAD)
def test_any_other_value_is_refused_with_what_would_be_right(
    kind: ValueType, value: Json, says: str
) -> None:
    assert says in misfit(kind, value)
    assert misfit(kind, None) != ""


def test_arguments_are_held_against_the_contract() -> None:
    fields = {
        "node": Field(type=ValueType.NODE, help="n"),
        "why": Field(type=ValueType.TEXT, help="w", required=False),
    }
    assert misfits(fields, {"node": "gpu-1"}) == ()
    assert misfits(fields, {"node": "gpu-1", "why": None}) == ()
    assert misfits(fields, {"node": None, "host": "x"}) == (
        "host: there is no such argument",
        "node: expected a node name, not null",
    )
