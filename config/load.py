"""From configuration files to one `Settings`, or to the list of everything that is wrong with them.

Called by the command line and by `bot.wiring`. Never prints a value that stands in a file: it may be
a secret that somebody put in the wrong place.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import ValidationError

from config.cross_checks import findings
from config.field_errors import explain
from config.json_values import Json
from config.settings import Settings
from config.yaml_reader import LARGEST_FILE, Positioned, YamlProblem, YamlProblems, read
from config.yaml_reader import Path as KeyPath

SHIPPED_ROLES = Path(__file__).parent / "roles.yaml"


@dataclass(frozen=True, slots=True, order=True)
class ConfigProblem:
    """One thing that is wrong: file, place, key path, and what would be right."""

    source: str
    line: int
    column: int
    key: str
    message: str

    def __str__(self) -> str:
        """`file:line:column: key: message`."""
        key = f"{self.key}: " if self.key else ""
        return f"{self.source}:{self.line}:{self.column}: {key}{self.message}"


class ConfigErrors(ValueError):
    """Files that cannot be used; `problems` holds everything that was found."""

    def __init__(self, problems: Sequence[ConfigProblem]) -> None:
        """All problems, in the order of the files."""
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = tuple(problems)


def load(paths: Sequence[Path]) -> Settings:
    """The settings that these files hold together. Raises ConfigErrors.

    Sections may be spread over files; an entry of a section may be given once. The shipped roles
    are there already, and a role of the same name replaces the shipped one.
    """
    merged = _Merged()
    for path in paths:
        merged.add(path)
    if merged.problems:
        # what a file holds is not known, so nothing can be said of what is missing
        raise ConfigErrors(merged.in_order())
    merged.add_shipped_roles()
    settings = merged.settings()
    if merged.problems or settings is None:
        raise ConfigErrors(merged.in_order())
    return settings


@dataclass(slots=True)
class _Merged:
    """The files as one document, with the file that each entry came from."""

    values: dict[str, Json] = field(default_factory=dict)
    origins: dict[KeyPath, Positioned] = field(default_factory=dict)
    files: list[str] = field(default_factory=list)
    problems: list[ConfigProblem] = field(default_factory=list)

    def add(self, path: Path) -> None:
        """Read one more file into the document."""
        self.files.append(str(path))
        try:
            document = read(_text_of(path), str(path))
        except YamlProblems as error:
            self.problems.extend(_unkeyed(problem) for problem in error.problems)
        except OSError as error:
            message = f"cannot be read: {error.strerror}; check the path and its permissions"
            self.problems.append(ConfigProblem(str(path), 1, 1, "", message))
        else:
            self._merge(document)

    def add_shipped_roles(self) -> None:
        """Put in each shipped role that no file replaces."""
        shipped = read(SHIPPED_ROLES.read_text("utf-8"), SHIPPED_ROLES.name)
        roles = shipped.value["roles"] if isinstance(shipped.value, Mapping) else None
        given = self.values.setdefault("roles", {})
        if not isinstance(given, dict) or not isinstance(roles, Mapping):
            return
        for name, role in roles.items():
            if name not in given:
                given[name] = role
                self.origins["roles", name] = shipped

    def settings(self) -> Settings | None:
        """The settings, or None with the problems noted."""
        for finding in findings(self.values):
            self._note(finding.path, finding.message)
        try:
            return Settings.model_validate(self.values)
        except ValidationError as error:
            for path, message in explain(error):
                self._note(path, message)
            return None

    def in_order(self) -> list[ConfigProblem]:
        """Problems by file and line, each once."""
        rank = {name: index for index, name in enumerate(self.files)}
        unique = sorted(set(self.problems))
        return sorted(unique, key=lambda problem: rank.get(problem.source, len(rank)))

    def _merge(self, document: Positioned) -> None:
        if not isinstance(document.value, Mapping):
            self._problem(document, (), "a mapping of sections is expected; see example.yaml")
            return
        for section, value in document.value.items():
            present = self.values.get(section)
            if section not in self.values:
                self.values[section] = dict(value) if isinstance(value, Mapping) else value
                self.origins[section,] = document
                self._own(document, section, value)
            elif isinstance(present, dict) and isinstance(value, Mapping):
                self._merge_section(document, section, present, value)
            else:
                self._twice(document, (section,))

    def _merge_section(
        self, document: Positioned, section: str, present: dict[str, Json], more: Mapping[str, Json]
    ) -> None:
        for key in [key for key in more if key in present]:
            self._twice(document, (section, key))
        fresh = {key: value for key, value in more.items() if key not in present}
        present.update(fresh)
        self._own(document, section, fresh)

    def _own(self, document: Positioned, section: str, value: Json) -> None:
        if isinstance(value, Mapping):
            self.origins.update({(section, key): document for key in value})

    def _twice(self, document: Positioned, path: KeyPath) -> None:
        first = self.origins.get(path) or self.origins[path[:1]]
        line = first.position(path)[0]
        self._problem(document, path, f"given already in {first.source}, line {line}; keep one")

    def _note(self, path: KeyPath, message: str) -> None:
        """A problem at `path`, in the file that the entry came from."""
        document = self.origins.get(path[:2]) or self.origins.get(path[:1])
        if document is not None:
            self._problem(document, path, message)
        elif self.files:
            self.problems.append(ConfigProblem(self.files[0], 1, 1, _dotted(path), message))
        else:
            self.problems.append(ConfigProblem("(no file)", 1, 1, _dotted(path), message))

    def _problem(self, document: Positioned, path: KeyPath, message: str) -> None:
        line, column = document.position(path)
        self.problems.append(ConfigProblem(document.source, line, column, _dotted(path), message))


def _text_of(path: Path) -> str:
    """The text of the file, no more of it than is accepted. Raises OSError, YamlProblems."""
    with path.open("rb") as file:
        raw = file.read(LARGEST_FILE + 1)
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise YamlProblems((YamlProblem(str(path), line, 1, "this is not UTF-8 text"),)) from None


def _unkeyed(problem: YamlProblem) -> ConfigProblem:
    return ConfigProblem(problem.source, problem.line, problem.column, "", problem.message)


def _dotted(path: KeyPath) -> str:
    return ".".join(str(part) for part in path)
