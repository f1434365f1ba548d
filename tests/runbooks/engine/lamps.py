"""A tiny world with observable effects, for tests of the engine alone: lamps that runs switch on.

A lamp knows who switched it on (`us:<run>` or a person), so that ownership, foreign acts, lost
answers and late effects can be set up exactly. The engine under test is the real one.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import ClassVar

from actions.contract import (
    ActionSpec,
    Call,
    Done,
    Failed,
    FailureKind,
    Field,
    JobLoss,
    Observation,
    Outcome,
    Refusal,
    Standing,
    Unknown,
    Unreadable,
    ValueType,
    Wait,
)
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


@dataclass
class Lamps:
    """The world."""

    owner: dict[str, str] = field(default_factory=dict)
    """Lamp to who switched it on; absent: off."""
    boot: dict[str, str] = field(default_factory=dict)
    jobs: dict[str, tuple[JobLoss, ...]] = field(default_factory=dict)
    effects: list[str] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)
    """For the next writes, in order: `lost` (applied, no answer), `dropped` (not applied, no answer),
    `retry`, `refuse`; nothing: all goes well."""
    near: list[str] = field(default_factory=list)
    """What `lamp.near` finds."""
    dark: bool = False
    """Looks get no answer."""
    gone: set[str] = field(default_factory=set)
    """Lamps that were taken away for good: a look at one is refused."""
    before_write: Callable[[], object] | None = None
    after_look: Callable[[], object] | None = None


def _spec(name: str, **more: object) -> ActionSpec:
    return ActionSpec(
        name=name,
        version=1,
        summary="",
        permission=Permission.NODE_READ if more.get("looks_only") else Permission.NODE_DRAIN,
        parameters={"node": Field(type=ValueType.NODE, help="")},
        time_limit=timedelta(seconds=20),
        **more,  # type: ignore[arg-type]
    )


class LampRead:
    """`lamp.read`: whether it is on."""

    spec = _spec("lamp.read", looks_only=True)

    def __init__(self, world: Lamps) -> None:
        self.world = world

    def look(self, call: Call) -> Observation:
        raise AssertionError("a step that only looks is never looked at before")

    def do(self, call: Call) -> Outcome:
        if self.world.dark:
            raise Unreadable("the lamp does not answer")
        return Done(output={"owner": self.world.owner.get(str(call.node), "")})


class LampNear:
    """`lamp.near`: the lamps beside one."""

    spec = replace(
        _spec("lamp.near", looks_only=True),
        output={"nodes": Field(type=ValueType.NODES, help="")},
    )

    def __init__(self, world: Lamps) -> None:
        self.world = world

    def look(self, call: Call) -> Observation:
        raise AssertionError("a step that only looks is never looked at before")

    def do(self, call: Call) -> Outcome:
        return Done(output={"nodes": list(self.world.near)})


class LampLit:
    """`lamp.lit`: waits until it is on."""

    spec = _spec("lamp.lit", looks_only=True)

    def __init__(self, world: Lamps) -> None:
        self.world = world

    def look(self, call: Call) -> Observation:
        raise AssertionError("a step that only looks is never looked at before")

    def do(self, call: Call) -> Outcome:
        if str(call.node) in self.world.owner:
            return Done(output={"lit": True})
        return Wait(until=call.now + timedelta(seconds=10), why="still dark")


class LampOn:
    """`lamp.on`: switches it on, in our name."""

    spec = _spec(
        "lamp.on", sets_mark="light", undo="lamp.off", takes_node_out=True, may_end_jobs=True
    )

    def __init__(self, world: Lamps) -> None:
        self.world = world

    def look(self, call: Call) -> Observation:
        world, node = self.world, str(call.node)
        if world.dark:
            raise Unreadable("the lamp does not answer")
        if node in world.gone:
            raise Refusal(f"there is no lamp {node}")
        owner = world.owner.get(node, "")
        seen = Observation(
            standing=Standing.NOT_SO if not owner else _standing(owner, call),
            why=f"lit by {owner}" if owner else "dark",
            boot_id=world.boot.get(node, "b1"),
            owner=owner or "nobody",
            state="lit" if owner else "dark",
            jobs_end=world.jobs.get(node, ()),
        )
        if world.after_look is not None:
            world.after_look()
        return seen

    def do(self, call: Call) -> Outcome:
        world, node = self.world, str(call.node)
        if world.before_write is not None:
            world.before_write()
        answer = world.answers.pop(0) if world.answers else ""
        if answer == "retry":
            return Failed(error="busy", kind=FailureKind.RETRYABLE)
        if answer == "refuse":
            return Failed(error="no such lamp", kind=FailureKind.PERMANENT)
        if answer != "dropped":
            world.owner[node] = f"us:{call.run}"
            world.effects.append(f"on {node} {call.effect_id}")
        return Unknown(why="no answer in time") if answer else Done(mark_text=f"nw {call.run}")


class LampSwap(LampOn):
    """`lamp.swap`: switches one on in the place of others."""

    spec = replace(
        LampOn.spec,
        name="lamp.swap",
        parameters={
            "node": Field(type=ValueType.NODE, help=""),
            "others": Field(type=ValueType.NODES, help=""),
        },
    )


class LampOff:
    """`lamp.off`: gives back what we lit."""

    spec = _spec("lamp.off", clears_mark="light")

    def __init__(self, world: Lamps) -> None:
        self.world = world

    def look(self, call: Call) -> Observation:
        node = str(call.node)
        if node in self.world.gone:
            raise Refusal(f"there is no lamp {node}")
        owner = self.world.owner.get(node, "")
        standing = Standing.NOT_SO
        if not owner:
            standing = Standing.OURS
        elif owner != f"us:{call.run}":
            standing = Standing.BLOCKED
        return Observation(standing=standing, why=f"lit by {owner or 'nobody'}", owner=owner)

    def do(self, call: Call) -> Outcome:
        self.world.owner.pop(str(call.node), None)
        self.world.effects.append(f"off {call.node} {call.effect_id}")
        return Done()


def _standing(owner: str, call: Call) -> Standing:
    ours = any(mark.kind == "light" for mark in call.marks) and owner == f"us:{call.run}"
    return Standing.OURS if ours else Standing.FOREIGN


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
        actions = {
            action.spec.name: action
            for action in (
                LampRead(self.world),
                LampNear(self.world),
                LampSwap(self.world),
                LampLit(self.world),
                LampOn(self.world),
                LampOff(self.world),
            )
        }
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
