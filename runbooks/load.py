"""Reads a runbook: text in, a checked value out, or every problem of the file at once. Pure.

Called by `runbooks.library_files`, lint and the definition of a run. `read_runbook` knows only the
file; `load_runbook` also holds each step against the contracts of the actions.
"""

import hashlib
import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Final

from actions.contract import ActionSpec, ValueType
from config.durations import parse_duration
from config.ids import StepId
from config.permissions import Permission
from config.yaml_reader import YamlProblems, read
from runbooks.checks import check_runbook
from runbooks.model import OnFailure, Parameter, Runbook, Step
from runbooks.problems import Findings, Problems, from_reader
from runbooks.shape import Table, shown, top
from runbooks.values import kind, misfit

NAME: Final = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*", re.ASCII)
"""Names of runbooks and causes files, ids of steps."""
_PARAMETER = re.compile(r"[a-z][a-z0-9_]*", re.ASCII)
_TAKEN = frozenset({"steps", "item", "true", "false", "null", "none", "not", "and", "or", "in"})
_TAKEN_TOO = frozenset({"is", "if", "else", "facts", "loop"})
_LONGEST_NAME = 64
MOST_STEPS = 100

_RUNBOOK_KEYS = (
    "runbook", "version", "title", "permission", "parameters", "locks", "steps", "on_failure",
)  # fmt: skip
_STEP_KEYS = (
    "id", "do", "call", "approve", "with", "when", "for_each", "at_most", "stop_after", "timeout",
    "point_of_no_return",
)  # fmt: skip
_PARAMETER_KEYS = ("type", "help", "required", "default")


def load_runbook(text: str, source: str, registry: Mapping[str, ActionSpec]) -> Runbook:
    """The runbook in `text`, its steps held against the actions' contracts. Raises Problems."""
    runbook, findings = _read(text, source)
    check_runbook(runbook, registry, findings)
    if findings.problems:
        raise Problems(findings.problems)
    return runbook


def read_runbook(text: str, source: str) -> Runbook:
    """The same without any registry: for a text that was checked when its run began."""
    runbook, findings = _read(text, source)
    if findings.problems:
        raise Problems(findings.problems)
    return runbook


def digest_of(text: str) -> str:
    """SHA-256 (hex) of a file as it is released and pinned."""
    return hashlib.sha256(text.encode("utf-8", errors="surrogatepass")).hexdigest()


def checked_name(table: Table, key: str) -> str:
    """The name under `key`, in the form that files, steps and expressions share."""
    name = table.text(key)
    if name and (not NAME.fullmatch(name) or len(name) > _LONGEST_NAME):
        table.wrong(
            key,
            f"{shown(name)} is not a name: small letters, digits and single hyphens, "
            f"at most {_LONGEST_NAME}",
        )
    return name


def _read(text: str, source: str) -> tuple[Runbook, Findings]:
    try:
        table = top(read(text, source))
    except YamlProblems as error:
        raise Problems(from_reader(error.problems)) from error
    table.allow(_RUNBOOK_KEYS)
    runbook = Runbook(
        name=checked_name(table, "runbook"),
        version=table.number("version"),
        title=table.text("title"),
        permission=table.word("permission", Permission),
        parameters=_parameters(table),
        locks=_locks(table),
        steps=_steps(table),
        on_failure=table.word("on_failure", OnFailure, OnFailure.STOP),
        text=text,
        digest=digest_of(text),
    )
    return runbook, table.findings


def _locks(table: Table) -> tuple[str, ...]:
    locks = table.items("locks", required=False)
    for index, lock in enumerate(locks):
        if not isinstance(lock, str):
            table.findings.add(("locks", index), f"expected text, not {kind(lock)}")
    return tuple(lock for lock in locks if isinstance(lock, str))


def _parameters(table: Table) -> tuple[Parameter, ...]:
    entries = table.table("parameters")
    return tuple(_parameter(name, entries) for name in entries.entries)


def _parameter(name: str, entries: Table) -> Parameter:
    if not _PARAMETER.fullmatch(name) or name in _TAKEN | _TAKEN_TOO or len(name) > _LONGEST_NAME:
        entries.wrong(name, "is not a parameter name: small letters, digits, '_', no taken word")
    table = entries.table(name)
    table.allow(_PARAMETER_KEYS)
    type_ = table.word("type", ValueType)
    default = table.entries.get("default")
    if default is not None:
        why = misfit(type_, default)
        if why:
            table.wrong("default", why)
    required = table.truth("required", "default" not in table.entries)
    if required and "default" in table.entries:
        table.wrong("default", "a required parameter has no default: remove one of the two")
    return Parameter(
        name=name, type=type_, help=table.text("help"), required=required, default=default
    )


def _steps(table: Table) -> tuple[Step, ...]:
    steps = tuple(_step(entry) for entry in table.tables("steps", required=True))
    if len(steps) > MOST_STEPS:
        table.wrong("steps", f"{len(steps)} steps; at most {MOST_STEPS} are accepted: call another")
    return steps


def _step(table: Table) -> Step:
    table.allow(_STEP_KEYS)
    kinds = [key for key in ("do", "call", "approve") if key in table.entries]
    if len(kinds) != 1:
        table.wrong("id", f"a step has exactly one of do, call and approve, not {len(kinds)}")
    if kinds == ["approve"]:
        for key in ("with", "for_each", "timeout", "point_of_no_return"):
            if key in table.entries:
                table.wrong(key, "means nothing in an approve step: remove it")
    if "for_each" not in table.entries:
        for key in ("at_most", "stop_after"):
            if key in table.entries:
                table.wrong(key, "means nothing without for_each: remove it")
    return Step(
        id=StepId(checked_name(table, "id")),
        do=table.optional_text("do"),
        call=table.optional_text("call"),
        approve=table.optional_text("approve"),
        arguments=table.table("with").entries,
        when=table.optional_text("when"),
        for_each=table.optional_text("for_each"),
        at_most=table.number("at_most", 1),
        stop_after=table.number("stop_after", 1),
        time_limit=_time_limit(table),
        point_of_no_return=table.truth("point_of_no_return", False),
        line=table.findings.document.position(table.path)[0],
    )


def _time_limit(table: Table) -> timedelta | None:
    text = table.optional_text("timeout")
    if not text:
        return None
    try:
        return parse_duration(text)
    except ValueError as error:
        table.wrong("timeout", str(error))
        return None
