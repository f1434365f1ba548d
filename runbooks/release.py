"""The list of released files, and what may be done to it. Pure; called by lint and the doors.

`released.txt` has a line for each released runbook and causes file: its digest and its path. A
released file is never edited, because runs, reviews and approvals name its version: a change is a
new version.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from runbooks.load import NAME, digest_of
from runbooks.problems import Problem

RELEASED = "library/released.txt"
"""Where the list lies, from the folder that holds `library/` and `causes/`."""
_LINE = re.compile(r"([0-9a-f]{64}) {2}(\S+)", re.ASCII)
_PATH = re.compile(
    rf"(?P<shelf>library|causes)/(?P<name>{NAME.pattern})/v(?P<version>[1-9][0-9]{{0,5}})\.yaml",
    re.ASCII,
)
_HEAD = "# SHA-256 and path of each released file. A released file is never edited: add the next version.\n"


class ReleaseRefused(ValueError):
    """A file cannot be released; says why and what to do instead."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Place:
    """Where a file of the language lies: `library/<name>/v<N>.yaml` or `causes/<name>/v<N>.yaml`."""

    shelf: str
    name: str
    version: int

    @property
    def path(self) -> str:
        """Relative path, with forward slashes."""
        return f"{self.shelf}/{self.name}/v{self.version}.yaml"

    @property
    def next(self) -> "Place":
        """The version after this one."""
        return Place(shelf=self.shelf, name=self.name, version=self.version + 1)


def place_of(path: str) -> Place | None:
    """What a relative path means, or None when it is not a place for such a file."""
    found = _PATH.fullmatch(path)
    if found is None:
        return None
    return Place(shelf=found["shelf"], name=found["name"], version=int(found["version"]))


def read_released(text: str) -> tuple[Mapping[str, str], tuple[Problem, ...]]:
    """Digest by path, and what is wrong with the list itself."""
    digests: dict[str, str] = {}
    problems: list[Problem] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        found = _LINE.fullmatch(line)
        if found is None or place_of(found[2]) is None:
            problems.append(_problem(number, "expected a digest, two spaces and a path"))
        elif found[2] in digests:
            problems.append(_problem(number, f"{found[2]} stands twice"))
        else:
            digests[found[2]] = found[1]
    return digests, tuple(problems)


def check_released(released: str, texts: Mapping[str, str]) -> tuple[Problem, ...]:
    """Released files that were edited or removed. Drafts are not in the list, and fine."""
    digests, problems = read_released(released)
    found = list(problems)
    for path, digest in digests.items():
        place = place_of(path)
        text = texts.get(path)
        if text is None:
            found.append(Problem(path, 1, 1, "", "was released and is gone: put it back"))
        elif place is not None and digest_of(text) != digest:
            found.append(Problem(path, 1, 1, "", _edited(place)))
    return tuple(found)


def release(path: str, texts: Mapping[str, str], released: str) -> str:
    """The list with this file in it. Raises ReleaseRefused."""
    place = place_of(path)
    if place is None or path not in texts:
        raise ReleaseRefused(
            f"{path} is not a file of this library: expected library/<name>/v<N>.yaml"
        )
    digests, problems = read_released(released)
    if problems:
        raise ReleaseRefused(f"{RELEASED} cannot be read: {problems[0]}")
    if path in digests:
        same = digests[path] == digest_of(texts[path])
        done = "is released already; nothing to do"
        raise ReleaseRefused(f"{path} {done if same else _edited(place)}")
    highest = max(
        (
            other.version
            for other in map(place_of, digests)
            if other is not None and (other.shelf, other.name) == (place.shelf, place.name)
        ),
        default=0,
    )
    if place.version != highest + 1:
        raise ReleaseRefused(
            f"{path}: the next version of {place.name} is {highest + 1}, not {place.version}"
        )
    return written({**digests, path: digest_of(texts[path])})


def written(digests: Mapping[str, str]) -> str:
    """The list as it is written: sorted, one line a file."""
    return _HEAD + "".join(f"{digests[path]}  {path}\n" for path in sorted(digests))


def _edited(place: Place) -> str:
    return f"was edited after its release: put the released text back and add {place.next.path} instead"


def _problem(line: int, message: str) -> Problem:
    return Problem(RELEASED, line, 1, "", message)
