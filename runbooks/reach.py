"""How far a run reaches: whether its requester may take all the nodes that it takes.

Called by the engine where targets are resolved, which is when a plan is made, and again right before
each step. A role may be for so many nodes in one request; those that a `for_each` takes from the
output of a step, or that a second parameter names, are nodes of the request like those that were
typed. What is denied is recorded by the gate, once.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from actions.contract import ActionSpec
from config.json_values import JsonMap
from config.node_names import NodeName, NodeSet
from config.permissions import Denied, Permission
from runbooks.frames import Frames
from runbooks.parts import Parts
from runbooks.places import Frame, Place, targets
from runbooks.planner import Item
from runbooks.run import Run
from runbooks.values import nodes_in

_Taken = tuple[Permission, tuple[NodeName, ...]]
"""Nodes, and the permission with which a step takes them."""


class Reach:
    """Asks about the nodes of runs."""

    def __init__(self, parts: Parts, frames: Frames) -> None:
        """Share the engine's parts."""
        self._parts = parts
        self._frames = frames
        self._planned = lru_cache(maxsize=256)(self._read_planned)

    def plan(self, frame: Frame, ahead: Sequence[Item]) -> str:
        """Why the requester may not do what is ahead; the empty string when it may.

        Each permission is asked for with all of its nodes, so that nothing is left half done. Nodes of
        a step that may yet be skipped count, but whether it may be done is asked when it comes.
        """
        certain: dict[Permission, dict[NodeName, None]] = {}
        found: list[_Taken] = []
        for item in ahead:
            spec = frame.specs[str(item.place.step.do)]
            nodes = _nodes(spec, item.place.node, item.place.arguments)
            found.append((spec.permission, nodes))
            if item.certain:
                certain.setdefault(spec.permission, {}).update(dict.fromkeys(nodes))
        if certain:
            found.extend(_begun(self._frames, self._frames.root(frame.run)))
        for permission, wanted in certain.items():
            count = len(frozenset(_with(found, permission)))
            why = self._denied(frame, permission, tuple(wanted), count)
            if why:
                return why
        return ""

    def step(self, frame: Frame, place: Place) -> str:
        """Why the requester may not do this step for this target now; empty when it may."""
        spec = frame.specs[str(place.step.do)]
        nodes = _nodes(spec, place.node, place.arguments)
        spread = len(targets(frame, place.step)) if place.node is not None else 0
        most = max(len(nodes), spread, len(self._in_request(frame, spec.permission)))
        return self._denied(frame, spec.permission, nodes, most)

    def _in_request(self, frame: Frame, permission: Permission) -> frozenset[NodeName]:
        """Nodes that the whole run takes with this permission, as far as it was planned."""
        line = self._frames.line(frame.run)
        plans = tuple(above.plan.artefact for above in line if above.plan is not None)
        planned = self._planned(plans, permission)
        if all(above.asks <= 1 for above in line):
            return planned
        # What was begun under an earlier plan does not stand in the present one.
        return planned | frozenset(_with(_begun(self._frames, line[-1]), permission))

    def _read_planned(
        self, artefacts: tuple[str, ...], permission: Permission
    ) -> frozenset[NodeName]:
        specs = self._parts.specs
        return frozenset(
            node
            for artefact in artefacts
            for step in self._frames.plan_at(artefact).steps
            if (spec := specs.get(step.action.partition("@")[0])) is not None
            and spec.permission is permission
            for node in _nodes(spec, step.node, step.arguments or {})
        )

    def _denied(
        self, frame: Frame, permission: Permission, nodes: tuple[NodeName, ...], in_request: int
    ) -> str:
        root = self._frames.root(frame.run)
        verdict = self._parts.rights.step(root, permission, NodeSet.of(nodes), in_request)
        return verdict.because if isinstance(verdict, Denied) else ""


def _begun(frames: Frames, run: Run) -> Iterator[_Taken]:
    """Effects that a run and what it called have begun, with the permission that each needed."""
    for record in run.steps.values():
        spec = frames.spec(record.action)
        if record.attempt and spec is not None:
            yield spec.permission, _nodes(spec, record.node, record.arguments)
        called = frames.run(record.child) if record.child is not None else None
        if called is not None:
            yield from _begun(frames, called)


def _with(taken: Iterable[_Taken], permission: Permission) -> Iterator[NodeName]:
    return (node for needed, nodes in taken if needed is permission for node in nodes)


def _nodes(spec: ActionSpec, node: NodeName | None, arguments: JsonMap) -> tuple[NodeName, ...]:
    """The target, and every other node that the arguments name."""
    types = {name: field.type for name, field in spec.parameters.items()}
    named = nodes_in(types, arguments)
    return named if node is None else tuple(dict.fromkeys((node, *named)))
