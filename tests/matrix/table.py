"""The matrix as text, for the golden file."""

from collections.abc import Iterable, Mapping, Sequence

from config.actors import Door
from config.permissions import Permission
from tests.matrix.commands import COMMANDS, EXEMPT, columns
from tests.matrix.driving import Cell
from tests.matrix.people import ROWS, STARTER

WIDTH = 13
MARKS = {True: "✔", False: "✘", None: "–"}


def render(blocks: Mapping[Door, Sequence[Cell]]) -> str:
    """One block for each door, then what each column was driven with, and the exemptions."""
    parts = [HEAD, *(_block(door, cells) for door, cells in blocks.items()), _driven(), _exempt()]
    return "\n".join(parts)


HEAD = f"""Who may do what through which door: ✔ allowed, ✘ denied, – no command of this door needs it.
Found by asking at each door. At each ✘ nothing was done, no run began, one record was made, and the
answer named the permission and the roles of the legend, of which each would be enough ({STARTER} is a
role of this test: node.read and node.repair, so that a run comes to its step).
"""


def _block(door: Door, cells: Sequence[Cell]) -> str:
    heads = [_parted(permission) for permission in columns()]
    lines = [f"== {door.value}", *(_line("", [head[part] for head in heads]) for part in range(2))]
    lines += [_line(row.title, [_mark(cells, row.title, one) for one in columns()]) for row in ROWS]
    return "\n".join(line.rstrip() for line in [*lines, *_legend(cells), ""])


def _line(title: str, entries: Iterable[str]) -> str:
    return f"{title:<26}" + "".join(f"{entry:<{WIDTH}}" for entry in entries)


def _parted(permission: Permission) -> tuple[str, str]:
    """The two lines of a heading."""
    area, dot, act = permission.value.partition("." if "." in permission else "_")
    return area + dot, act


def _mark(cells: Iterable[Cell], row: str, permission: Permission) -> str:
    """All commands that need it must come to the same."""
    found = {cell.allowed for cell in _of(cells, permission) if cell.row == row}
    if len(found) > 1:
        raise AssertionError(f"{row}: {permission} is allowed by one command, denied by another")
    return MARKS[found.pop() if found else None]


def _of(cells: Iterable[Cell], permission: Permission) -> list[Cell]:
    return [cell for cell in cells if cell.command.permission is permission]


def _legend(cells: Sequence[Cell]) -> list[str]:
    """The roles that the refusals of each column name: always the same."""
    said: dict[Permission, tuple[str, ...]] = {}
    for permission in columns():
        named = {cell.enough for cell in _of(cells, permission) if not cell.allowed and cell.enough}
        if len(named) > 1:
            raise AssertionError(f"the refusals of {permission} name different roles: {named}")
        if named:
            said[permission] = named.pop()
    if len(set(said.values())) == 1:
        return [f"✘ every column: {', '.join(next(iter(said.values())))} (asked for: break_glass)"]
    return [f"✘ {permission}: {', '.join(roles)}" for permission, roles in said.items()]


def _driven() -> str:
    lines = ["== driven with"]
    for permission in columns():
        texts = "; ".join(_typed(c.text, c.step) for c in COMMANDS if c.permission is permission)
        lines.append(f"{permission:<16} {texts}")
    everybody = "; ".join(command.text for command in COMMANDS if command.permission is None)
    return "\n".join([*lines, f"{'(everybody)':<16} {everybody}", ""])


def _typed(text: str, step: str) -> str:
    return f"{text} (at its step, after {step})" if step else text


def _exempt() -> str:
    return "\n".join(["== not driven", *(f"{one:<16} {why}" for one, why in EXEMPT.items()), ""])
