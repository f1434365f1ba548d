"""The crash sweep of one scenario: a kill at every point, every recovery killed once more.

First level: the bot is killed by SIGKILL at each point of the run. Second level: from every state that
a first kill left, the recovering bot pauses at each of its commits, and world and files are kept as
they are then; that is what a kill there leaves, which the first level shows by being killed for real
in the same places. From each of those states a last bot finishes. States that nothing could tell
apart (world, ledger, time) are carried on once.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from actions.cluster import Node
from actions.simulated.state import Effect
from actions.simulated.training_rules import TWO_WRITERS
from audit_log.rebuild import rebuild
from audit_log.verify import verify
from runbooks.machine import RunState
from tests.sweep.mortal import Moment, Point, Sort
from tests.sweep.night import Night
from tests.sweep.scenarios import Scenario
from tests.sweep.theatre import Kept, Life, Stops, Theatre

KEY = "asked-once"
RECIPE = "python -m tests.sweep.replay"


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """What must be the same as without a crash."""

    runs: tuple[tuple[str, str], ...]
    effects: tuple[tuple[str, ...], ...]
    cluster: tuple[tuple[str, ...], ...]
    ledger: tuple[object, ...]
    """Locks, marks, pages."""

    def difference(self, other: "End") -> str:
        """The first part that differs, in one line."""
        for part in ("effects", "runs", "cluster", "ledger"):
            mine, theirs = getattr(self, part), getattr(other, part)
            if mine != theirs:
                return f"{part}: without a crash {mine}, here {theirs}"
        return ""


@dataclass(slots=True, kw_only=True)
class Tally:
    """What came of the points of one action."""

    points: int = 0
    finished: int = 0
    person: int = 0
    again: int = 0
    again_finished: int = 0
    again_person: int = 0


@dataclass(slots=True, kw_only=True)
class Swept:
    """One scenario, swept."""

    scenario: str
    tallies: dict[str, Tally] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    states: int = 0
    """Different states that were carried to their end."""

    def table(self) -> str:
        """Its part of the golden file."""
        lines = [
            f"{self.scenario:17} {label:17} {tally.points:6} {tally.finished:8} {tally.person:6}"
            f" {tally.again:6} {tally.again_finished:8} {tally.again_person:6}"
            for label, tally in sorted(self.tallies.items())
        ]
        return "".join(f"{line}\n" for line in lines)

    @property
    def points(self) -> int:
        """Kill points of both levels."""
        return sum(tally.points + tally.again for tally in self.tallies.values())


HEAD = (
    f"{'scenario':17} {'action or event':17} {'points':>6} {'finished':>8} {'person':>6}"
    f" {'again':>6} {'finished':>8} {'person':>6}\n"
)


def play(scenario: Scenario) -> Callable[[Night], str]:
    """Ask for the run, unless it was asked for, and go on to its end; check the books."""

    def night(bot: Night) -> str:
        differing = rebuild(bot.ledger).differing
        if differing:
            raise AssertionError(f"after the start, made again from the records: {differing}")
        run = bot.live(bot.ask(scenario.asked, KEY))
        differing = rebuild(bot.ledger).differing
        if differing:
            raise AssertionError(f"at the end, made again from the records: {differing}")
        report = verify(bot.ledger.path)
        if not report.sound:
            raise AssertionError(f"the chain is not sound: {report.findings}")
        return run.id

    return night


class Sweep:
    """The sweep of one scenario in one theatre."""

    def __init__(self, theatre: Theatre, scenario: Scenario) -> None:
        self.theatre = theatre
        self.scenario = scenario
        self.play = play(scenario)
        self.start = theatre.begin(scenario)
        life = theatre.must_live(scenario, self.play)
        self.labels = life.labels
        self.reference = self.end(life)
        unsound = tuple(books(theatre, life.told or {}))
        assert not unsound, f"without a crash already: {unsound}"
        self.swept = Swept(scenario=scenario.name)
        self._ends: dict[object, tuple[str, bool]] = {}

    def run(self) -> Swept:
        """Everything."""
        first: dict[object, Kept] = {}
        reached: dict[object, list[Point]] = {}
        for point, label in points(self.labels):
            if self.scenario.thin > 1 and point.sort is Sort.COMMIT and _twin(point):
                continue
            kept = self.killed(self.start, point)
            tally = self.swept.tallies.setdefault(label, Tally())
            tally.points += 1
            first.setdefault(kept.key, kept)
            reached.setdefault(kept.key, []).append(point)
            finished, person = self.outcome(kept, str(point))
            tally.finished += finished
            tally.person += person
        for key, kept in list(first.items())[:: self.scenario.thin_again]:
            self.again(kept, reached[key])
        self.swept.states = len(self._ends)
        return self.swept

    def killed(self, state: Kept, point: Point) -> Kept:
        """The state after a bot that began in `state` was killed at `point`."""
        self.theatre.put(state)
        life = self.theatre.live(self.scenario, self.play, point)
        if life.told is not None or life.failure:
            problem = life.failure or "it was not reached"
            self.fail(str(point), f"the bot should have been killed: {problem}")
        return self.theatre.keep()

    def again(self, kept: Kept, reached: list[Point]) -> None:
        """Kill the recovery from this state at each of its own commits."""
        states: list[Kept] = []

        def keep() -> None:
            states.append(self.theatre.keep())

        self.theatre.put(kept)
        stops = Stops(wanted=lambda point: point.sort is Sort.COMMIT, meanwhile=keep)
        life = self.theatre.live(self.scenario, self.play, stops=stops)
        places = [place for place in points(life.labels) if place[0].sort is Sort.COMMIT]
        for (point, label), state in zip(places, states, strict=True):
            finished, person = self.outcome(state, f"{reached[0]} {point}")
            tally = self.swept.tallies.setdefault(label, Tally())
            tally.again += len(reached)
            tally.again_finished += finished * len(reached)
            tally.again_person += person * len(reached)

    def outcome(self, kept: Kept, where: str) -> tuple[bool, bool]:
        """Whether a last bot from this state ends as without a crash; whether it needs a person."""
        known = self._ends.get(kept.key)
        if known is None:
            self.theatre.put(kept)
            life = self.theatre.live(self.scenario, self.play)
            known = self._judged(life, where)
            self._ends[kept.key] = known
        differs, person = known
        return not differs, person

    def _judged(self, life: Life, where: str) -> tuple[str, bool]:
        if life.told is None:
            self.fail(where, life.failure)
            return life.failure, False
        end = self.end(life)
        differs = self.reference.difference(end)
        if differs:
            self.fail(where, differs)
        wanted = {name for name, state in self.reference.runs if state == "needs_person"}
        found = {name for name, state in end.runs if state == "needs_person"}
        return differs, bool(found - wanted)

    def fail(self, where: str, why: str) -> None:
        """Note it with what replays it."""
        self.swept.failures.append(f"{RECIPE} {self.scenario.name} {where}\n    {why}")

    def end(self, life: Life) -> End:
        """The end that was reached, after the world has settled."""
        assert life.told is not None
        self.theatre.settle()
        return the_end(self.theatre, life.told)


def books(theatre: Theatre, told: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong between ledger and cluster at any end: locks, marks, pages."""
    if told["locks"] and not any(state in OPEN for _, state, _ in told["runs"].values()):
        yield f"every run is over, and these locks are held: {told['locks']}"
    seen = theatre.snapshot()
    there = {("drain", str(node.name)) for node in seen.nodes.values() if _ours(node)}
    there |= {("reservation", one.name) for one in seen.reservations}
    marked = {(str(kind), str(node)) for node, kind, _ in told["marks"]}
    if marked != there:
        yield f"marks in the ledger {sorted(marked)}, on the cluster {sorted(there)}"
    history = theatre.stage.world.state.history
    yield from (each.why for each in history if each.what == TWO_WRITERS)
    paged = {run for _, run in told["pages"]}
    for run, (_, state, why) in told["runs"].items():
        if state == RunState.NEEDS_PERSON and run not in paged:
            yield f"{run} needs a person and nobody is paged: {why}"


