"""Durations have a unit, always."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from config.durations import format_duration, parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"), [("500ms", 0.5), ("90s", 90), ("15m", 900), ("2h", 7200), ("1d", 86400)]
)
def test_a_duration_is_a_whole_number_and_a_unit(text: str, seconds: float) -> None:
    assert parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "text", ["", "15", "0s", "-5m", "1.5h", "5 m", "5m\n", "٥m", "1w", "m", "99999999s", "010s"]
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="a whole number and a unit"):
        parse_duration(text)


@given(st.integers(1, 9_999_999), st.sampled_from(["ms", "s", "m", "h", "d"]))
def test_what_is_written_reads_back(count: int, unit: str) -> None:
    duration = parse_duration(f"{count}{unit}")
    assert parse_duration(format_duration(duration)) == duration
