"""Everything the engine must read before it decides about one run: fold, definition, outputs, plan.

Called by `runbooks.engine` and `runbooks.acting`. Reads the ledger and artefacts; writes nothing.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from actions.cluster import Overview
from actions.contract import ActionSpec, Call, Mark
from config.ids import ClusterName, PlanHash, RunId, StepId
from config.json_values import JsonMap
from config.node_names import NodeName
from runbooks.definition import Definition
from runbooks.machine import RunState
from runbooks.model import Runbook
from runbooks.next_step import began_last
from runbooks.open_marks import all_marks, marks_of, marks_on
from runbooks.packing import packed
from runbooks.parts import Parts
from runbooks.places import Frame, Known, Place, keys_at
from runbooks.plan import Plan, PlannedStep
from runbooks.planner import Item, diagnosis_of, make_plan, with_defaults
from runbooks.run import Run, StepRecord, StepState
from runbooks.run_rows import find
from runbooks.values import nodes_in

EMPTY_PLAN = Plan(steps=(), locks=(), pinned={})
LOOKED_AT_SINGLY = 8
"""Targets of one plan that are looked at past any cache."""


class Outputs(Mapping[str, JsonMap]):
    """Outputs by step key, each read when it is asked for."""

    def __init__(self, steps: Mapping[str, StepRecord], read: Callable[[JsonMap], JsonMap]) -> None:
        """`read` gives an output itself, wherever it is kept."""
        self._steps = steps
        self._read = read

    def __getitem__(self, key: str) -> JsonMap:
        """The output of this step. Raises KeyError."""
        return self._read(self._steps[key].output)

    def __iter__(self) -> Iterator[str]:
        """Keys of the steps, in their order."""
        return iter(self._steps)

    def __len__(self) -> int:
        """How many there are."""
        return len(self._steps)


class Frames:
    """The reading half of the engine."""

    def __init__(self, parts: Parts) -> None:
        """Over the engine's parts."""
        self._parts = parts
        self._definition = lru_cache(maxsize=256)(self._read_definition)
        self._plan = lru_cache(maxsize=256)(self._read_plan)
        self._output = lru_cache(maxsize=256)(self._read_output)
        self._covered = lru_cache(maxsize=256)(self._read_covered)
        self._locks = lru_cache(maxsize=256)(self._read_locks)
        self._steps = lru_cache(maxsize=256)(self._read_steps)

    def run(self, run: RunId) -> Run | None:
        """The run as it is committed; None for one that does not exist."""
        return find(self._parts.ledger.query, run)

    def frame(self, run_id: RunId) -> Frame | None:
        """All that the next decision about this run depends on."""
        run = self.run(run_id)
        return None if run is None else self.frame_of(run, Known())

    def frame_of(self, run: Run, known: Known) -> Frame:
        """The same for one that was read; `known` is what was found out about it before."""
        definition = self._definition(run.definition)
        line = tuple(self._line(run))
        ready = [above for above in _in_force(line) if above.approved]
        plans = tuple((_artefact(above), _prefix(above, line)) for above in ready)
        frame = Frame(
            run=run,
            definition=definition,
            runbook=_book(definition, run),
            specs=self._parts.specs,
            outputs=Outputs(run.steps, self.value),
            plan_keys=frozenset(self._covered(plans)),
            plan_ready=bool(ready),
            locked=_hold(line[-1].locks, self.locks(run)),
        )
        frame.known.share(known)
        if not self._turns_back(frame):
            return frame
        frame = replace(frame, called_past_return=self._called_past_return(definition, run))
        frame.known.share(known)
        return frame

    def _turns_back(self, frame: Frame) -> bool:
        """Whether it may matter how far the runs came that this one called."""
        run = frame.run
        waits = run.state is RunState.AWAITING_APPROVAL
        return waits or bool(run.stop_wanted) or bool(keys_at(frame, StepState.FAILED))

    def locks(self, run: Run) -> frozenset[str]:
        """What must be held before this run acts: the locks of every plan that covers it."""
        return self._locks(tuple(map(_artefact, _in_force(tuple(self._line(run))))))

    def _read_locks(self, artefacts: tuple[str, ...]) -> frozenset[str]:
        return frozenset(lock for text in artefacts for lock in self._plan(text).locks)

    def _line(self, run: Run) -> Iterator[Run]:
        yield run
        while run.parent is not None:
            above = self.run(run.parent)
            if above is None:
                return
            run = above
            yield run

    def line(self, run: Run) -> tuple[Run, ...]:
        """The run, its caller, and so on up."""
        return tuple(self._line(run))

    def root(self, run: Run) -> Run:
        """The run that was asked for: it holds the locks."""
        return self.line(run)[-1]

    def _read_covered(self, plans: tuple[tuple[str, str], ...]) -> frozenset[str]:
        """Keys that these plans cover with known arguments; each with the path to the run in it."""
        return frozenset(
            step.key.removeprefix(prefix)
            for artefact, prefix in plans
            for step in self._plan(artefact).steps
            if step.arguments is not None and step.key.startswith(prefix)
        )

    def planned(self, frame: Frame, key: str) -> PlannedStep | None:
        """What the nearest approved plan says about this step."""
        found = self._planned(frame, key)
        return found[1] if found else None

    def _planned(self, frame: Frame, key: str) -> tuple[Run, PlannedStep] | None:
        """The same, with the run whose plan says so."""
        line = tuple(self._line(frame.run))
        for above in _in_force(line):
            if above.approved:
                step = self._steps(_artefact(above)).get(_prefix(above, line) + key)
                if step is not None:
                    return above, step
        return None

    def _read_steps(self, artefact: str) -> dict[str, PlannedStep]:
        return {step.key: step for step in self._plan(artefact).steps}

    def plan_hash(self, frame: Frame, key: str) -> tuple[RunId, PlanHash] | None:
        """The run and the hash of the plan under which this step acts."""
        found = self._planned(frame, key)
        run = found[0] if found else frame.run
        return (run.id, run.plan.hash) if run.plan is not None else None

    def plan(self, run: Run) -> Plan:
        """The run's present plan; an empty one where it has none."""
        return self._plan(run.plan.artefact) if run.plan is not None else EMPTY_PLAN

    def plan_at(self, artefact: str) -> Plan:
        """The plan that is kept there."""
        return self._plan(artefact)

    def _read_plan(self, artefact: str) -> Plan:
        return Plan.from_json(json.loads(self._parts.artefacts.get(artefact)))

    def _read_definition(self, artefact: str) -> Definition:
        return Definition.from_json(json.loads(self._parts.artefacts.get(artefact)))

    def _read_output(self, artefact: str) -> JsonMap:
        value: JsonMap = json.loads(self._parts.artefacts.get(artefact))
        return value

    def value(self, output: JsonMap) -> JsonMap:
        """An output itself, read from its artefact where it was too large for the ledger."""
        artefact = output.get("artefact")
        if isinstance(artefact, str) and len(output) == 1:
            return self._output(artefact)
        return output

    def runbook(self, run: Run) -> Runbook:
        """The runbook of a run, as it was pinned."""
        return _book(self._definition(run.definition), run)

    def call(self, frame: Frame, place: Place, attempt: int) -> Call:
        """The call of this place."""
        query, cluster = self._parts.ledger.query, frame.run.cluster
        spec = self._parts.specs.get(str(place.step.do))
        if spec is not None and spec.all_marks:
            return _here(
                replace(self._call(frame), attempt=attempt), place, all_marks(query, cluster)
            )
        marks = marks_on(query, cluster, _nodes_of(place))
        return _here(replace(self._call(frame), attempt=attempt), place, marks)

    def _call(self, frame: Frame, seen: Overview | None = None) -> Call:
        """What all calls of a run have in common."""
        run = frame.run
        root = self.root(run).id
        return Call(
            run=root,
            called=None if run.id == root else run.id,
            step=StepId(""),
            attempt=0,
            instance=self._parts.ledger.instance,
            cluster=run.cluster,
            node=None,
            arguments={},
            cause=_cause(frame),
            now=self._parts.clock.now().wall,
            seen=seen,
        )

    def fresh_plan(self, frame: Frame, ahead: Sequence[Item]) -> Plan:
        """The plan of what is ahead of this run, with a look at every target.

        Raises Unreadable, Refusal.
        """
        calls = self._planning_calls(frame, ahead)
        return make_plan(frame, ahead, self._parts.registry, calls, self._pinned(frame))

    def _planning_calls(self, frame: Frame, ahead: Sequence[Item]) -> Callable[[Place], Call]:
        """The calls of a plan's looks. Where there are many they share one snapshot: with two
        questions a second to a controller, a plan over a row of racks would take an hour.
        """
        if len(ahead) <= LOOKED_AT_SINGLY:
            return lambda place: self.call(frame, place, 0)
        cluster = frame.run.cluster
        nodes = dict.fromkeys(item.place.node for item in ahead if item.place.node is not None)
        seen = Overview.of(self._parts.clusters[cluster].snapshot(), tuple(nodes))
        marks, shared = marks_of(self._parts.ledger.query, cluster), self._call(frame, seen)
        return lambda place: _here(shared, place, marks(_nodes_of(place)))

    def place_of(self, frame: Frame, key: str) -> Place:
        """The place of a step that was begun, with the arguments its intent recorded."""
        record = frame.run.steps[key]
        step = self._book_of(frame, key).step(record.step)
        if step is None:
            raise KeyError(f"{frame.run.id} has no step {record.step}")
        return Place(key=key, step=step, node=record.node, arguments=record.arguments)

    def _book_of(self, frame: Frame, key: str) -> Runbook:
        """The runbook in which this step stands: a called one for what was taken over from a call."""
        book = frame.runbook
        for call in key.split("/")[:-1]:
            step = book.step(StepId(call.partition("@")[0]))
            if step is None or step.call is None:
                raise KeyError(f"{frame.run.id}: {key} is no step of a called run")
            book = frame.definition.called[step.call]
        return book

    def _called_past_return(self, definition: Definition, run: Run) -> bool:
        """Whether a run below this one began a step that cannot be turned back from."""
        for record in run.steps.values():
            called = self.run(record.child) if record.child is not None else None
            if called is not None and (
                began_last(_book(definition, called), called)
                or self._called_past_return(definition, called)
            ):
                return True
        return False

    def nodes(self, run: Run) -> tuple[NodeName, ...]:
        """Nodes that the run was asked for, whatever its parameters are called."""
        types = {parameter.name: parameter.type for parameter in self.runbook(run).parameters}
        return nodes_in(types, run.parameters)

    def spec(self, action: str) -> ActionSpec | None:
        """The contract of a step's action, written `name@version`; None for what this release lacks."""
        return self._parts.specs.get(action.partition("@")[0])

    def _pinned(self, frame: Frame) -> JsonMap:
        """Digests that the plan's hash covers."""
        return {
            "runbook": frame.runbook.digest,
            "definition": frame.run.definition,
            "policy": self._parts.policy.site.digest(),
        }

    def fresh_child(self, frame: Frame, place: Place) -> dict[str, Any]:
        """What a called run begins with."""
        runbook = frame.definition.called[str(place.step.call)]
        return {
            "runbook": runbook.name,
            "version": runbook.version,
            "title": runbook.title,
            "definition": frame.run.definition,
            "parameters": packed(with_defaults(runbook, place.arguments)),
        }

    def open_children(self, run: RunId) -> tuple[RunId, ...]:
        """Called runs that have not ended."""
        rows = self._parts.ledger.query(
            "SELECT id FROM runs WHERE parent = ? AND open = 1 ORDER BY number", (run,)
        )
        return tuple(RunId(row[0]) for row in rows)

    def callers_act(self, run: Run) -> bool:
        """Whether all callers of this run go on: a called run begins nothing while one does not."""
        callers = tuple(self._line(run))[1:]
        return all(above.state.acts and not above.stop_wanted for above in callers)

    def effect_open_below(self, run: RunId) -> bool:
        """Whether an effect of a called run is under way."""
        for name in self.open_children(run):
            child = self.run(name)
            if child is not None and (child.intended is not None or self.effect_open_below(name)):
                return True
        return False

    def partition_members(self, cluster: ClusterName) -> dict[str, tuple[str, ...]]:
        """Nodes of each partition, for locks on partitions."""
        snapshot = self._parts.clusters[cluster].snapshot()
        return {partition.name: partition.nodes for partition in snapshot.partitions}


