"""What changed between two versions of a runbook or causes file, for the person who reviews it. Pure.

First the meaning (what it may do, to whom it may be asked, in which order), then the text.
"""

import difflib
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from runbooks.causes import Cause, Causes
from runbooks.model import Parameter, Runbook, Step

T = TypeVar("T")


def diff(old: Runbook | Causes, new: Runbook | Causes) -> str:
    """Lines of meaning, an empty line, and the unified difference of the texts; empty when equal."""
    if old.text == new.text:
        return ""
    if isinstance(old, Runbook) and isinstance(new, Runbook):
        meaning = _runbook(old, new)
    elif isinstance(old, Causes) and isinstance(new, Causes):
        meaning = _causes(old, new)
    else:
        meaning = ["a runbook and a causes file cannot be compared by meaning"]
    names = (f"{old.name} v{old.version}", f"{new.name} v{new.version}")
    text = difflib.unified_diff(
        old.text.splitlines(), new.text.splitlines(), *names, lineterm="", n=2
    )
    return "\n".join([*(meaning or ["the meaning is the same"]), "", *text])


def _runbook(old: Runbook, new: Runbook) -> list[str]:
    lines = [
        f"{word}: {before} -> {after}"
        for word, before, after in (
            ("permission", old.permission, new.permission),
            ("on_failure", old.on_failure, new.on_failure),
            ("locks", ", ".join(old.locks) or "none", ", ".join(new.locks) or "none"),
        )
        if before != after
    ]
    lines += _entries(
        "parameter", _by(old.parameters, _name), _by(new.parameters, _name), lambda entry: entry
    )
    lines += _entries("step", _by(old.steps, _id), _by(new.steps, _id), _step_meaning)
    common = [step.id for step in old.steps if new.step(step.id) is not None]
    order = [step.id for step in new.steps if old.step(step.id) is not None]
    if common != order:
        lines.append(f"order of steps: {', '.join(common)} -> {', '.join(order)}")
    return lines


def _causes(old: Causes, new: Causes) -> list[str]:
    lines = ["conditions for deciding at all changed"] * (
        old.decides_only_if != new.decides_only_if
    )
    before, after = _by(old.table, _cause_id), _by(new.table, _cause_id)
    for cause_id in before.keys() & after.keys():
        was, now = before[cause_id].autonomy, after[cause_id].autonomy
        if was is not now:
            lines.append(f"cause {cause_id}: autonomy {was} -> {now}")
    return sorted(lines) + _entries("cause", before, after, lambda entry: entry)


def _entries(
    word: str, old: Mapping[str, T], new: Mapping[str, T], meaning: Callable[[T], object]
) -> list[str]:
    """Added, removed and changed entries, in the order of the files."""
    lines = [f"{word} {name} removed" for name in old if name not in new]
    for name, entry in new.items():
        if name not in old:
            lines.append(f"{word} {name} added")
        elif meaning(old[name]) != meaning(entry):
            lines.append(f"{word} {name} changed")
    return lines


def _step_meaning(step: Step) -> object:
    """A step without its line, which moves when anything above it does."""
    return (
        step.do, step.call, step.approve, step.arguments, step.when, step.for_each, step.at_most,
        step.stop_after, step.time_limit, step.point_of_no_return,
    )  # fmt: skip


def _by(entries: Iterable[T], key: Callable[[T], str]) -> dict[str, T]:
    return {key(entry): entry for entry in entries}


def _name(parameter: Parameter) -> str:
    return parameter.name


def _id(step: Step) -> str:
    return step.id


def _cause_id(cause: Cause) -> str:
    return cause.id
