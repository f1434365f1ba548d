"""How often a run asks slurmctld: each shipped runbook in one scenario, on the simulated cluster.

The simulation is asked by the same calls as Slurm. What each of them costs there is in the table; a
snapshot is taken once for all calls of 15 s. slurmdbd and the nodes are asked beside that.
"""

import tempfile
from datetime import datetime
from pathlib import Path

from actions.simulated.wire import Request, Sort
from actions.slurm.cli import SNAPSHOT_AGE, SNAPSHOT_QUESTIONS
from runbooks.lint import Library
from tests.bench.rows import Number
from tests.sweep.crash import play
from tests.sweep.night import load_shipped
from tests.sweep.scenarios import SCENARIOS
from tests.sweep.theatre import Theatre

WRITE = 2
"""Before each write the controller's configuration is asked: is it the right cluster, and the same?"""
QUESTIONS = {
    "fresh_node": 1,
    "fresh_jobs": 4,
    "fresh_job": 2,
    "fresh_reservations": 1,
    "fresh_partition": 1,
    "canary": 1,
    "canary_start": 1,
    "canary_end": 1,
    "drain": WRITE,
    "resume": WRITE,
    "down": WRITE,
    "reboot": WRITE,
    "set_partition_nodes": WRITE + 1,
    "create_reservation": WRITE,
    "set_reservation_nodes": WRITE,
    "delete_reservation": WRITE,
    "requeue": WRITE,
    "change_job": WRITE,
}
"""Questions to slurmctld by Slurm's tools, by the call; calls that are not here go elsewhere."""
RUNS = {
    "drain-approved": "drain-node, one node",
    "return-node": "return-node",
    "return-canary": "return-node with its canary",
    "reboot-node": "reboot-node",
    "requeue-job": "requeue-job, the ground held",
    "dropped-A1": "node-dropped, slurmd started",
    "dropped-A4b": "node-dropped, drained and left to a person",
}


class CountingTheatre(Theatre):
    """Counts what the bots ask of the cluster."""

    def __init__(self, room: Path, library: Library) -> None:
        self.questions = self.writes = 0
        self._snapshot_at: datetime | None = None
        super().__init__(room, library)

    def begin_count(self) -> None:
        """From now on; nobody has taken a snapshot."""
        self.questions = self.writes = 0
        self._snapshot_at = None

    def _watch(self, moment: str, request: Request, pid: int) -> None:
        if moment == "before":
            self._count(request)
        super()._watch(moment, request, pid)

    def _count(self, request: Request) -> None:
        cost = QUESTIONS.get(request.verb, 0)
        self.writes += bool(cost) and request.sort is Sort.WRITE
        now = self.stage.world.state.now
        if request.verb == "snapshot" and (
            self._snapshot_at is None or now - self._snapshot_at >= SNAPSHOT_AGE
        ):
            self._snapshot_at, cost = now, SNAPSHOT_QUESTIONS
        self.questions += cost


def questions_per_run(folder: Path) -> list[Number]:
    """One number for each runbook."""
    with tempfile.TemporaryDirectory(dir=folder) as room:
        theatre = CountingTheatre(Path(room), load_shipped())
        with theatre.server:
            return [_of_run(theatre, name, shown) for name, shown in RUNS.items()]


def _of_run(theatre: CountingTheatre, name: str, shown: str) -> Number:
    scenario = SCENARIOS[name]
    theatre.begin(scenario)
    theatre.begin_count()
    begun = theatre.stage.world.state.now
    theatre.must_live(scenario, play(scenario))
    passed = theatre.stage.world.state.now - begun
    return Number(
        name=f"questions to slurmctld: {shown}",
        value=theatre.questions,
        unit="",
        under=f"{theatre.writes} writes; {passed.total_seconds():.0f} s of the cluster's time",
    )
