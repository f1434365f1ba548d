"""The real engine and the shipped runbooks over a simulated cluster, in one process, in its time.

A run is carried as far as it gets; then time passes to what is due next. `restart` is what a kill of
the bot leaves: the ledger and the world.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from actions.canary.settings import CanaryRules
from actions.catalogue import ClusterSite, SiteRules, registry
from actions.hands import Page, PageReceipt
from actions.simulated.canary import SimulatedCanary
from actions.simulated.client import Line, SimulatedCluster, SimulatedNodes
from actions.simulated.plugs import Plugs
from actions.simulated.server import SimulationServer
from actions.simulated.stage import Stage
from actions.simulated.world import World
from audit_log.ledger import Ledger
from config.actors import Actor, ActorKind, Door
from config.clock import EPOCH, Instant, from_microseconds
from config.ids import ActorId, ClusterName, RunId
from config.json_values import Json, JsonMap
from config.node_names import NodeSet
from config.permissions import Allowed, Decision, Permission
from config.policy import Policy as SitePolicy
from config.redaction import Redactor
from runbooks.builtin import BUILTINS
from runbooks.engine import Engine
from runbooks.halt import HaltFile
from runbooks.library_files import SHIPPED, load_library
from runbooks.machine import RunState
from runbooks.parts import Parts
from runbooks.plan import Plan
from runbooks.policy import Policy, Pool
from runbooks.projection import RunProjector
from runbooks.requests import Requests, RunRequest
from runbooks.run import Run
from runbooks.run_rows import load, select
from runbooks.values import settle

SIM = ClusterName("sim")
CANARY = "canary"
"""Account of the canary."""
ANN = Actor(id=ActorId("p-ann"), kind=ActorKind.PERSON, name="ann", roles=frozenset({"oncall"}))
OTHERS = tuple(
    Actor(id=ActorId(f"p-{name}"), kind=ActorKind.PERSON, name=name, roles=frozenset({"oncall"}))
    for name in ("bob", "cat")
)
_MOST_TURNS = 400


class WorldClock:
    """The time of the simulated world."""

    def __init__(self, plugs: Plugs) -> None:
        self._plugs = plugs

    def now(self) -> Instant:
        present = self._plugs.now()
        return Instant(wall=present, monotonic=present - EPOCH)


class Everybody:
    """Rights that allow all: permissions have tests of their own."""

    def step(self, run: Run, permission: Permission, nodes: NodeSet, in_request: int) -> Decision:
        return Allowed(role="oncall", because="test")


class NoPager:
    """Pages are counted in the ledger; nothing is sent."""

    def send(self, page: Page, *, deadline: timedelta) -> tuple[PageReceipt, ...]:
        return ()


def whole_site(line: Line) -> ClusterSite:
    """Everything that the simulated cluster offers."""
    cluster = SimulatedCluster(name=SIM, line=line)
    return ClusterSite(
        cluster=cluster,
        nodes=SimulatedNodes(line=line),
        history=cluster,
        changes=cluster,
        jobs=cluster,
        canary=SimulatedCanary(line=line),
        canary_rules=CanaryRules(user=CANARY, time_limit=timedelta(minutes=10)),
        units=frozenset({"slurmd"}),
        close=lambda: None,
    )


def without_canary(line: Line) -> ClusterSite:
    """A site that has configured no canary."""
    return replace(whole_site(line), canary=None, canary_rules=None)


@dataclass(slots=True, kw_only=True)
class Bench:
    """A bot without threads, and the plugs of its world."""

    folder: Path
    plugs: Plugs
    autonomy: str = "act"
    site: Callable[[Line], ClusterSite] = whole_site
    max_out: int = 3
    boot_time: timedelta | None = None
    ledger: Ledger = field(init=False)
    parts: Parts = field(init=False)
    cluster: SimulatedCluster = field(init=False)
    engine: Engine = field(init=False)
    requests: Requests = field(init=False)

    def open(self) -> None:
        """A process begins."""
        clock = WorldClock(self.plugs)
        line = Line(path=self.plugs.path)
        self.cluster = SimulatedCluster(name=SIM, line=line)
        everything = frozenset(self.cluster.snapshot().nodes)
        rules = SiteRules(
            hands_off=lambda _c, _n: "",
            pool=lambda _c, _n: everything,
            boot_time=lambda _c, _n: self.boot_time,
        )
        verbs = registry({SIM: self.site(line)}, rules, NoPager())
        specs = {**{name: verb.spec for name, verb in verbs.items()}, **BUILTINS}
        pool = Pool(name="all", nodes=everything, max_out=self.max_out)
        site = {"autonomy": {"default": self.autonomy, "rules": []}}
        self.ledger = Ledger.open(
            self.folder / "nodewarden.db",
            clock=clock,
            redactor=Redactor(),
            projectors=(RunProjector(),),
        )
        self.parts = Parts(
            ledger=self.ledger,
            artefacts=self.ledger.artefacts,
            registry=verbs,
            specs=specs,
            clusters={SIM: self.cluster},
            library=load_library([SHIPPED], specs),
            policy=Policy(
                site=SitePolicy.model_validate(site),
                protected={},
                pool_of=lambda _c, _n: pool,
            ),
            rights=Everybody(),
            halt=HaltFile(self.folder / "halt"),
            clock=clock,
        )
        self.engine = Engine(self.parts)
        self.requests = Requests(self.parts)

    def restart(self) -> None:
        """What a new process has: nothing but the ledger."""
        self.ledger.close()
        self.open()

    def now(self) -> datetime:
        """The present of the world."""
        return self.plugs.now()

    def ask(self, runbook: str, **parameters: Json) -> RunId:
        """Ask for a run."""
        request = RunRequest(
            runbook=runbook,
            cluster=SIM,
            parameters=settle(self.parts.library.definition(runbook).runbook, parameters),
            actor=ANN,
            door=Door.CLI,
            reason="test",
        )
        return self.requests.run(request)[0]

    def settle(self, run: RunId, until: Callable[[], bool] = lambda: False) -> Run:
        """Go on until this run is at rest (final, or a person is asked), or until that is so."""
        for _ in range(_MOST_TURNS):
            due = self.turn(until)
            if until() or due is None:
                return self.run(run)
            self.plugs.forward(due - self.now())
        raise AssertionError(f"{run} does not come to an end: {self.run(run)}")

    def turn(self, until: Callable[[], bool] = lambda: False) -> datetime | None:
        """Every open run as far as it gets; when the next one is due, None when none is."""
        while True:
            before, laters = self.ledger.head.seq, []
            for run in select(self.ledger.query, "open = 1"):
                laters.append(self.engine.advance(run.id).at)
                if until():
                    return None
            if self.ledger.head.seq == before:
                break
        now = self.now()
        rows = self.ledger.query("SELECT min(due_us) FROM runs WHERE open = 1 AND due_us > 0")
        stored = [from_microseconds(rows[0][0])] if rows[0][0] is not None else []
        still = tuple(select(self.ledger.query, "open = 1"))
        callers = {run.parent for run in still}
        acting = any(run.state.acts for run in still if run.id not in callers)
        times = [at for at in (*laters, *stored) if at is not None and at > now]
        return min(times, default=None) if acting else None

    def agree(self) -> None:
        """Two other persons say yes to each plan that waits."""
        for run in select(self.ledger.query, "open = 1"):
            if run.state is RunState.AWAITING_APPROVAL and run.plan is not None:
                for person in OTHERS:
                    if not self.run(run.id).approved:
                        self.requests.approve(run.id, run.plan.hash, person, Door.CLI)

    def run(self, run: RunId) -> Run:
        """The run, as committed."""
        return load(self.ledger, run)

    def children(self, run: RunId) -> tuple[Run, ...]:
        """Runs that it called."""
        return tuple(select(self.ledger.query, f"parent = '{run}'"))

    def asked(self, run: RunId) -> Run:
        """The run at which it stands: itself, or the innermost open one that it called."""
        still = [child for child in self.children(run) if child.open]
        return self.asked(still[-1].id) if still else self.run(run)

    def plan(self, run: RunId) -> Plan:
        """Its present plan."""
        plan = self.run(run).plan
        assert plan is not None
        return Plan.from_json(json.loads(self.parts.artefacts.get(plan.artefact)))

    def output(self, run: RunId, key: str) -> JsonMap:
        """Output of a step."""
        output = self.run(run).steps[key].output
        artefact = output.get("artefact")
        if isinstance(artefact, str):
            found: Any = json.loads(self.parts.artefacts.get(artefact))
            return dict(found)
        return output

    def steps(self, run: RunId) -> dict[str, str]:
        """State of each step by its key."""
        return {key: record.state.value for key, record in self.run(run).steps.items()}

    def marks(self) -> list[tuple[str, str]]:
        """Kind and name of each open mark."""
        return [(row[0], row[1]) for row in self.ledger.query("SELECT kind, node FROM marks")]

    def written(self) -> list[tuple[str, str]]:
        """Every write that changed the world, in order."""
        return [(effect.verb, effect.arguments.get("node", "")) for effect in self.plugs.effects()]


@contextmanager
def bench_over(folder: Path, world: World, **rules: Any) -> Iterator[Bench]:
    """A bench over this world, once its controller has been up long enough to be believed."""
    socket = folder / "s"
    with SimulationServer(Stage(world), socket):
        plugs = Plugs(path=socket)
        plugs.forward(timedelta(minutes=2))
        bench = Bench(folder=folder, plugs=plugs, **rules)
        bench.open()
        try:
            yield bench
        finally:
            bench.ledger.close()
