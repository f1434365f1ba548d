"""Fetches what a card needs: the run, its plan, the outputs of its steps. Writes nothing."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace

from config.ids import ActorId, RunId
from config.json_values import JsonMap
from config.node_names import NodeName
from runbooks.explain import Card, card
from runbooks.frames import Frames
from runbooks.parts import Parts
from runbooks.plan import Plan
from runbooks.run import Run
from runbooks.run_events import page_key
from runbooks.run_rows import as_text, select
from runbooks.stops import question
from runbooks.told import Told


class Cards:
    """Cards by run id."""

    def __init__(self, parts: Parts, name: Callable[[ActorId], str]) -> None:
        """`name` gives the name that people use for an actor."""
        self._parts = parts
        self._frames = Frames(parts)
        self._name = name

    def run(self, run: RunId) -> Run | None:
        """The run as committed."""
        return self._frames.run(run)

    def nodes(self, run: Run) -> tuple[NodeName, ...]:
        """Nodes that a run was asked for."""
        return self._frames.nodes(run)

    def runs(self, condition: str) -> list[Run]:
        """Runs that fulfil an SQL condition of ours, oldest first; children are shown by callers."""
        return select(self._parts.ledger.query, f"parent IS NULL AND {condition}")

    def card(self, run_id: RunId) -> Card | None:
        """The card of this run as it is now; with its called runs' steps below its own."""
        run = self.run(run_id)
        if run is None:
            return None
        outputs = {key: self._frames.value(step.output) for key, step in run.steps.items()}
        told = self.told(self._frames.plan(run), outputs)
        asked = question(run, self._parts.specs)
        return card(run, replace(told, page=self._page(run_id), question=asked))

    def _page(self, run: RunId) -> str:
        """Accepted is not delivered, and not sent is said loudly (design 8)."""
        rows = self._parts.ledger.query(
            "SELECT state, detail FROM pages WHERE key = ? AND resolved = 0",
            (page_key(run, self._parts.ledger.instance),),
        )
        if not rows:
            return ""
        state, detail = rows[0]
        return {"accepted": f"page {detail}", "not_sent": "PAGE NOT SENT"}.get(state, "paging")

    def told(self, plan: Plan, outputs: Mapping[str, JsonMap]) -> Told:
        """What the words are made from."""
        return Told(plan=plan, outputs=outputs, name=self._name, now=self._parts.clock.now().wall)

    def as_json(self, run: Run) -> JsonMap:
        """The run for programs."""
        plain: JsonMap = json.loads(as_text(run))
        return plain
