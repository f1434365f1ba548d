"""`nodewarden runbook lint|diff|release|test`: runbooks as files, without a bot or a cluster.

Loaded by `bot.cli`. It reads the files it is given and the shipped library, and runs nothing of
them; only `release` writes, and only the list of released files.
"""

import json
import sys
from pathlib import Path
from typing import NoReturn

import click

from actions.catalogue import contracts
from bot.terminal import plain
from runbooks.definition import Definition, pin
from runbooks.diff import diff as compared
from runbooks.library_files import (
    SHIPPED,
    file_problems,
    load_file,
    load_library,
    read_file,
    release_file,
    root_of,
)
from runbooks.library_files import lint as examined
from runbooks.model import Runbook
from runbooks.problems import Problem, Problems
from runbooks.rehearsal import read_description, rehearse
from runbooks.release import ReleaseRefused, place_of
from runbooks.values import ParameterError

_JSON = click.option("--json", "as_json", is_flag=True, help="Answer as JSON.")
_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)


@click.group()
def runbook() -> None:
    """Runbooks and causes as files."""


@runbook.command()
@click.argument("paths", type=click.Path(path_type=Path, exists=True), nargs=-1)
@_JSON
def lint(paths: tuple[Path, ...], as_json: bool) -> None:
    """Say everything that is wrong with these files or libraries; without PATHS, the shipped one.

    A library is a folder that holds library/ and causes/. Ends with 1 when anything is wrong.
    """
    problems = sorted({problem for path in paths or (SHIPPED,) for problem in _problems(path)})
    if as_json:
        click.echo(json.dumps({"good": not problems, "problems": [_row(one) for one in problems]}))
    for problem in [] if as_json else problems:
        click.echo(plain(str(problem)), err=True)
    if not problems and not as_json:
        click.echo("good: nothing is wrong")
    sys.exit(1 if problems else 0)


@runbook.command()
@click.argument("old", type=_FILE)
@click.argument("new", type=_FILE)
@_JSON
def diff(old: Path, new: Path, as_json: bool) -> None:
    """What changed between two files: first the meaning, then the text.

    Ends as diff(1) does: 0 the same, 1 different, 2 one of them cannot be read.
    """
    try:
        lines = compared(load_file(old, contracts()), load_file(new, contracts())).splitlines()
    except Problems as problem:
        _say_problems(problem, as_json=as_json)
        sys.exit(2)
    if as_json:
        click.echo(json.dumps({"same": not lines, "lines": lines}))
    else:
        for line in lines or ["the same"]:
            click.echo(plain(line))
    sys.exit(1 if lines else 0)


@runbook.command()
@click.argument("path", type=_FILE)
@_JSON
def release(path: Path, as_json: bool) -> None:
    """Put a file into the list of released files of its library; from then on it is never edited."""
    root = root_of(path)
    if root is None:
        _refuse(
            f"{path} does not lie in a library: move it to library/<name>/v<N>.yaml or "
            "causes/<name>/v<N>.yaml and release it there",
            as_json=as_json,
        )
    name = path.absolute().relative_to(root).as_posix()
    try:
        release_file(root, name, _with_shipped(root), contracts())
    except Problems as problem:
        _say_problems(problem, as_json=as_json)
        sys.exit(1)
    except ReleaseRefused as problem:
        _refuse(str(problem), as_json=as_json)
    except OSError as problem:
        _refuse(f"the list of released files cannot be written: {problem}", as_json=as_json)
    click.echo(json.dumps({"released": name}) if as_json else f"released: {plain(name)}")


@runbook.command()
@click.argument("runbook_", metavar="RUNBOOK")
@click.argument("description", type=_FILE)
@_JSON
def test(runbook_: str, description: Path, as_json: bool) -> None:
    """Play RUNBOOK (a name of the shipped library, or a file) against a described cluster.

    Nothing is touched. DESCRIPTION holds `parameters:` and, for each action that looks, its
    `answers:`. Ends with 1 when a step could not be played.
    """
    try:
        described = read_description(read_file(description), str(description))
        told = rehearse(_definition(runbook_), described, contracts())
    except Problems as problem:
        _say_problems(problem, as_json=as_json)
        sys.exit(1)
    except (ParameterError, KeyError) as problem:
        _refuse(str(problem.args[0]), as_json=as_json)
    rows = [{"step": one.step, "verb": one.verb, "text": one.text} for one in told]
    if as_json:
        click.echo(json.dumps({"steps": rows}))
    else:
        for one in told:
            click.echo(plain(f"{one.step} {one.verb}: {one.text}"))
    sys.exit(1 if any(one.verb == "wrong" for one in told) else 0)


def _problems(path: Path) -> tuple[Problem, ...]:
    """Of a library, or of one file: in its library where it lies in one, else by itself."""
    if path.is_dir():
        return examined(_with_shipped(path), contracts())
    root = root_of(path)
    if root is None:
        return file_problems(path, load_library([SHIPPED], contracts()))
    name = path.absolute().relative_to(root).as_posix()
    found = examined(_with_shipped(root), contracts())
    return tuple(problem for problem in found if problem.source == name)


def _with_shipped(root: Path) -> list[Path]:
    """The library, and the shipped one that it may call."""
    return [root] if root.resolve() == SHIPPED.resolve() else [SHIPPED, root]


def _definition(named: str) -> Definition:
    """What a run of it would go by. Raises Problems, KeyError."""
    path = Path(named)
    library = load_library([SHIPPED], contracts())
    if place_of(f"library/{named}/v1.yaml") is not None and not path.exists():
        return library.definition(named)
    read = load_file(path, contracts())
    if not isinstance(read, Runbook):
        raise KeyError(f"{path} is a causes file: name the runbook that uses it")
    return pin(read, library.newest, library.newest_causes, contracts())


def _say_problems(problems: Problems, *, as_json: bool) -> None:
    for problem in problems.problems:
        click.echo(plain(str(problem)), err=True)
    if as_json:
        click.echo(json.dumps({"good": False, "problems": [_row(p) for p in problems.problems]}))


def _refuse(why: str, *, as_json: bool) -> NoReturn:
    for text in why.splitlines():
        click.echo(plain(text), err=True)
    if as_json:
        click.echo(json.dumps({"error": why}))
    sys.exit(1)


def _row(problem: Problem) -> dict[str, object]:
    return {
        "file": problem.source,
        "line": problem.line,
        "column": problem.column,
        "key": problem.key,
        "message": problem.message,
    }
