"""One bot for one night: a process without threads of its own that carries every open run as far
as it gets, lets time pass to what is due next, and stops when only persons can go on.
"""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from actions.catalogue import SiteRules, registry
from actions.hands import Page, PageReceipt
from actions.simulated.client import Line
from actions.simulated.plugs import Plugs
from audit_log.ledger import Ledger
from config.actors import Actor, ActorKind, Door
from config.clock import EPOCH, Instant, from_microseconds
from config.ids import ActorId, PlanHash, RunId
from config.node_names import NodeName, NodeSet
from config.permissions import Allowed, Decision, Permission
from config.policy import Policy as SitePolicy
from config.redaction import Redactor
from config.steady_clock import SteadyClock
from runbooks.builtin import BUILTINS
from runbooks.definition import Definition
from runbooks.engine import Engine
from runbooks.halt import HaltFile
from runbooks.library_files import SHIPPED, load_library
from runbooks.lint import Library
from runbooks.machine import RunState
from runbooks.parts import Parts
from runbooks.plan import Plan
from runbooks.policy import Policy, Pool
from runbooks.projection import RunProjector
from runbooks.requests import Requests, RunRequest
from runbooks.run import Run
from runbooks.run_rows import select
from runbooks.stops import CannotDo
from runbooks.values import settle
from runbooks.worker import Worker
from tests.sweep.mortal import SIM, Fate, mortal_ledger, mortal_site
from tests.sweep.scenarios import Asked, SiteWords

ANN = Actor(id=ActorId("p-ann"), kind=ActorKind.PERSON, name="ann", roles=frozenset({"oncall"}))
BOB = Actor(id=ActorId("p-bob"), kind=ActorKind.PERSON, name="bob", roles=frozenset({"oncall"}))
CARLA = Actor(
    id=ActorId("p-carla"), kind=ActorKind.PERSON, name="carla", roles=frozenset({"oncall"})
)
MOST_ROUNDS = 500
"""Turns of one night: a run that needs more never ends."""
MOST_TICKS = 2_000
LONGEST = timedelta(hours=6)
A_SECOND = timedelta(seconds=1)


WRONG_BY = "wrong-by"
"""File beside the world's socket: seconds by which somebody has set the bot's wall clock wrong."""


class WorldClock:
    """The world's own time, and a wall clock that may be set wrong."""

    def __init__(self, plugs: Plugs) -> None:
        self._plugs = plugs
        self.look()

    def now_is(self, moment: datetime) -> None:
        """Take the world's present over; nothing else moves it."""
        self._present = moment

    def look(self) -> None:
        """Ask the world, and the wall clock."""
        self.now_is(self._plugs.now())
        wrong = self._plugs.path.parent / WRONG_BY
        self._off = timedelta(seconds=int(wrong.read_text())) if wrong.exists() else timedelta(0)

    def now(self) -> Instant:
        return Instant(wall=self._present + self._off, monotonic=self._present - EPOCH)


class OneByOne(Worker):
    """The product's worker without its threads: a run is carried out where it is found to be due."""

    def _start(self, run: RunId, due_us: int) -> None:
        self._not_before.pop(run, None)
        self._advance(run, due_us)

    def idle(self) -> timedelta:
        """Until it would look again."""
        return timedelta(seconds=self._pause())


class Everybody:
    """Rights that allow all: permissions have tests of their own."""

    def step(self, run: Run, permission: Permission, nodes: NodeSet, in_request: int) -> Decision:
        return Allowed(role="oncall", because="the sweep asks")


class NoPager:
    """Pages are counted in the ledger; nothing is sent."""

    def send(self, page: Page, *, deadline: timedelta) -> tuple[PageReceipt, ...]:
        return ()


def load_shipped() -> Library:
    """The shipped runbooks, read once in the warm process."""
    site = mortal_site(Line(path=Path("/nowhere")), Fate(at=lambda _point: None))
    verbs = registry({SIM: site}, _rules(frozenset(), SiteWords()), NoPager())
    return load_library([SHIPPED], {**{n: a.spec for n, a in verbs.items()}, **BUILTINS})


