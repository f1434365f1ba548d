"""Everything that can be said of a folder of runbooks and causes without running one. Pure.

Called by `runbooks.library_files`, which reads the folder, for the doors, the start of the bot and
the tests of the shipped library.
"""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field

from actions.contract import ActionSpec
from runbooks.calls import check_calls
from runbooks.causes import Causes, load_causes
from runbooks.definition import Definition, pin
from runbooks.load import load_runbook
from runbooks.model import Runbook
from runbooks.problems import Problem, Problems
from runbooks.release import RELEASED, Place, check_released, place_of, read_released


@dataclass(frozen=True, slots=True, kw_only=True)
class Library:
    """All versions that could be read, and which of them are released."""

    runbooks: Mapping[Place, Runbook] = field(default_factory=dict)
    causes: Mapping[Place, Causes] = field(default_factory=dict)
    released: frozenset[str] = frozenset()
    """Paths in the list of released files."""
    registry: Mapping[str, ActionSpec] = field(default_factory=dict)
    """The contracts that the files were held against."""

    def names(self) -> tuple[str, ...]:
        """Names of all runbooks that can be asked for."""
        return tuple(sorted(self.newest))

    def definition(self, name: str, version: int | None = None) -> Definition:
        """Everything a run of this runbook pins, the newest released version by default.

        Raises KeyError with a sentence when there is no such released version.
        """
        newest = self.newest
        if name not in newest:
            near = difflib.get_close_matches(name, self.names(), n=1)
            meant = f"; did you mean {near[0]}?" if near else ""
            known = ", ".join(self.names())
            raise KeyError(f"there is no runbook {name!r}{meant} (there are {known})")
        asked = Place(shelf="library", name=name, version=version or newest[name].version)
        if asked.path not in self.released or asked not in self.runbooks:
            versions = [
                str(place.version)
                for place in sorted(self.runbooks)
                if place.name == name and place.path in self.released
            ]
            raise KeyError(
                f"{name} has no released version {asked.version}; it has {', '.join(versions)}"
            )
        return pin(self.runbooks[asked], newest, self.newest_causes, self.registry)

    @property
    def newest(self) -> Mapping[str, Runbook]:
        """The newest released version of each runbook: what a request by name gets."""
        return {
            place.name: book
            for place, book in sorted(self.runbooks.items(), key=lambda item: item[0])
            if place.path in self.released
        }

    @property
    def newest_causes(self) -> Mapping[str, Causes]:
        """The newest released version of each causes file."""
        return {
            place.name: causes
            for place, causes in sorted(self.causes.items(), key=lambda item: item[0])
            if place.path in self.released
        }

    @property
    def latest(self) -> Mapping[str, Runbook]:
        """The newest version of each runbook, released or not: what drafts are held against."""
        return {place.name: self.runbooks[place] for place in sorted(self.runbooks)}

    @property
    def latest_causes(self) -> Mapping[str, Causes]:
        """The newest version of each causes file, released or not."""
        return {place.name: self.causes[place] for place in sorted(self.causes)}


def examine(
    texts: Mapping[str, str], registry: Mapping[str, ActionSpec]
) -> tuple[Library, tuple[Problem, ...]]:
    """What is in these files (relative path to text), and everything that is wrong with them."""
    problems: list[Problem] = []
    runbooks: dict[Place, Runbook] = {}
    causes: dict[Place, Causes] = {}
    for path in sorted(texts.keys() - {RELEASED}):
        place = place_of(path)
        if place is None:
            problems.append(Problem(path, 1, 1, "", "expected <name>/v<N>.yaml: move the file"))
            continue
        try:
            _take(place, texts[path], registry, (runbooks, causes))
        except Problems as error:
            problems.extend(error.problems)
    digests, _ = read_released(texts.get(RELEASED, ""))
    library = Library(
        runbooks=runbooks, causes=causes, released=frozenset(digests), registry=registry
    )
    problems.extend(check_released(texts.get(RELEASED, ""), texts))
    problems.extend(_cross_problems(library, registry))
    return library, tuple(sorted(set(problems)))


def _take(
    place: Place,
    text: str,
    registry: Mapping[str, ActionSpec],
    shelves: tuple[dict[Place, Runbook], dict[Place, Causes]],
) -> None:
    """Read one file on to its shelf. Raises Problems."""
    runbooks, causes = shelves
    read: Runbook | Causes
    if place.shelf == "library":
        read = runbooks[place] = load_runbook(text, place.path, registry)
    else:
        read = causes[place] = load_causes(text, place.path)
    if (read.name, read.version) != (place.name, place.version):
        message = (
            f"says {read.name} version {read.version}, but its path says {place.name} "
            f"version {place.version}: make them the same"
        )
        raise Problems([Problem(place.path, 1, 1, "version", message)])


def _cross_problems(library: Library, registry: Mapping[str, ActionSpec]) -> list[Problem]:
    """What only shows when the files are seen together."""
    found: list[Problem] = []
    shelf, causes = library.latest, library.latest_causes
    for place, runbook in library.runbooks.items():
        found.extend(check_calls(runbook, place.path, shelf, causes, registry))
    places = {*library.runbooks, *library.causes}
    for place in places:
        before = Place(shelf=place.shelf, name=place.name, version=place.version - 1)
        if place.version > 1 and before not in places:
            message = f"there is no {before.path}: versions have no gaps, rename this one"
            found.append(Problem(place.path, 1, 1, "version", message))
    return found
