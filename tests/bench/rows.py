"""What a measurement gives: rows of one table, each with its target and what it was compared with."""

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Number:
    """One measured number."""

    name: str
    value: float
    unit: str
    target: str = ""
    """`<= 300` or `>= 2000`, in the same unit; empty where none is set."""
    baseline: float | None = None
    """The same thing without this program, measured in the same run."""
    samples: int = 1
    under: str = ""
    """The conditions: rows, runs, threads, what the baseline is."""

    @property
    def holds(self) -> bool | None:
        """Whether the target is met; None where there is none."""
        if not self.target:
            return None
        sign, _, limit = self.target.partition(" ")
        return self.value <= float(limit) if sign == "<=" else self.value >= float(limit)


def quantile(values: Sequence[float], share: float) -> float:
    """The smallest value that `share` of all values do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def table(numbers: Sequence[Number]) -> str:
    """All rows, with columns as wide as they need."""
    head = ("number", "value", "baseline", "ratio", "target", "", "samples", "conditions")
    cells = [head, *(_cells(number) for number in numbers)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(head))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        for row in cells
    ]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(line.rstrip() for line in lines)


def _cells(number: Number) -> tuple[str, ...]:
    base = number.baseline
    word = {True: "met", False: "MISSED", None: ""}[number.holds]
    return (
        number.name,
        f"{_short(number.value)} {number.unit}",
        f"{_short(base)} {number.unit}" if base is not None else "",
        f"{number.value / base:.2f}" if base else "",
        f"{number.target} {number.unit}" if number.target else "",
        word,
        f"{number.samples:,}",
        number.under,
    )


def _short(value: float) -> str:
    """Three digits that mean something."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"
