"""A bench for tests of the engine alone: a ledger, the real engine, and lamps that runs switch on."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import ClassVar

from actions.contract import ActionSpec
from audit_log.ledger import Ledger
from audit_log.records import EventKind
from config.actors import Actor, ActorKind, Door
from config.clock import Instant
from config.ids import ActorId, ClusterName, RunId
from config.node_names import NodeName, NodeSet
from config.permissions import Allowed, Decision, Denied, Permission
from config.policy import Policy as SitePolicy
from config.redaction import Redactor
from runbooks.builtin import BUILTINS
from runbooks.definition import Definition, pin
from runbooks.engine import Engine
from runbooks.halt import HaltFile
from runbooks.load import load_runbook
from runbooks.parts import Parts
from runbooks.policy import Policy, Pool
from runbooks.projection import RunProjector
from runbooks.requests import Requests, RunRequest
from runbooks.run import Run
from runbooks.run_rows import load
from tests.runbooks.engine.lamp_world import Lamps, lamp_actions

CLUSTER = ClusterName("lab")
ANN = Actor(id=ActorId("p-ann"), kind=ActorKind.PERSON, name="ann", roles=frozenset({"oncall"}))
BOB = Actor(id=ActorId("p-bob"), kind=ActorKind.PERSON, name="bob", roles=frozenset({"oncall"}))
CAT = Actor(id=ActorId("p-cat"), kind=ActorKind.PERSON, name="cat", roles=frozenset({"oncall"}))


class FakeClock:
    """A clock that tests move by hand."""

    def __init__(self) -> None:
        self.instant = Instant(
            wall=datetime(2026, 11, 30, 3, 0, tzinfo=UTC), monotonic=timedelta(days=1)
        )

    def now(self) -> Instant:
        return self.instant

    def forward(self, **step: float) -> None:
        """Both clocks go on."""
        by = timedelta(**step)
        self.instant = Instant(wall=self.instant.wall + by, monotonic=self.instant.monotonic + by)

    def jump(self, by: timedelta) -> None:
        """Somebody sets the wall clock."""
        self.instant = Instant(wall=self.instant.wall + by, monotonic=self.instant.monotonic)


class Everybody:
    """Rights that allow all, until a test takes one away."""

    def __init__(self) -> None:
        self.revoked: set[Permission] = set()

    def step(self, run: Run, permission: Permission, nodes: NodeSet, in_request: int) -> Decision:
        if permission in self.revoked:
            return Denied(missing=permission, because=f"{permission} was taken away")
        return Allowed(role="oncall", because="test")


class Shelf:
    """A library of runbooks given as text."""

    def __init__(self, texts: dict[str, str], specs: dict[str, ActionSpec]) -> None:
        self._books = {
            name: load_runbook(text, f"{name}.yaml", specs) for name, text in texts.items()
        }
        self._specs = specs

    def definition(self, name: str, version: int | None = None) -> Definition:
        if name not in self._books:
            raise KeyError(f"there is no runbook {name}")
        return pin(self._books[name], self._books, {}, self._specs)

    def names(self) -> tuple[str, ...]:
        return tuple(self._books)


class Bench:
    """A ledger, an engine and the lamps; `restart` is what a crash leaves."""

    def __init__(self, folder: Path, books: dict[str, str], **policy: object) -> None:
        self.folder = folder
        self.world = Lamps()
        self.clock = FakeClock()
        self.rights = Everybody()
        self._books = books
        pool = Pool(
            name="all", nodes=frozenset(NodeName(f"l{index}") for index in range(9)), max_out=5
        )
        site = {"autonomy": {"default": "act", "rules": []}, **policy}
        self.policy = Policy(
            site=SitePolicy.model_validate(site),
            protected={},
            pool_of=lambda _cluster, node: pool if node in pool.nodes else None,
        )
        self.open()

    def open(self) -> None:
        self.ledger = Ledger.open(
            self.folder / "nodewarden.db",
            clock=self.clock,
            redactor=Redactor(),
            projectors=(RunProjector(),),
        )
        actions = lamp_actions(self.world)
        specs = {**{name: action.spec for name, action in actions.items()}, **BUILTINS}
        self.parts = Parts(
            ledger=self.ledger,
            artefacts=self.ledger.artefacts,
            registry=actions,
            specs=specs,
            clusters={CLUSTER: _NoNodes()},  # type: ignore[dict-item]
            library=Shelf(self._books, specs),
            policy=self.policy,
            rights=self.rights,
            halt=HaltFile(self.folder / "halt"),
            clock=self.clock,
        )
        self.engine = Engine(self.parts)
        self.requests = Requests(self.parts)

    def restart(self) -> None:
        """What a new process has: nothing but the ledger."""
        self.ledger.close()
        self.open()

    def ask(self, runbook: str, actor: Actor = ANN, **parameters: object) -> RunId:
        asked = RunRequest(
            runbook=runbook,
            cluster=CLUSTER,
            parameters=parameters,  # type: ignore[arg-type]
            actor=actor,
            door=Door.CLI,
            reason="test",
        )
        return self.requests.run(asked)[0]

    def go(self, run: RunId) -> Run:
        """Advance as far as it gets; children too."""
        for _ in range(20):
            before = self.seq()
            for (name,) in self.ledger.query("SELECT id FROM runs WHERE open = 1 ORDER BY number"):
                self.engine.advance(RunId(name))
            if self.seq() == before:
                break
        return self.run(run)

    def run(self, run: RunId) -> Run:
        return load(self.ledger, run)

    def seq(self) -> int:
        return int(self.ledger.query("SELECT max(seq) FROM ledger")[0][0])

    def kinds(self, run: RunId) -> list[EventKind]:
        return [record.event.kind for record in self.ledger.records(run=run)]

    def locks(self) -> dict[str, str]:
        return dict(self.ledger.query("SELECT atom, run FROM locks ORDER BY atom"))

    def marks(self) -> list[tuple[str, str]]:
        return [(row[0], row[1]) for row in self.ledger.query("SELECT node, run FROM marks")]

    def pages(self) -> list[str]:
        return [
            row[0] for row in self.ledger.query("SELECT summary FROM pages ORDER BY at_us, key")
        ]


class _NoNodes:
    """A cluster without nodes: lamps are not nodes."""

    def snapshot(self) -> "_NoNodes":
        return self

    nodes: ClassVar[dict[NodeName, object]] = {}
    partitions = ()
    jobs = ()
    reservations = ()


LIGHT = """\
runbook: light
version: 1
title: Switch a lamp on
permission: node.drain
parameters:
  node: {type: node, help: which}
steps:
  - id: see
    do: lamp.read
    with: {node: "{{ node }}"}
  - id: switch
    do: lamp.on
    with: {node: "{{ node }}"}
on_failure: escalate
"""
