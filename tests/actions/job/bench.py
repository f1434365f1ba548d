"""The real engine, ledger and the shipped requeue-job over the hands of one cluster, whichever it is."""

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

from actions.catalogue import ClusterSite, SiteRules, registry
from actions.contract import ActionSpec
from actions.hands import Page, PageReceipt
from audit_log.ledger import Ledger
from config.actors import Actor, ActorKind, Door
from config.clock import Clock
from config.ids import ActorId, RunId
from config.job_settings import Restartable
from config.json_values import Json, JsonMap
from config.node_names import NodeName, NodeSet
from config.permissions import Allowed, Decision, Permission
from config.policy import Policy as SitePolicy
from config.redaction import Redactor
from runbooks.builtin import BUILTINS
from runbooks.definition import Definition, pin
from runbooks.engine import Engine
from runbooks.halt import HaltFile
from runbooks.library_files import SHIPPED
from runbooks.load import load_runbook
from runbooks.machine import RunState
from runbooks.parts import Parts
from runbooks.plan import Plan
from runbooks.policy import Policy, Pool
from runbooks.projection import RunProjector
from runbooks.requests import Requests, RunRequest
from runbooks.run import Run
from runbooks.run_rows import select

ANN, BOB, CAT = (
    Actor(id=ActorId(f"p-{name}"), kind=ActorKind.PERSON, name=name, roles=frozenset({"oncall"}))
    for name in ("ann", "bob", "cat")
)
_LONGEST = timedelta(minutes=30)


class Everybody:
    """Rights that allow all: permissions have tests of their own."""

    def step(self, run: Run, permission: Permission, nodes: NodeSet, in_request: int) -> Decision:
        return Allowed(role="oncall", because="test")


class NoPager:
    """Pages are counted in the ledger; nothing is sent."""

    def send(self, page: Page, *, deadline: timedelta) -> tuple[PageReceipt, ...]:
        return ()


class Shelf:
    """The one runbook of these tests, as it ships."""

    def __init__(self, specs: dict[str, ActionSpec]) -> None:
        path = SHIPPED / "library/requeue-job/v1.yaml"
        book = load_runbook(path.read_text("utf-8"), "requeue-job/v1.yaml", specs)
        self._definition = pin(book, {book.name: book}, {}, specs)

    def definition(self, name: str, version: int | None = None) -> Definition:
        """It, by its name."""
        if name != self._definition.runbook.name:
            raise KeyError(f"there is no runbook {name}")
        return self._definition

    def names(self) -> tuple[str, ...]:
        """Its name."""
        return (self._definition.runbook.name,)


class Bench:
    """One bot."""

    def __init__(
        self,
        folder: Path,
        site: ClusterSite,
        clock: Clock,
        forward: Callable[[datetime], None],
        rules: tuple[Restartable, ...] = (),
    ) -> None:
        """`forward` lets the time of the cluster pass until then."""
        self.clock = clock
        self._forward = forward
        self.site = site
        name = site.cluster.name
        nodes = frozenset(site.cluster.snapshot().nodes)
        pool = Pool(name="all", nodes=nodes, max_out=5)
        self.ledger = Ledger.open(
            folder / "nodewarden.db",
            clock=clock,
            redactor=Redactor(),
            projectors=(RunProjector(),),
        )
        known = SiteRules(
            hands_off=lambda _c, _n: "",
            pool=lambda _c, _n: nodes,
            restartable=lambda _name: rules,
        )
        verbs = registry({name: site}, known, NoPager())
        specs = {**{verb: action.spec for verb, action in verbs.items()}, **BUILTINS}
        self.parts = Parts(
            ledger=self.ledger,
            artefacts=self.ledger.artefacts,
            registry=verbs,
            specs=specs,
            clusters={name: site.cluster},
            library=Shelf(specs),
            policy=Policy(
                site=SitePolicy.model_validate({"autonomy": {"default": "act", "rules": []}}),
                protected={},
                pool_of=lambda _c, _n: pool,
            ),
            rights=Everybody(),
            halt=HaltFile(folder / "halt"),
            clock=clock,
        )
        self.engine = Engine(self.parts)
        self.requests = Requests(self.parts)

    def ask(self, runbook: str, **parameters: Json) -> RunId:
        """ann asks for a run."""
        asked = RunRequest(
            runbook=runbook,
            cluster=self.site.cluster.name,
            parameters=parameters,
            actor=ANN,
            door=Door.CLI,
            reason="test",
            key="",
        )
        return self.requests.run(asked)[0]

    def run(self, run: RunId) -> Run:
        """The run, as committed."""
        return next(found for found in select(self.ledger.query, "true") if found.id == run)

    def plan(self, run: RunId) -> Plan:
        """Its present plan."""
        found = self.run(run).plan
        assert found is not None
        return Plan.from_json(json.loads(self.parts.artefacts.get(found.artefact)))

    def until_asked(self, run: RunId) -> Run:
        """Go on until it needs somebody, or has ended."""
        end = self.clock.now().wall + _LONGEST
        while self.clock.now().wall < end:
            later = self.engine.advance(run).at
            now = self.run(run)
            if not now.state.acts or later is None:
                return now
            if later > self.clock.now().wall:
                self._forward(later)
        raise AssertionError(f"{run} does not come to an end: {self.run(run)}")

    def to_the_end(self, run: RunId) -> Run:
        """The same, with two persons who say yes to each plan."""
        while True:
            now = self.until_asked(run)
            if now.state is not RunState.AWAITING_APPROVAL or now.plan is None:
                return now
            if not now.approved:
                self.requests.approve(run, now.plan.hash, BOB, Door.CLI)
            if not self.run(run).approved:
                self.requests.approve(run, now.plan.hash, CAT, Door.CLI)

    def output(self, run: RunId, step: str) -> JsonMap:
        """What a step gave."""
        output = self.run(run).steps[step].output
        artefact = output.get("artefact")
        if isinstance(artefact, str) and len(output) == 1:
            found: JsonMap = json.loads(self.parts.artefacts.get(artefact))
            return found
        return output

    def marks(self) -> list[tuple[str, str]]:
        """Open marks: kind and what they stand on."""
        return [
            (str(kind), NodeName(str(node)))
            for kind, node in self.ledger.query("SELECT kind, node FROM marks ORDER BY kind, node")
        ]