def _rules(nodes: frozenset[NodeName], words: SiteWords) -> SiteRules:
    return SiteRules(
        hands_off=lambda _c, _n: "",
        pool=lambda _c, _n: nodes,
        boot_time=lambda _c, _n: words.boot_time,
        restartable=lambda _c: words.restartable,
    )


class Warm(Engine):
    """The product's engine, which has read the pinned texts before the bot was forked.

    The texts are still taken from the artefacts; only to parse the same ones again in each of
    thousands of processes would be most of the work.
    """

    def __init__(self, parts: Parts, known: Mapping[bytes, Definition]) -> None:
        super().__init__(parts)
        frames, artefacts = self._frames, parts.artefacts
        read = frames._definition

        def definition(artefact: str) -> Definition:
            return known.get(artefacts.get(artefact)) or read(artefact)

        frames._definition = definition  # type: ignore[assignment]


def pinned(library: Library) -> Mapping[bytes, Definition]:
    """Every runbook of the library as a run pins it: the stored bytes, and what they say."""
    stored = [json.dumps(library.definition(name).to_json()) for name in library.names()]
    return {text.encode(): Definition.from_json(json.loads(text)) for text in stored}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """Where a bot lives."""

    folder: Path
    socket: Path
    library: Library
    known: Mapping[bytes, Definition]
    policy: SitePolicy
    nodes: frozenset[NodeName]
    """One pool: all of them."""
    site: SiteWords

    @property
    def database(self) -> Path:
        return self.folder / "nodewarden.db"


def _moves(run: Run) -> bool:
    """Whether it will go on without a person who has not answered yet."""
    return run.state.acts or run.state is RunState.AWAITING_APPROVAL


