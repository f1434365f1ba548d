"""Another operator at work: one foreign act at one place of a run, and what may become of it."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

from actions.contract import Rejected
from actions.simulated.writes import ForeignAct, When
from config.node_names import NodeName
from runbooks.machine import RunState
from runbooks.run import Run
from tests.sweep.crash import KEY, plain
from tests.sweep.mortal import Moment, Point, Sort
from tests.sweep.night import Night
from tests.sweep.scenarios import SCENARIOS, Plug, Scenario
from tests.sweep.theatre import Life, Stops, Theatre

RECIPE = "python -m tests.sweep.replay_act"
MOST_ASKS = 3
TEXT = "disk to be changed"
TARGETS = {
    "drain-node": "gpu-3",
    "drain-approved": "gpu-3",
    "return-node": "gpu-3",
    "dropped-A1": "gpu-2",
    "dropped-A1-down": "gpu-3",
    "dropped-A4a-ours": "gpu-3",
    "dropped-A4b": "gpu-2",
    "reboot-node": "gpu-3",
    "return-canary": "gpu-3",
}
"""The node on which the other operator acts."""


def acts(node: str) -> Mapping[str, Plug]:
    """Everything that may be done to that node meanwhile."""
    return {
        "drain": {"plug": "admin_drain", "node": node, "reason": TEXT, "by": "dana"},
        "resume": {"plug": "admin_resume", "node": node},
        "reason": {"plug": "edit_reason", "node": node, "reason": TEXT, "by": "dana"},
        "job-ends": {"plug": "end_job", "job": 10},
        "job-starts": {"plug": "start_job", "job": 12, "nodes": node},
        "reboot": {"plug": "reboot", "node": node},
        "leaves": {"plug": "remove_from_partition", "node": node, "partition": "train"},
        "slurmctld": {"plug": "controller_restart"},
    }


NOT_POSSIBLE = {"reboot-node": frozenset({"job-starts"})}
"""No job starts on a node that is drained for its reboot, and one that was there is waited for."""


class Where(str):
    """`7:between` after commit 7; `7:before-write`, `7:after-write` at the write that follows it."""

    @property
    def commit(self) -> int:
        """The commit after which it is."""
        return int(self.partition(":")[0])

    @property
    def how(self) -> str:
        """Between two commits, or at the write."""
        return self.partition(":")[2]


BETWEEN, BEFORE_WRITE, AFTER_WRITE = "between", "before-write", "after-write"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What came of one act at one place."""

    scenario: Scenario
    act: str
    where: Where
    acted: bool
    """False when the act was not possible there."""
    end: str
    """Where the run that was asked for stands at the end."""
    why: str
    complaints: tuple[str, ...]

    @property
    def recipe(self) -> str:
        """What plays it again."""
        return f"{RECIPE} {self.scenario.name} {self.act} {self.where}"


def places_of(scenario: Scenario, labels: Sequence[tuple[Sort, str]]) -> Sequence[Where]:
    """All of them, of a long run some."""
    return list(places(labels))[:: scenario.thin]


def places(labels: Sequence[tuple[Sort, str]]) -> Iterator[Where]:
    """Between any two commits, and at each write. Between two skipped steps nothing is looked at."""
    commit = -1
    for index, (sort, label) in enumerate(labels):
        if sort is Sort.WRITE:
            yield Where(f"{commit}:{BEFORE_WRITE}")
            yield Where(f"{commit}:{AFTER_WRITE}")
            continue
        commit += 1
        follows = labels[index + 1][1] if index + 1 < len(labels) else ""
        if not label == follows == "step.skipped":
            yield Where(f"{commit}:{BETWEEN}")


