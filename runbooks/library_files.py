"""Reads and writes the folders in which runbooks and causes lie: the thin layer over `lint`.

Called by the wiring at start and by `nodewarden runbook …`. It never executes anything it reads.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

from actions.contract import ActionSpec
from config.yaml_reader import LARGEST_FILE, YamlProblems
from config.yaml_reader import read as read_yaml
from runbooks.calls import check_calls
from runbooks.causes import Causes, load_causes
from runbooks.lint import Library, examine
from runbooks.load import load_runbook
from runbooks.model import Runbook
from runbooks.problems import Problem, Problems, from_reader
from runbooks.release import RELEASED, place_of, release

SHIPPED = Path(__file__).parent
"""The folder with the `library/` and `causes/` that come with the program."""
_SHELVES = ("library", "causes")


def lint(roots: Iterable[Path], registry: Mapping[str, ActionSpec]) -> tuple[Problem, ...]:
    """Every problem in the folders `library/` and `causes/` of these roots."""
    texts, problems = _read_all(roots)
    _, found = examine(texts, registry)
    return tuple(sorted({*problems, *found}))


def load_library(roots: Iterable[Path], registry: Mapping[str, ActionSpec]) -> Library:
    """The library in these roots. Raises Problems: a bot does not start with half a library."""
    texts, problems = _read_all(roots)
    library, found = examine(texts, registry)
    if problems or found:
        raise Problems([*problems, *found])
    return library


def release_file(
    root: Path, path: str, roots: Iterable[Path], registry: Mapping[str, ActionSpec]
) -> None:
    """Put `path` into the list of released files of `root`, one of `roots`.

    Raises ReleaseRefused, and Problems when anything in `roots` is wrong.
    """
    load_library(roots, registry)
    own, _ = _read_all([root])
    text = release(path, own, own.get(RELEASED, ""))
    target = root / RELEASED
    target.parent.mkdir(parents=True, exist_ok=True)
    beside = target.with_suffix(".new")
    beside.write_text(text, encoding="utf-8")
    beside.replace(target)


def root_of(file: Path) -> Path | None:
    """The library in which a file lies at its place; None for a file that lies elsewhere."""
    whole = file.absolute()
    if len(whole.parents) < 3 or place_of(whole.relative_to(whole.parents[2]).as_posix()) is None:
        return None
    return whole.parents[2]


def read_file(file: Path) -> str:
    """The text of one file. Raises Problems."""
    text, why = _read(file)
    if why:
        raise Problems([Problem(str(file), 1, 1, "", why)])
    return text


def load_file(file: Path, registry: Mapping[str, ActionSpec]) -> Runbook | Causes:
    """A runbook or causes file by itself, wherever it lies. Raises Problems."""
    text = read_file(file)
    try:
        value = read_yaml(text, str(file)).value
    except YamlProblems as error:
        raise Problems(from_reader(error.problems)) from error
    if isinstance(value, Mapping) and "causes" in value and "runbook" not in value:
        return load_causes(text, str(file))
    return load_runbook(text, str(file), registry)


def file_problems(file: Path, library: Library) -> tuple[Problem, ...]:
    """What is wrong with a file that lies in no library, held against what it may call there."""
    try:
        loaded = load_file(file, library.registry)
    except Problems as error:
        return error.problems
    if not isinstance(loaded, Runbook):
        return ()
    causes = library.latest_causes
    shelf = {**library.latest, loaded.name: loaded}
    return check_calls(loaded, str(file), shelf, causes, library.registry)


def _read_all(roots: Iterable[Path]) -> tuple[dict[str, str], list[Problem]]:
    """Texts by relative path; a path that two roots have is a problem."""
    texts: dict[str, str] = {}
    problems: list[Problem] = []
    for root in roots:
        for file in _files(root):
            path = file.relative_to(root).as_posix()
            text, why = _read(file)
            if why:
                problems.append(Problem(path, 1, 1, "", why))
            elif path == RELEASED:
                texts[path] = texts.get(path, "") + text
            elif path in texts:
                problems.append(Problem(path, 1, 1, "", "lies in two libraries: rename one"))
            else:
                texts[path] = text
    return texts, problems


def _files(root: Path) -> list[Path]:
    found = [file for shelf in _SHELVES for file in (root / shelf).rglob("*.yaml")]
    listed = root / RELEASED
    return sorted(found) + ([listed] if listed.is_file() else [])


def _read(file: Path) -> tuple[str, str]:
    """The text of one file, or why there is none."""
    if file.is_symlink():
        return "", "is a symbolic link: a released file must be the file itself"
    try:
        with file.open("rb") as handle:
            content = handle.read(LARGEST_FILE + 1)
    except OSError as error:
        return "", f"cannot be read: {error.strerror}; check the path and its permissions"
    if len(content) > LARGEST_FILE:
        return "", f"is larger than {LARGEST_FILE:,} bytes"
    try:
        return content.decode("utf-8"), ""
    except UnicodeDecodeError as error:
        return "", f"is not UTF-8 at byte {error.start}: save it as UTF-8"
