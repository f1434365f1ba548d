"""slurmctld is killed half a second after a write and forgets it: at each write of a run (hands 1).

Under ReturnToService 0, 1 and 2, with a `scontrol reconfigure` after the restart where the simulation
has one. The run must end as if nothing had happened, or a person must have been told; and at no
moment may a node come back to service that nobody has validated.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta

from runbooks.mark_watch import SETTLES, MarkWatch
from tests.sweep.crash import KEY, Sweep
from tests.sweep.disturbances import patient
from tests.sweep.mortal import SIM, Moment, Point, Sort
from tests.sweep.night import Night
from tests.sweep.scenarios import SCENARIOS, Scenario
from tests.sweep.theatre import Life, Stops, Theatre

SOON = timedelta(milliseconds=500)
MODES = (0, 1, 2)
"""ReturnToService: a DOWN node comes back by a person, if it was silent, or always."""
RETURNED = "node returned to service"
RECIPE = "python -m tests.sweep.replay_forgetting"


def with_mode(scenario: Scenario, mode: int) -> Scenario:
    """The scenario on a cluster with this ReturnToService."""
    return replace(scenario, cluster={**scenario.cluster, "return_to_service": mode})


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """One write that was forgotten, and what was wrong at the end; empty when nothing was."""

    recipe: str
    wrong: str


class Forgetting:
    """One scenario under one ReturnToService."""

    def __init__(self, stage: Theatre, name: str, mode: int) -> None:
        self.stage = stage
        self.name, self.mode = name, mode
        self.scenario = with_mode(patient(SCENARIOS[name]), mode)
        self.sweep = Sweep(stage, self.scenario)
        stage.put(self.sweep.start)
        self._returned = len(self._back())
        self._pages = self._told_before()
        life = stage.must_live(self.scenario, self._play)
        self.writes = sum(1 for sort, _ in life.labels if sort is Sort.WRITE)
        self.reference = self.sweep.end(life)
        self._back_without = self._back()[self._returned :]

    def _play(self, bot: Night) -> None:
        bot.serve(bot.ask(self.scenario.asked, KEY))
        self._watch_marks(bot)

    @staticmethod
    def _watch_marks(bot: Night) -> None:
        """What the worker's duty does: our open marks are compared with the cluster."""
        bot.forward(bot.clock.now().wall + 3 * SETTLES)
        cluster = bot.parts.clusters[SIM]
        MarkWatch(bot.ledger, bot.clock, lambda _name: cluster.snapshot()).tick()

    def _told_before(self) -> int:
        life = self.stage.must_live(self.scenario, lambda _night: None)
        assert life.told is not None
        self.stage.put(self.sweep.start)
        return len(life.told["pages"])

    def _back(self) -> list[str]:
        """Nodes that Slurm gave back to service by itself."""
        with self.stage.server.lock:
            events = self.stage.stage.world.state.history
            return [event.subject for event in events if event.what == RETURNED]

    def play(self) -> Iterator[Forgotten]:
        """Each write in its turn."""
        for number in range(self.writes):
            recipe = f"{RECIPE} {self.name} {self.mode} {number}"
            yield Forgotten(recipe=recipe, wrong=self.forget(number))

    def forget(self, number: int) -> str:
        """What is wrong after slurmctld forgot this write; the empty string if nothing is."""
        stage = self.stage
        stage.put(self.sweep.start)
        point = Point(sort=Sort.WRITE, number=number, moment=Moment.AFTER)
        stops = Stops(wanted=lambda here: here == point, meanwhile=self._kill_controller)
        life = stage.live(self.scenario, self._play, stops=stops)
        if life.told is None:
            return life.failure or "the bot died"
        back = self._back()[self._returned :]
        if back != self._back_without:
            return f"{back} came back to service with nobody's word"
        return self._judged(life)

    def _kill_controller(self) -> None:
        with self.stage.server.lock:
            self.stage.stage.forward(SOON)
        self.stage.pull({"plug": "controller_restart", "killed": True, "away": 1})

    def _judged(self, life: Life) -> str:
        assert life.told is not None
        told = len(life.told["pages"])
        end = self.sweep.end(life)
        # What was forgotten is written once more: that alone is no difference.
        end = replace(end, effects=tuple(dict.fromkeys(end.effects)))
        differs = self.reference.difference(end)
        if not differs or told > self._pages:
            return ""
        whys = "; ".join(why for _, _, why in life.told["runs"].values())
        return f"{differs} ({whys})"
