"""The runbooks and causes that ship and those of the site, read once at start. Files only here.

Called by `bot.wiring`. A file that does not load stops the start with all its errors: a bot that
misses half of its runbooks at night is worse than one that says so at once.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

from actions.contract import ActionSpec
from runbooks.causes import Causes, load_causes
from runbooks.definition import Definition, pin
from runbooks.load import load_runbook
from runbooks.model import Runbook
from runbooks.problems import Problem, Problems

SHIPPED = Path(__file__).parent
"""Holds `library/<name>/v<N>.yaml` and `causes/<name>/v<N>.yaml`."""


class Shelf:
    """`runbooks.parts.RunbookLibrary` over folders."""

    def __init__(self, folders: Iterable[Path], specs: Mapping[str, ActionSpec]) -> None:
        """Read every file of every folder. Raises Problems with everything that is wrong."""
        self._specs = specs
        self._books: dict[str, dict[int, Runbook]] = {}
        self._causes: dict[str, Causes] = {}
        wrong: list[Problem] = []
        for folder in folders:
            for path in sorted((folder / "library").glob("*/v*.yaml")):
                try:
                    book = load_runbook(path.read_text("utf-8"), str(path), specs)
                except Problems as problems:
                    wrong.extend(problems.problems)
                    continue
                self._books.setdefault(book.name, {})[book.version] = book
            for path in sorted((folder / "causes").glob("*/v*.yaml")):
                try:
                    self._add_causes(load_causes(path.read_text("utf-8"), str(path)))
                except Problems as problems:
                    wrong.extend(problems.problems)
        if wrong:
            raise Problems(tuple(wrong))

    def _add_causes(self, causes: Causes) -> None:
        before = self._causes.get(causes.name)
        if before is None or before.version < causes.version:
            self._causes[causes.name] = causes

    def definition(self, name: str, version: int | None = None) -> Definition:
        """Everything a run of this runbook pins. Raises KeyError with a sentence when unknown."""
        versions = self._books.get(name)
        if versions is None:
            raise KeyError(f"there is no runbook {name!r}")
        wanted = version if version is not None else max(versions)
        if wanted not in versions:
            have = ", ".join(str(number) for number in sorted(versions))
            raise KeyError(f"{name} has no version {wanted}; it has {have}")
        newest = {other: books[max(books)] for other, books in self._books.items()}
        return pin(versions[wanted], newest, self._causes, self._specs)

    def names(self) -> tuple[str, ...]:
        """Names of all runbooks."""
        return tuple(sorted(self._books))
