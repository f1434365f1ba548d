"""Drives --standalone through every cell: a process of the person's user, a data folder of its own."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from actions.simulated.plugs import Plugs
from bot.standalone import ADMIN
from config.permissions import Permission
from tests.matrix.commands import COMMANDS, Command
from tests.matrix.driving import REFUSED, Cell, Wrong
from tests.matrix.people import ROWS, STRANGER, UIDS, Nodes, Row, configuration
from tests.matrix.shells import Shell


@dataclass(slots=True, kw_only=True)
class Alone:
    """The door of the night in which everything is down."""

    folder: Path
    shells: dict[str, Shell]
    nodes: Nodes
    _numbers: Iterator[int] = field(default_factory=lambda: count(1))

    @property
    def plugs(self) -> Plugs:
        """The hands of whoever directs the play."""
        return Plugs(path=self.folder / "sim.sock")

    def cells(self) -> Iterator[Cell]:
        """Admins with every command; everybody else, who is told the same whatever it is, with the
        first one for each permission.
        """
        for row in ROWS:
            seen: set[Permission | None] = set()
            for command in COMMANDS:
                if row.role == ADMIN or command.permission not in seen:
                    yield self._cell(row, command)
                seen.add(command.permission)

    def site(self, who: str) -> Path:
        """A configuration with an empty data folder that belongs to this person's user."""
        name = f"alone-{next(self._numbers)}"
        data = self.folder / name
        data.mkdir(mode=0o700)
        os.chown(data, UIDS[who], UIDS[who])
        config = self.folder / f"{name}.yaml"
        config.write_text(configuration(self.folder, data), "utf-8")
        config.chmod(0o644)
        return config

    def _cell(self, row: Row, command: Command) -> Cell:
        who = row.twin if command.step else row.person
        config = self.site(who)
        wanted = row.nodes if "{node}" in command.text else "idle"
        given = {"node": self.nodes.next(wanted, who), "n": config.stem, "run": "run-1"}
        shell = self.shells[who]
        if row.role == ADMIN and (command.run or command.ground):
            shell.prepare(config, _preparation(command, given))
        if command.step:
            self.plugs.pull(command.step, node=given["node"])
        words = command.text.format(**given)
        at = f"standalone, {row.title}, {words!r}"
        effects = len(self.plugs.effects())
        answer = shell.alone(config, words.split())
        told = str(answer["text"])
        if command.step and not REFUSED.match(told):
            told += str(shell.alone(config, ["approve", "run-1"])["text"])
            if not any(one.arguments["node"] == given["node"] for one in self.plugs.effects()):
                raise Wrong(cell=at, why=f"the step was not done: {told}")
        if command.step:
            self.plugs.pull("start_slurmd", node=given["node"])
        if not REFUSED.match(told):
            return self._allowed(at, row, command, told, (config, given))
        if len(self.plugs.effects()) != effects:
            raise Wrong(cell=at, why="denied, and something was done")
        if answer["code"] != 3:
            raise Wrong(cell=at, why=f"denied, and the exit code is {answer['code']}")
        return self._denied(at, row, command, (config, told))

    def _allowed(
        self, at: str, row: Row, command: Command, told: str, of: tuple[Path, dict[str, str]]
    ) -> Cell:
        config, given = of
        shell = self.shells[row.twin if command.step else row.person]
        if not re.search(command.proof.format(**given), told):
            raise Wrong(cell=at, why=f"neither done nor denied: {told}")
        if shell.records(config, "request.denied"):
            raise Wrong(cell=at, why=f"let through and recorded as denied: {told}")
        if not shell.records(config, "page.intended"):
            raise Wrong(cell=at, why="worked standalone, and nobody is paged for it")
        return Cell(row=row.title, command=command, allowed=True)

    def _denied(self, at: str, row: Row, command: Command, said: tuple[Path, str]) -> Cell:
        config, told = said
        shell = self.shells[row.twin if command.step else row.person]
        found = shell.records(config, "request.denied")
        if len(found) != 1 or found[0]["data"]["door"] != "standalone":
            raise Wrong(cell=at, why=f"{len(found)} records of one refusal: {found}")
        if shell.records(config, "run.requested", "page.intended"):
            raise Wrong(cell=at, why="denied, and a run was started or a page sent")
        enough = tuple(found[0]["data"]["enough"])
        if row.person == STRANGER:
            return Cell(row=row.title, command=command, allowed=False)
        if not all(word in told for word in ("break_glass", *enough)):
            raise Wrong(cell=at, why=f"the answer names no permission and no role: {told}")
        return Cell(row=row.title, command=command, allowed=False, enough=enough)


def _preparation(command: Command, given: dict[str, str]) -> list[str]:
    said = [f"drain {given['node']} prepared"] if command.run else ["halt prepared"]
    return [*said, "takeover run-1"] if command.run == "held" else said