def _ours(node: Node) -> bool:
    """Whether it carries our drain, also where Slurm wrote over the text."""
    return node.draining and node.reason.startswith(("nw ", "Kill task failed"))


def _twin(point: Point) -> bool:
    """Whether it leaves the same as the point after the commit before it."""
    return point.number > 0 and point.moment is Moment.BEFORE


OPEN = frozenset(state.value for state in RunState if not state.final)


def the_end(theatre: Theatre, told: Mapping[str, Any]) -> End:
    """What is compared."""
    snapshot = theatre.snapshot()
    nodes = [
        (node.name, node.state, node.reason, node.reason_by, ",".join(sorted(node.partitions)))
        for node in snapshot.nodes.values()
    ]
    jobs = [
        (
            *(job.id, job.state, ",".join(job.nodes), str(job.restarts), str(job.priority)),
            *(job.reservation, job.excluded_nodes),
        )
        for job in snapshot.jobs
        if not job.name.startswith("nw-")  # a canary that has ended is shown for a while
    ]
    reservations = [(one.name, ",".join(one.nodes)) for one in snapshot.reservations]
    history = theatre.stage.world.state.history
    writers = [(each.subject, each.why) for each in history if each.what == TWO_WRITERS]
    hosts = theatre.stage.world.state.hosts.values()
    units = [(host.name, name, unit.state) for host in hosts for name, unit in host.units.items()]
    return End(
        runs=tuple((run, state) for run, (_, state, _) in told["runs"].items()),
        effects=tuple(plain(effect) for effect in theatre.effects()),
        cluster=(*nodes, *jobs, *units, *reservations, *writers),
        ledger=(tuple(told["locks"]), tuple(told["marks"]), tuple(told["pages"])),
    )


def plain(effect: Effect) -> tuple[str, ...]:
    """An effect without its time, its process and the number of the attempt."""
    named = dict(effect.arguments)
    named["effect_id"] = named.get("effect_id", "").rpartition("-")[0]
    return (effect.verb, *(f"{key}={value}" for key, value in sorted(named.items()) if value))


def points(labels: tuple[tuple[Sort, str], ...]) -> Iterator[tuple[Point, str]]:
    """Every point of a life, in order, with what it is about."""
    counts = dict.fromkeys(Sort, 0)
    for sort, label in labels:
        number = counts[sort]
        counts[sort] = number + 1
        for moment in Moment:
            if sort is Sort.WRITE or not moment.within:
                yield Point(sort=sort, number=number, moment=moment), label