def _book(definition: Definition, run: Run) -> Runbook:
    """The definition's own runbook, or the one of those it calls that this run carries out."""
    if run.runbook == definition.runbook.name:
        return definition.runbook
    return definition.called[run.runbook]


def _here(call: Call, place: Place, marks: tuple[Mark, ...]) -> Call:
    """A call of the run, made for this place."""
    return replace(
        call, step=place.step.id, node=place.node, arguments=place.arguments, marks=marks
    )


def _nodes_of(place: Place) -> tuple[NodeName | None, ...]:
    """The node that a step is about, and those that it names beside it, as a reservation does."""
    named = place.arguments.get("nodes")
    more = named if isinstance(named, list | tuple) else ()
    return (place.node, *(NodeName(name) for name in more if isinstance(name, str)))


def _artefact(run: Run) -> str:
    """Where the plan of a run that has one is kept."""
    return run.plan.artefact if run.plan is not None else ""


@lru_cache(maxsize=256)
def _hold(held: tuple[str, ...], wanted: frozenset[str]) -> bool:
    """Whether these locks are all that are wanted."""
    return wanted <= frozenset(held)


def _in_force(line: tuple[Run, ...]) -> Iterator[Run]:
    """The runs whose plans may cover the first of `line`: its own, then those of its callers.

    Once a plan was void for a called run, its callers' plans say nothing about it any more.
    """
    for run in line:
        if run.plan is not None:
            yield run
        if run.own_plan:
            return


def _prefix(planner: Run, line: tuple[Run, ...]) -> str:
    """Path of the run at the start of `line` inside the plan of one of its callers."""
    parts: list[str] = []
    for run in line:
        if run.id == planner.id:
            break
        parts.append(run.parent_step)
    return "".join(f"{part}/" for part in reversed(parts))


def _cause(frame: Frame) -> str:
    """Short cause for marks: the diagnosis, or the runbook's name."""
    found = diagnosis_of(frame).get("id")
    return str(found) if found else frame.run.runbook[:16]
