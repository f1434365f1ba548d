"""Drives the served bot through every cell: types the command, and looks at what came of it."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count

from audit_log.records import Event
from config.actors import Door
from config.permissions import Permission
from tests.matrix.commands import COMMANDS, Command
from tests.matrix.people import ROWS, STRANGER, Nodes, Row
from tests.matrix.site import Spot

REFUSED = re.compile(r"[a-z_]+(\.[a-z]+)? (on|without|by) .*is not allowed|.*nobody in the config")
"""How an answer begins to somebody who may not; further on it may quote older refusals."""

SENTENCE = re.compile(r"[a-z]+\.[a-z]+ on [^ ]+ .*is not allowed.*")
"""The same within what a run tells of its step."""

Say = Callable[[str, str], str]
"""A door: who types what; the answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """What one command of one row came to."""

    row: str
    command: Command
    allowed: bool
    enough: tuple[str, ...] = ()
    """Roles that the refusal names."""


class Wrong(AssertionError):
    """A cell that breaks a promise."""

    def __init__(self, *, cell: str, why: str) -> None:
        super().__init__(f"{cell}: {why}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    """How things stood."""

    effects: int
    runs: int
    denials: int


@dataclass(slots=True, kw_only=True)
class Driver:
    """One door."""

    site: Spot
    door: Door
    say: Say
    nodes: Nodes
    _numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def cells(self) -> Iterator[Cell]:
        """Every row with every command."""
        for row in ROWS:
            for command in COMMANDS:
                yield self._cell(row, command)
                self.site.tidy()

    def _cell(self, row: Row, command: Command) -> Cell:
        who = row.twin if command.step else row.person
        given = self._prepare(who, row, command)
        words = command.text.format(**given)
        before = self._now()
        told = self.say(who, words)
        at = f"{self.door} door, {row.title}, {words!r}"
        if command.step and not REFUSED.match(told):
            told = self._at_the_step(given["node"], command, at)
        denied = REFUSED.match(told) is not None
        after = self._now()
        if not denied:
            if not re.search(command.proof.format(**given), told):
                raise Wrong(cell=at, why=f"neither done nor denied: {told}")
            if after.denials != before.denials:
                raise Wrong(cell=at, why=f"let through and recorded as denied: {told}")
            self._put_right(command, given)
            return Cell(row=row.title, command=command, allowed=True)
        self._nothing_happened(at, before, after, steps=bool(command.step))
        record = self.site.denials()[-1]
        self._put_right(command, given)
        return Cell(row=row.title, command=command, allowed=False,
                    enough=self._reason(at, row, command, (told, record)))  # fmt: skip

    def _prepare(self, who: str, row: Row, command: Command) -> dict[str, str]:
        named = "{node}" in command.text
        kind = row.nodes if named else "idle"
        node = self.nodes.next(kind, who) if named or command.run else ""
        given = {"node": node, "n": f"{self.door}{next(self._numbers)}", "run": ""}
        if command.run:
            run = self.site.boss(f"drain {node} prepared").run
            assert run is not None
            assert self.site.rested(run).value == "awaiting_approval", self.site.state(run)
            if command.run == "held":
                self.site.boss(f"takeover {run}")
            given["run"] = run
        if command.ground == "halted":
            self.site.boss("halt prepared")
        if command.step:
            self.site.plugs.pull(command.step, node=node)
            self.site.bot.inventory.refresh()
        return given

    def _put_right(self, command: Command, given: dict[str, str]) -> None:
        if command.verb == "halt":
            self.site.boss("halt --clear tidy")
        if command.step:
            self.site.tidy()
            self.site.plugs.pull("start_slurmd", node=given["node"])

    def _at_the_step(self, node: str, command: Command, at: str) -> str:
        """Let the run come to the step: the sentence of its refusal, or that it has started."""
        run = self.site.runs()[-1]
        for _ in range(3):
            if self.site.rested(run).value != "awaiting_approval":
                break
            self.site.boss(f"approve {run}")
            self.site.until(lambda: self.site.state(run) != "awaiting_approval")
        verb = (
            "start_service" if command.permission is Permission.SERVICE_START else "restart_service"
        )
        if any(
            effect.verb == verb and effect.arguments["node"] == node
            for effect in self.site.plugs.effects()
        ):
            return f"{run} started"
        status = self.site.boss(f"status {run}")
        lines = (*status.lines, str(status.data["why"]))
        refusals = [found.group() for line in lines if (found := SENTENCE.search(line))]
        if not refusals:
            raise Wrong(cell=at, why=f"the run never came to its step: {lines}")
        return max(refusals, key=len)  # a card cuts its lines, the run has the whole sentence

    def _now(self) -> Before:
        return Before(
            effects=len(self.site.plugs.effects()),
            runs=len(self.site.runs()),
            denials=len(self.site.denials()),
        )

    def _nothing_happened(self, at: str, before: Before, after: Before, *, steps: bool) -> None:
        if after.effects != before.effects:
            raise Wrong(
                cell=at, why=f"denied, and did {self.site.plugs.effects()[before.effects :]}"
            )
        if after.runs != before.runs and not steps:
            raise Wrong(cell=at, why="denied, and a run was started")
        if after.denials != before.denials + 1:
            raise Wrong(cell=at, why=f"{after.denials - before.denials} records of one refusal")

    def _reason(
        self, at: str, row: Row, command: Command, seen: tuple[str, Event]
    ) -> tuple[str, ...]:
        """The roles that are enough: the answer names them and the permission, as the record does."""
        told, record = seen
        if record.data["door"] != self.door.value:
            raise Wrong(cell=at, why=f"recorded at another door: {record.data}")
        if row.person == STRANGER:
            return ()
        enough = record.data["enough"]
        assert isinstance(enough, list)
        if record.data["permission"] != command.permission:
            raise Wrong(cell=at, why=f"another permission was asked for: {record.data}")
        missing = [
            word for word in (str(command.permission), *map(str, enough)) if word not in told
        ]
        if missing or not enough:
            raise Wrong(cell=at, why=f"the answer does not name {missing or 'a role'}: {told}")
        return tuple(map(str, enough))