class Night:
    """The bot."""

    def __init__(self, ground: Ground, fate: Fate) -> None:
        """Opens the ledger: its first commit is the first point of this process."""
        self.fate = fate
        self.plugs = Plugs(path=ground.socket)
        self.world_clock = WorldClock(self.plugs)
        self.clock = SteadyClock(self.world_clock)
        self.ledger: Ledger = mortal_ledger(fate).open(
            ground.database,
            clock=self.clock,
            redactor=Redactor(),
            projectors=(RunProjector(),),
        )
        line = Line(path=ground.socket)
        site = replace(
            mortal_site(line, fate),
            canary_rules=ground.site.canary,
            spares=ground.site.spares,
            pause=self._pause,
        )
        everything = ground.nodes
        verbs = registry({SIM: site}, _rules(everything, ground.site), NoPager())
        pool = Pool(name="all", nodes=everything, max_out=5)
        self.parts = Parts(
            ledger=self.ledger,
            artefacts=self.ledger.artefacts,
            registry=verbs,
            specs={**{name: verb.spec for name, verb in verbs.items()}, **BUILTINS},
            clusters={SIM: site.cluster},
            library=ground.library,
            policy=Policy(site=ground.policy, protected={}, pool_of=lambda _c, _n: pool),
            rights=Everybody(),
            halt=HaltFile(ground.folder / "halt"),
            clock=self.clock,
        )
        self.engine = Warm(self.parts, ground.known)
        self.requests = Requests(self.parts)

    def _pause(self, span: timedelta) -> None:
        """A verb waits: the world's time passes."""
        self.forward(self.clock.now().wall + span)

    def ask(self, asked: Asked, key: str) -> RunId:
        """Ask for a run; the same key again is the same request. Defaults are put in, as by a door."""
        runbook = self.parts.library.definition(asked.runbook).runbook
        request = RunRequest(
            runbook=asked.runbook,
            cluster=SIM,
            parameters=settle(runbook, asked.parameters),
            actor=ANN,
            door=Door.CLI,
            reason="sweep",
            key=key,
        )
        return self.requests.run(request)[0]

    def runs(self) -> tuple[Run, ...]:
        """Every run, as committed."""
        return tuple(select(self.ledger.query, "true"))

    def live(self, run: RunId) -> Run:
        """Go on until this run is final or only a person can go on."""
        end = self.clock.now().wall + LONGEST
        for _ in range(MOST_ROUNDS):
            due = self.turn()
            if self.agree():
                continue
            now = self.run(run)
            if due is None or not self._goes_on(now):
                return now
            self.forward(due)
            if self.clock.now().wall > end:
                break
        raise AssertionError(f"{run} does not come to an end: {self.run(run)}")

    def serve(self, run: RunId) -> Run:
        """The same by the worker's ticks, which also watch the clock and open intents."""
        self.fate.passed = self.world_clock.look
        worker = OneByOne(self.parts, self.engine, self.clock)
        for _ in range(MOST_TICKS):
            before = self.ledger.head.seq
            worker.tick()
            for agreed in self.agree():
                worker.changed(agreed)  # as the desk does
            now = self.run(run)
            if not self._goes_on(now):
                return now
            if self.ledger.head.seq == before:
                self.world_clock.now_is(self.plugs.forward(max(worker.idle(), A_SECOND)))
        raise AssertionError(f"{run} does not come to an end: {self.run(run)}")

    def _goes_on(self, run: Run) -> bool:
        """Whether it is open and something will still happen: a caller waits for what it called."""
        still = [each for each in self.runs() if each.open]
        callers = {each.parent for each in still}
        return run.open and any(_moves(each) for each in still if each.id not in callers)

    def run(self, run: RunId) -> Run:
        """One run, as committed."""
        return next(found for found in self.runs() if found.id == run)

    def plan(self, run: Run) -> Plan:
        """Its present plan."""
        assert run.plan is not None
        return Plan.from_json(json.loads(self.parts.artefacts.get(run.plan.artefact)))

    def turn(self) -> datetime | None:
        """Every open run as far as it gets; when the next one is due, None when none is."""
        while True:
            before = self.ledger.head.seq
            laters = [self.engine.advance(run.id).at for run in self.runs() if run.open]
            if self.ledger.head.seq == before:
                break
        rows = self.ledger.query("SELECT min(due_us) FROM runs WHERE open = 1 AND due_us > 0")
        now = self.clock.now().wall
        stored = [from_microseconds(rows[0][0])] if rows[0][0] is not None else []
        acting = any(run.state.acts for run in self.runs())
        times = [at for at in (*laters, *stored) if at is not None and at > now]
        return min(times, default=None) if acting else None

    def forward(self, until: datetime) -> None:
        """Let the world's time pass."""
        self.world_clock.now_is(self.plugs.forward(until - self.clock.now().wall))

    def agree(self) -> tuple[RunId, ...]:
        """Another person says yes to every plan that waits for one; the runs."""
        waiting = [
            run
            for run in self.runs()
            if run.state is RunState.AWAITING_APPROVAL and run.plan is not None
        ]
        for run in waiting:
            if run.plan is not None and not run.approved:
                self._approve(run.id, run.plan.hash)
        return tuple(run.id for run in waiting)

    def _approve(self, run: RunId, plan: PlanHash) -> None:
        """One person, and another where the plan asks for two."""
        for person in (BOB, CARLA):
            if not self.run(run).approved:
                with suppress(CannotDo):  # one who said yes before the crash
                    self.requests.approve(run, plan, person, Door.CLI)

    def told(self) -> Mapping[str, Any]:
        """What the ledger says at the end, free of times and of this process."""
        return {
            "runs": {run.id: (run.runbook, run.state.value, run.why) for run in self.runs()},
            "locks": self.ledger.query("SELECT atom, run FROM locks ORDER BY atom"),
            "marks": self.ledger.query("SELECT node, kind, run FROM marks ORDER BY node, kind"),
            "pages": self.ledger.query("SELECT key, run FROM pages ORDER BY key"),
        }
