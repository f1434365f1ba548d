"""The bot stands still, its clock is set, slurmctld is gone: at one place of a run."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta

from tests.sweep.crash import KEY, End, Sweep, plain
from tests.sweep.mortal import Moment, Point, Sort
from tests.sweep.night import Night
from tests.sweep.other_operator import BETWEEN, places
from tests.sweep.scenarios import CLUSTER, SCENARIOS, Scenario
from tests.sweep.theatre import Stops, Theatre

HOUR = 3600
NO_CONTROLLER = "no-controller"
PATIENT = {**CLUSTER, "slurmd_timeout": 7200, "ping_interval": 100}
"""A cluster that gives a silent node two hours: ten minutes more must not decide the play."""
RECIPE = "python -m tests.sweep.replay_disturbance"

TAKING_BACK = frozenset({"drain", "canary_end", "delete_reservation"})

Disturb = Callable[[Theatre], None]


def stand_still(stage: Theatre) -> None:
    """SIGSTOP for ten minutes."""
    with stage.server.lock:
        stage.stage.forward(timedelta(minutes=10))


def hour_ahead(stage: Theatre) -> None:
    """Somebody sets the bot's clock an hour ahead."""
    stage.wrong_by(HOUR)


def hour_back(stage: Theatre) -> None:
    """Somebody sets it an hour back."""
    stage.wrong_by(-HOUR)


def no_controller(stage: Theatre) -> None:
    """slurmctld is stopped in order, and started a minute later."""
    stage.pull({"plug": "controller_restart", "killed": False, "away": 60})


DISTURBANCES: Mapping[str, Disturb] = {
    "stand-still": stand_still,
    "hour-ahead": hour_ahead,
    "hour-back": hour_back,
    NO_CONTROLLER: no_controller,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """After which commit; with its line for a replay."""

    commit: int
    recipe: str


class Disturbed:
    """One scenario, carried out by the worker's ticks."""

    def __init__(self, stage: Theatre, name: str) -> None:
        self.stage = stage
        self.scenario = patient(SCENARIOS[name])
        self.sweep = Sweep(stage, self.scenario)
        stage.put(self.sweep.start)
        self._before = tuple(plain(effect) for effect in stage.effects())
        self._earlier = {f"run-{number}" for number in range(1, len(self.scenario.earlier) + 1)}
        life = stage.must_live(self.scenario, self._play)
        self.labels = life.labels
        self.reference = self.sweep.end(life)

    def _play(self, bot: Night) -> None:
        bot.serve(bot.ask(self.scenario.asked, KEY))

    def places(self, kind: str) -> Iterator[Place]:
        """After every commit but between skipped steps; of a long run after some of them."""
        between = [where for where in places(self.labels) if where.how == BETWEEN]
        for where in between[:: self.scenario.thin]:
            recipe = f"{RECIPE} {self.scenario.name} {kind} {where.commit}"
            yield Place(commit=where.commit, recipe=recipe)

    def play(self, kind: str, commit: int) -> str:
        """What differs from the run that nobody disturbed; the empty string if nothing does."""
        stage = self.stage
        stage.put(self.sweep.start)
        point = Point(sort=Sort.COMMIT, number=commit, moment=Moment.AFTER)
        stops = Stops(
            wanted=lambda here: here == point, meanwhile=lambda: DISTURBANCES[kind](stage)
        )
        life = stage.live(self.scenario, self._play, stops=stops)
        if life.told is None:
            return life.failure or "the bot died"
        end = self.sweep.end(life)
        if kind == NO_CONTROLLER and self._left_to_a_person(end):
            return ""
        if self.scenario.by_the_clock and self._stopped_safely(end):
            return ""
        differs = self.reference.difference(end)
        whys = "; ".join(why for _, _, why in life.told["runs"].values())
        return f"{differs} ({whys})" if differs else ""

    def _left_to_a_person(self, end: End) -> bool:
        """Nothing was done and a person was told: a node whose state slurmctld has not yet found out
        again may fit no cause.
        """
        _, _, pages = end.ledger
        return end.effects == self._before and self._asked(end) == ["needs_person"] and bool(pages)

    def _stopped_safely(self, end: End) -> bool:
        """Where a step lives by Slurm's own times, a wrong clock may stop the run: a person is told, and
        besides what the run does anyway, things were only taken back.
        """
        _, _, pages = end.ledger
        more = [effect for effect in end.effects if effect not in self.reference.effects]
        taken_back = all(effect[0] in TAKING_BACK for effect in more)
        return "needs_person" in self._asked(end) and bool(pages) and taken_back

    def _asked(self, end: End) -> list[str]:
        return [state for run, state in end.runs if run not in self._earlier]


def patient(scenario: Scenario) -> Scenario:
    """The scenario in a cluster whose own time limits lie far away, where that leaves it the same."""
    return replace(scenario, cluster=PATIENT) if scenario.name == "dropped-A1" else scenario
