"""Everything the engine must read before it decides about one run: fold, definition, outputs, plan.

Called by `runbooks.engine` and `runbooks.acting`. Reads the ledger and artefacts; writes nothing.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache
from itertools import islice
from typing import Any

from actions.cluster import Overview
from actions.contract import Call
from config.ids import ClusterName, PlanHash, RunId, StepId
from config.json_values import JsonMap
from config.node_names import NodeName
from config.permissions import Denied, Permission
from runbooks.definition import Definition
from runbooks.journal import Journal
from runbooks.model import Runbook
from runbooks.next_step import Frame, Place, began_last
from runbooks.packing import packed
from runbooks.parts import Parts
from runbooks.plan import Plan, PlannedStep
from runbooks.planner import diagnosis_of, items, with_defaults
from runbooks.run import Run, run_nodes
from runbooks.run_rows import find

EMPTY_PLAN = Plan(steps=(), locks=(), pinned={})
LOOKED_AT_SINGLY = 8
"""Targets of one plan that are looked at past any cache."""


class Frames:
    """The reading half of the engine."""

    def __init__(self, parts: Parts) -> None:
        """Over the engine's parts."""
        self._parts = parts
        self._definition = lru_cache(maxsize=256)(self._read_definition)
        self._plan = lru_cache(maxsize=256)(self._read_plan)
        self._output = lru_cache(maxsize=256)(self._read_output)

    def run(self, run: RunId) -> Run | None:
        """The run as it is committed; None for one that does not exist."""
        return find(self._parts.ledger.query, run)

    def frame(self, run_id: RunId) -> Frame | None:
        """All that the next decision about this run depends on."""
        run = self.run(run_id)
        if run is None:
            return None
        definition = self._definition(run.definition)
        runbook = self._runbook(definition, run)
        line = tuple(self._line(run))
        in_force = tuple(_in_force(line))
        ready = [above for above in in_force if above.approved]
        keys = {key for above in ready for key in self._covered(above, line)}
        return Frame(
            run=run,
            definition=definition,
            runbook=runbook,
            specs=self._parts.specs,
            outputs={key: self.value(step.output) for key, step in run.steps.items()},
            plan_keys=frozenset(keys),
            plan_ready=bool(ready),
            locked=self.locks(run) <= frozenset(line[-1].locks),
            called_past_return=self._called_past_return(definition, run),
        )

    def locks(self, run: Run) -> frozenset[str]:
        """What must be held before this run acts: the locks of every plan that covers it."""
        plans = (self.plan(above) for above in _in_force(tuple(self._line(run))))
        return frozenset(lock for plan in plans for lock in plan.locks)

    def _line(self, run: Run) -> Iterator[Run]:
        """The run, its caller, and so on up."""
        yield run
        while run.parent is not None:
            above = self.run(run.parent)
            if above is None:
                return
            run = above
            yield run

    def root(self, run: Run) -> Run:
        """The run that was asked for: it holds the locks."""
        return tuple(self._line(run))[-1]

    def _covered(self, planner: Run, line: tuple[Run, ...]) -> Iterator[str]:
        """Keys of `run` that the plan of `planner` covers with known arguments."""
        prefix = _prefix(planner, line)
        for step in self.plan(planner).steps:
            if step.arguments is not None and step.key.startswith(prefix):
                yield step.key.removeprefix(prefix)

    def planned(self, frame: Frame, key: str) -> PlannedStep | None:
        """What the nearest approved plan says about this step."""
        line = tuple(self._line(frame.run))
        for above in _in_force(line):
            if above.approved:
                step = self.plan(above).step(_prefix(above, line) + key)
                if step is not None:
                    return step
        return None

    def planning_run(self, frame: Frame, key: str) -> RunId:
        """The run whose plan covers this step."""
        line = tuple(self._line(frame.run))
        for above in _in_force(line):
            if above.approved and self.plan(above).step(_prefix(above, line) + key):
                return above.id
        return frame.run.id

    def plan_hash(self, frame: Frame, key: str) -> tuple[RunId, PlanHash] | None:
        """The run and the hash of the plan under which this step acts."""
        run = self.run(self.planning_run(frame, key))
        return (run.id, run.plan.hash) if run is not None and run.plan is not None else None

    def plan(self, run: Run) -> Plan:
        """The run's present plan; an empty one where it has none."""
        return self._plan(run.plan.artefact) if run.plan is not None else EMPTY_PLAN

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

    def _runbook(self, definition: Definition, run: Run) -> Runbook:
        if run.runbook == definition.runbook.name:
            return definition.runbook
        return definition.called[run.runbook]

    def call(self, frame: Frame, place: Place, attempt: int) -> Call:
        """The call of this place."""
        run = frame.run
        return Call(
            run=self.root(run).id,
            step=place.step.id,
            attempt=attempt,
            instance=self._parts.ledger.instance,
            cluster=run.cluster,
            node=place.node,
            arguments=place.arguments,
            cause=_cause(frame),
            marks=Journal(self._parts).marks(run.cluster, place.node),
            now=self._parts.clock.now().wall,
        )

    def planning_calls(self, frame: Frame) -> Callable[[Place], Call]:
        """The calls of a plan's looks. Where there are many they share one snapshot: with two
        questions a second to a controller, a plan over a row of racks would take an hour.

        Raises Unreadable.
        """
        if len(tuple(islice(items(frame), LOOKED_AT_SINGLY + 1))) <= LOOKED_AT_SINGLY:
            return lambda place: self.call(frame, place, 0)
        overview = Overview.of(self._parts.clusters[frame.run.cluster].snapshot())
        return lambda place: replace(self.call(frame, place, 0), seen=overview)

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
                began_last(self._runbook(definition, called), called)
                or self._called_past_return(definition, called)
            ):
                return True
        return False

    def denied(self, frame: Frame, permission: Permission, node: NodeName | None) -> str:
        """Why the requester may not do this now; the empty string when it may."""
        verdict = self._parts.rights.step(self.root(frame.run), permission, frame.run.cluster, node)
        return verdict.because if isinstance(verdict, Denied) else ""

    def nodes(self, run: Run) -> tuple[NodeName, ...]:
        """Nodes that the run was asked for."""
        return run_nodes(run)

    def pinned(self, frame: Frame) -> JsonMap:
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
