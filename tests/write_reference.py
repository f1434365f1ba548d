"""Writes docs/reference/ from the code: `make docs`. tests/test_docs.py holds the two together."""

import ast
import importlib
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date, timedelta
from enum import Enum
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

from pydantic.fields import FieldInfo

from actions.contract import ActionSpec
from bot.commands import VERBS
from config import permissions
from config.durations import format_duration
from config.fields import MaxOut, Section
from config.load import SHIPPED_ROLES
from config.node_names import NodeSet
from config.permissions import Permission, Role
from config.role_entries import RoleEntry
from config.secrets import SecretRef
from config.settings import Settings
from config.yaml_reader import read
from runbooks import machine
from runbooks.builtin import BUILTINS
from runbooks.facts import NODE_FACTS
from runbooks.machine import TRANSITIONS, Move, RunState

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "reference"
NOTE = "<!-- Made by `make docs` from {source}; edit that. -->\n"
WORDS: Mapping[type, str] = {
    timedelta: "duration (`90s`, `15m`, `2h`, `1d`)",
    SecretRef: "`env:NAME` or `file:/path`",
    NodeSet: "node expression",
    MaxOut: "number or share",
    date: "day",
    Path: "absolute path",
    bool: "true or false",
    int: "whole number",
    str: "text",
}


