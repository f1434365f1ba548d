"""What every measurement stands on: a folder on a real disk, a filled ledger, runs of real runbooks."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from actions.catalogue import ClusterSite, SiteRules, registry
from actions.hands import Page, PageReceipt
from actions.simulated.client import Line, SimulatedCluster, SimulatedNodes
from audit_log.ledger import Ledger, Transaction
from audit_log.records import Event, EventKind
from config.actors import Actor, ActorKind, Door
from config.ids import ActorId, ClusterName, RunId, StepId
from config.json_values import Json
from config.node_names import NodeName, NodeSet
from config.permissions import Allowed, Decision, Permission
from config.policy import Policy as SitePolicy
from config.redaction import Redactor
from config.system_clock import SystemClock
from runbooks.builtin import BUILTINS
from runbooks.halt import HaltFile
from runbooks.journal import Journal
from runbooks.library_files import SHIPPED, load_library
from runbooks.machine import Move
from runbooks.parts import Parts
from runbooks.policy import Policy
from runbooks.projection import RunProjector
from runbooks.requests import Requests, RunRequest
from runbooks.run import Run

SIM = ClusterName("sim")
ANN = Actor(
    id=ActorId("p-0123456789"), kind=ActorKind.PERSON, name="ann", roles=frozenset({"admin"})
)
SECRETS = tuple(f"xoxb-{number:04d}-aVeryLongSecretToken" for number in range(10))
"""As many as a bot with two Slack tokens, page keys and BMC passwords has to keep out."""


class Everybody:
    """Rights that allow all: the gate has a cost of its own, which is in the times at the doors."""

    def step(self, run: Run, permission: Permission, nodes: NodeSet, in_request: int) -> Decision:
        return Allowed(role="admin", because="measured")


class NoPager:
    """Nobody is woken."""

    def send(self, page: Page, *, deadline: timedelta) -> tuple[PageReceipt, ...]:
        return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """The engine's parts over an own ledger, without a worker."""

    parts: Parts
    journal: Journal
    requests: Requests

    def ask(self, runbook: str, actor: Actor = ANN, **parameters: Json) -> RunId:
        """A run, committed."""
        asked = RunRequest(
            runbook=runbook,
            cluster=SIM,
            parameters=parameters,
            actor=actor,
            door=Door.CLI,
            reason="measured",
        )
        return self.requests.run(asked)[0]

    def begin(self, runbook: str, actor: Actor = ANN, **parameters: Json) -> RunId:
        """A run that is under way."""
        run = self.ask(runbook, actor, **parameters)
        self.journal.move(run, Move.BEGIN, "")
        return run


def open_engine(folder: Path, socket: Path = Path("/nowhere")) -> Engine:
    """Parts as `bot.wiring` makes them, over a simulated cluster at `socket`."""
    clock = SystemClock()
    ledger = Ledger.open(
        folder / "nodewarden.db",
        clock=clock,
        redactor=Redactor(SECRETS),
        projectors=(RunProjector(),),
    )
    line = Line(path=socket, limit=timedelta(seconds=60))
    site = ClusterSite(
        cluster=SimulatedCluster(name=SIM, line=line),
        nodes=SimulatedNodes(line=line),
        units=frozenset({"slurmd"}),
        close=lambda: None,
    )
    rules = SiteRules(hands_off=lambda _c, _n: "", pool=lambda _c, _n: frozenset())
    verbs = registry({SIM: site}, rules, NoPager())
    specs = {**{name: verb.spec for name, verb in verbs.items()}, **BUILTINS}
    parts = Parts(
        ledger=ledger,
        artefacts=ledger.artefacts,
        registry=verbs,
        specs=specs,
        clusters={SIM: site.cluster},
        library=load_library([SHIPPED], specs),
        policy=Policy(site=SitePolicy(), protected={}, pool_of=lambda _c, _n: None),
        rights=Everybody(),
        halt=HaltFile(folder / "halt"),
        clock=clock,
    )
    return Engine(parts=parts, journal=Journal(parts), requests=Requests(parts))


def fill(ledger: Ledger, rows: int) -> None:
    """Records like those of the engine, many in a transaction, until there are `rows` of them."""
    while (head := ledger.head.seq) < rows:
        numbers = range(head, min(rows, head + 5000))
        ledger.commit(lambda transaction, numbers=numbers: _append(transaction, numbers))  # type: ignore[misc]


def _append(transaction: Transaction, numbers: Sequence[int]) -> None:
    """Of runs that this ledger does not know: as after years, when their rows are not looked at."""
    for number in numbers:
        kind = (EventKind.STEP_INTENDED, EventKind.STEP_FINISHED)[number % 2]
        transaction.append(
            Event(
                kind=kind,
                actor=ActorId("engine"),
                run=RunId(f"old-{number // 12}"),
                step=StepId("drain"),
                cluster=SIM,
                node=NodeName(f"gpu-{number % 5000:04d}"),
                data=DATA[number % 2],
            )
        )


_LOOKED: dict[str, Json] = {
    "standing": "not_so",
    "why": "gpu-0001 is IDLE",
    "boot_id": "0d9b2f5e-2f0a-4c55-9d0f-1f6a2b1f7d11",
    "owner": "nobody",
    "state": "IDLE",
    "reason": "",
}
DATA: tuple[dict[str, Json], ...] = (
    {
        "key": "drain@gpu-0001",
        "action": "node.drain@1",
        "attempt": 1,
        "arguments": {"node": "gpu-0001", "reason": "GPU off the bus"},
        "expires_us": 1_780_000_000_000_000,
        "undoing": False,
        "mark": None,
        "may_end_jobs": False,
        "pool": None,
        "looked": _LOOKED,
    },
    {
        "key": "drain@gpu-0001",
        "attempt": 1,
        "outcome": "done",
        "why": "",
        "kind": "",
        "output": {
            "state": "IDLE+DRAIN",
            "reason": "nw A4b [run-1/0a1b2c3d]",
            "why": "GPU off the bus",
        },
    },
)
