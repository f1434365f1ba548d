"""What is wrong with a file of the runbook language: where, which key, and what would be right.

Made by the loaders and by lint, shown by the doors. Values only.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from config.yaml_reader import Path, Positioned, YamlProblem


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """One thing to correct."""

    source: str
    line: int
    column: int
    key: str
    """The way to it, `steps.2.with.node`; empty for the file as a whole."""
    message: str

    def __str__(self) -> str:
        """`file:line:column: key: message`."""
        where = f"{self.source}:{self.line}:{self.column}"
        return f"{where}: {self.key}: {self.message}" if self.key else f"{where}: {self.message}"


class Problems(ValueError):
    """A file that is not accepted; `problems` holds everything found, in the order of the file."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        """All problems of one or several files."""
        self.problems = tuple(sorted(set(problems)))
        super().__init__("\n".join(str(problem) for problem in self.problems))


class Findings:
    """Collects the problems of one file while it is read."""

    def __init__(self, document: Positioned) -> None:
        self.document = document
        self.problems: list[Problem] = []

    def add(self, path: Path, message: str) -> None:
        """Remember that the value at `path` is wrong."""
        line, column = self.document.position(path)
        key = ".".join(str(part) for part in path)
        self.problems.append(Problem(self.document.source, line, column, key, message))


def from_reader(problems: Iterable[YamlProblem]) -> tuple[Problem, ...]:
    """Problems of the YAML itself in the form of this page."""
    return tuple(
        Problem(problem.source, problem.line, problem.column, "", problem.message)
        for problem in problems
    )