def member_texts(module: Any, enum: str) -> dict[str, str]:
    """The text under each member of an enum, which exists in the source only."""
    tree = ast.parse(inspect.getsource(module))
    (body,) = (n.body for n in tree.body if isinstance(n, ast.ClassDef) and n.name == enum)
    texts: dict[str, str] = {}
    for statement, following in pairwise(body):
        match statement, following:
            case (
                ast.Assign(targets=[ast.Name(id=name)]),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                texts[name] = " ".join(text.split())
    return texts


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """A Markdown table."""
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join("| " + " | ".join(map(escaped, line)) + " |\n" for line in lines)


def escaped(cell: str) -> str:
    """Text that does not end its cell."""
    return cell.replace("|", "\\|")


def settings_page() -> str:
    """Every setting, one section for each part."""
    parts = [
        "# Settings\n\n",
        NOTE.format(source="config/settings.py and config/policy.py"),
        "\nA configuration is one or more YAML files; `config/example.yaml` shows every setting in its\n"
        "place. What is wrong with a file is told all at once, with line and key. Node expressions are\n"
        "written `gpu-[001-016]`, in quotes inside `[…]`, or as a list of them.\n",
    ]
    for path, section in sections((), Settings):
        title = f"`{'.'.join(path)}`" if path else "Top level"
        parts.append(f"\n## {title}\n\n{inspect.getdoc(section)}\n\n")
        parts += [
            f"- `{name}` ({kind(field)}): {described(field)}\n" for name, field in named(section)
        ]
    return "".join(parts)


def sections(
    path: tuple[str, ...], section: type[Section]
) -> Iterator[tuple[tuple[str, ...], type[Section]]]:
    """Each part of the configuration with its key path, outer ones first."""
    yield path, section
    for name, field in named(section):
        for more, inner in inner_sections(field.annotation):
            yield from sections((*path, name, *more), inner)


def inner_sections(annotation: Any) -> Iterator[tuple[tuple[str, ...], type[Section]]]:
    """The parts inside a field, with what stands for the name or number in the key path."""
    if isinstance(annotation, type) and issubclass(annotation, Section):
        yield (), annotation
    more = {Mapping: ("NAME",), tuple: ("N",)}
    for argument in get_args(annotation):
        for below, inner in inner_sections(argument):
            yield (*more.get(origin_of(annotation), ()), *below), inner


def origin_of(annotation: Any) -> Any:
    """`Mapping` for any mapping, else what `get_origin` says."""
    origin = get_origin(annotation)
    return Mapping if isinstance(origin, type) and issubclass(origin, Mapping) else origin


def named(section: type[Section]) -> Iterable[tuple[str, FieldInfo]]:
    """Fields of a part, in the order of the source."""
    return section.model_fields.items()


def described(field: FieldInfo) -> str:
    """The text under a field, on one line, with the mark of what must be given."""
    text = " ".join((field.description or "").split())
    return f"{text} **Required.**" if field.is_required() and "Default" not in text else text


def kind(field: FieldInfo) -> str:
    """What is written there."""
    return words_for(field.annotation)


def words_for(annotation: Any) -> str:
    """An annotation in the words of whoever writes the file."""
    if get_origin(annotation) is Annotated:
        return words_for(get_args(annotation)[0])
    arguments = [a for a in get_args(annotation) if a not in {type(None), Ellipsis}]
    if origin_of(annotation) is Mapping:
        return f"mapping of names to {words_for(arguments[1])}"
    if get_origin(annotation) is tuple:
        return f"list of {words_for(arguments[0])}"
    if arguments:
        return words_for(arguments[0])
    if issubclass(annotation, Permission):
        return "permission"
    if issubclass(annotation, Enum):
        return ", ".join(f"`{member.value}`" for member in annotation)
    return "section" if issubclass(annotation, Section) else WORDS[annotation]


def permissions_page() -> str:
    """Every permission, and which shipped role holds it how far."""
    texts = member_texts(permissions, "Permission")
    roles = shipped_roles()
    rows = [
        (f"`{p.value}`", texts[p.name], *(reach(role, p) for role in roles.values()))
        for p in Permission
    ]
    helps = "".join(f"- `{name}`: {text}\n" for name, text in shipped_helps().items())
    return (
        "# Permissions and shipped roles\n\n"
        + NOTE.format(source="config/permissions.py and config/roles.yaml")
        + "\nWhat no role grants is denied. A permission is checked when it is asked for and again when\n"
        "the step is about to act. Empty: not allowed.\n\n"
        + table(("permission", "allows to", *roles), rows)
        + "\n"
        + helps
    )


def reach(role: Role, permission: Permission) -> str:
    """How far a role holds a permission."""
    scopes = [grant.scope for grant in role.grants if permission in grant.permissions]
    if not scopes:
        return ""
    scope = scopes[0]
    limits = ["own jobs"] if scope.own_jobs else []
    limits += [f"at most {scope.max_nodes} nodes"] if scope.max_nodes else []
    return ", ".join(limits) or "yes"


def shipped_entries() -> dict[str, RoleEntry]:
    """The shipped roles as their file writes them."""
    document = read(SHIPPED_ROLES.read_text("utf-8"), SHIPPED_ROLES.name).value
    assert isinstance(document, dict)
    return {name: RoleEntry.model_validate(entry) for name, entry in document["roles"].items()}


def shipped_roles() -> dict[str, Role]:
    """The shipped roles by name."""
    return {name: entry.role(name) for name, entry in shipped_entries().items()}


def shipped_helps() -> dict[str, str]:
    """One sentence for each shipped role."""
    return {name: entry.help for name, entry in shipped_entries().items()}


def states_page() -> str:
    """The state machine of a run: state by move."""
    texts = {**member_texts(machine, "RunState")}
    rows = [(f"`{state.value}`", texts.get(state.name, "")) for state in RunState]
    moves = [move for move in Move if any((state, move) in TRANSITIONS for state in RunState)]
    cells = [
        (
            f"`{state.value}`",
            *(to.value if (to := TRANSITIONS.get((state, m))) else "" for m in moves),
        )
        for state in RunState
    ]
    return (
        "# States of a run\n\n"
        + NOTE.format(source="runbooks/machine.py")
        + "\n"
        + table(("state", "means"), rows)
        + "\nEvery pair that has no entry is refused.\n\n"
        + table(("state", *(move.value for move in moves)), cells)
    )


def commands_page() -> str:
    """Every verb; the same words at every door."""
    rows = [
        (
            f"`{spec.usage}`",
            spec.summary,
            f"`{spec.permission.value}`" if spec.permission else "",
            f"`{spec.example}`",
        )
        for spec in VERBS.values()
    ]
    return (
        "# Commands\n\n"
        + NOTE.format(source="bot/commands.py")
        + "\nThe same words after `/ops` in Slack and after `nodewarden` in a shell. Where no permission\n"
        "stands, everybody may ask, and what the command starts is checked by itself.\n\n"
        + table(("command", "does", "permission", "example"), rows)
    )


def facts_page() -> str:
    """What the conditions of causes may read."""
    rows = [(f"`node.{name}`", text) for name, text in NODE_FACTS.items()]
    return (
        "# Facts about a node\n\n"
        + NOTE.format(source="runbooks/facts.py")
        + '\nA fact that could not be read is null: "not known", never a match.\n\n'
        + table(("fact", "is"), rows)
    )


def actions_page() -> str:
    """Every verb that a runbook can write after `do:`."""
    parts = [
        "# Actions\n\n",
        NOTE.format(source="the ActionSpec of each verb"),
        "\nWhat a runbook can write after `do:`. An action that only looks needs no plan and no approval.\n",
    ]
    return "".join([*parts, *(one_action(spec) for spec in specs())])


def specs() -> list[ActionSpec]:
    """Every contract of an action, by name."""
    found = dict(BUILTINS)
    for path in sorted((ROOT / "actions").rglob("*.py")):
        if "ActionSpec(" in path.read_text("utf-8"):
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            values = vars(importlib.import_module(name)).values()
            found |= {spec.name: spec for spec in values if isinstance(spec, ActionSpec)}
    return [found[name] for name in sorted(found)]


def one_action(spec: ActionSpec) -> str:
    """The contract of one action, as a person reads it."""
    traits = {
        "only looks": spec.looks_only,
        "its effect cannot be looked up afterwards": not spec.observable,
        "may end jobs": spec.may_end_jobs,
        "takes the node out": spec.takes_node_out,
        f"at least {spec.persons} persons approve": spec.persons,
        f"sets the mark `{spec.sets_mark}`": spec.sets_mark,
        f"clears the mark `{spec.clears_mark}`": spec.clears_mark,
        f"undone by `{spec.undo}`": spec.undo,
    }
    said = ", ".join(
        [
            f"Permission `{spec.permission.value}`",
            f"at most {format_duration(spec.time_limit)}",
            *(text for text, holds in traits.items() if holds),
        ]
    )
    fields = [
        (f"`{name}`", way, f.type.value, f"{f.help}{'' if f.required else ' (may be missing)'}")
        for way, group in (("in", spec.parameters), ("out", spec.output))
        for name, f in group.items()
    ]
    rows = f"\n{table(('name', '', 'type', 'is'), fields)}" if fields else ""
    return f"\n## `{spec.name}` (version {spec.version})\n\n{spec.summary}\n\n{said}.\n{rows}"


PAGES: Mapping[str, Callable[[], str]] = {
    "settings.md": settings_page,
    "actions.md": actions_page,
    "permissions.md": permissions_page,
    "states.md": states_page,
    "commands.md": commands_page,
    "facts.md": facts_page,
}


def main() -> None:
    """Write every page."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, page in PAGES.items():
        (FOLDER / name).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