class OtherOperator:
    """One scenario with its target node."""

    def __init__(self, theatre: Theatre, name: str) -> None:
        self.theatre = theatre
        self.scenario = SCENARIOS[name]
        self.node = TARGETS[name]
        self.start = theatre.begin(self.scenario)
        self._jobs = {str(job.id) for job in theatre.snapshot().jobs}
        life = theatre.must_live(self.scenario, self._play)
        self.labels = life.labels

    def _play(self, bot: Night) -> tuple[Run, ...]:
        bot.live(bot.ask(self.scenario.asked, KEY))
        return bot.runs()

    def play(self, act: str, where: Where) -> Case:
        """The run with that act in that place."""
        theatre, seen = self.theatre, _Seen()
        theatre.put(self.start)
        point = Point(sort=Sort.COMMIT, number=where.commit, moment=Moment.AFTER)
        plug = acts(self.node)[act]

        def meanwhile() -> None:
            with theatre.server.lock:
                world = theatre.stage.world
                seen.effects = len(world.state.effects)
                seen.at = world.state.now
                if where.how == BETWEEN:
                    arguments = dict(plug)
                    try:
                        world.plug(str(arguments.pop("plug")), arguments)
                    except Rejected:
                        seen.at = None
                elif act == "resume" and not world.state.nodes[NodeName(self.node)].flags & {
                    "DRAIN"
                }:
                    seen.at = None
                else:
                    when = When.BEFORE if where.how == BEFORE_WRITE else When.AFTER
                    world.foreign.append(ForeignAct(when=when, plugs=(plug,)))

        stops = Stops(wanted=lambda here: here == point, meanwhile=meanwhile)
        life = theatre.live(self.scenario, self._play, stops=stops)
        theatre.settle()
        runs: tuple[Run, ...] = life.told["played"] if life.told else ()
        complaints = tuple(self._complaints(act, where, life, seen)) if seen.at else ()
        return Case(
            scenario=self.scenario,
            act=act,
            where=where,
            acted=seen.at is not None,
            end=self._end(runs),
            why=" ".join(run.why for run in runs),
            complaints=complaints,
        )

    def _end(self, runs: tuple[Run, ...]) -> str:
        """State of the run that was asked for; of its child where it waits for that one."""
        asked = [run for run in runs if run.parent is None][-1:]
        waits = asked and asked[0].state is RunState.WAITING
        return str(runs[-1].state if waits else asked[0].state) if asked else "none"

    def _complaints(self, act: str, where: Where, life: Life, seen: "_Seen") -> Iterator[str]:
        if life.told is None:
            yield life.failure
            return
        runs: tuple[Run, ...] = life.told["played"]
        paged = {run for _, run in life.told["pages"]}
        waits_for = {run.parent for run in runs if run.state is RunState.NEEDS_PERSON}
        for run in runs:
            cared_for = run.state is RunState.NEEDS_PERSON and run.id in paged
            if run.open and not cared_for and run.id not in waits_for:
                yield f"{run.id} ends as {run.state} and nobody is paged: {run.why}"
            if run.asks > MOST_ASKS:
                yield f"{run.id} asked {run.asks} times"
        effects = [plain(effect) for effect in self.theatre.effects()]
        if not self._forgotten():
            yield from (f"twice: {effect}" for effect in set(effects) if effects.count(effect) > 1)
        yield from self._undone((act, where), runs, seen)
        yield from self._ended(act, where, seen)

    def _undone(
        self, done: tuple[str, Where], runs: tuple[Run, ...], seen: "_Seen"
    ) -> Iterator[str]:
        act, where = done
        node = self.theatre.snapshot().nodes[NodeName(self.node)]
        own = where.how == AFTER_WRITE
        later = [
            effect
            for effect in self.theatre.effects()[seen.effects + own :]
            if effect.arguments.get("node") == self.node
        ]
        said = " ".join(told(runs))
        if act == "drain" and not (node.draining and node.reason == TEXT) and RESTORE not in said:
            yield f"the drain of dana is gone ({node.state}, {node.reason!r}) and nobody says so"
        if act == "reason" and node.reason != TEXT and TEXT not in said:
            yield f"the Reason of dana is gone ({node.state}, {node.reason!r}) and nobody says so"
        if act == "resume" and node.draining and any(one.verb == "drain" for one in later):
            yield f"what dana resumed was drained again: {later}"

    def _ended(self, act: str, where: Where, seen: "_Seen") -> Iterator[str]:
        """No job ended that would not have ended without the bot."""
        ended = self._ended_jobs()
        until = self.theatre.stage.world.state.now
        self.theatre.put(self.start)
        with self.theatre.server.lock:
            stage = self.theatre.stage
            assert seen.at is not None
            stage.forward(seen.at - stage.world.state.now)
            arguments = dict(acts(self.node)[act])
            with suppress(Rejected):
                stage.world.plug(str(arguments.pop("plug")), arguments)
            stage.forward(until - stage.world.state.now + timedelta(seconds=1))
        more = ended - self._ended_jobs()
        if more:
            yield f"jobs ended that would not have without the bot: {sorted(more)}"

    def _forgotten(self) -> bool:
        """Whether slurmctld lost an update: then doing it again is no second effect."""
        history = self.theatre.stage.world.state.history
        return any(happening.what == "update forgotten" for happening in history)

    def _ended_jobs(self) -> set[str]:
        return {
            happening.subject
            for happening in self.theatre.stage.world.state.history
            if happening.what.startswith("job ") and happening.what != "job started"
        } & self._jobs  # a canary of ours ends as it should


RESTORE = "scontrol update NodeName="


def told(runs: tuple[Run, ...]) -> Iterator[str]:
    """Everything that the runs tell people about what they met."""
    for run in runs:
        yield run.why
        for step in run.steps.values():
            yield step.why
            yield str(step.output.get("reason_before", ""))


class _Seen:
    at: datetime | None = None
    effects: int = 0


def table_row(name: str, act: str, cases: Sequence[Case]) -> str:
    """One row of the golden table: at how many places, and how the runs ended."""
    done = [case for case in cases if case.acted]
    ends = sorted({case.end for case in done})
    counts = ", ".join(f"{end} {sum(case.end == end for case in done)}" for end in ends)
    return f"{name:17} {act:11} {len(done):6}  {counts or 'not possible here'}\n"
