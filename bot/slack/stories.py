"""What Slack shall show of each run, read from the ledger's tables, and what it was shown already.

Called by `bot.slack.board` in worker threads. One story for each run that a person asked for; called
runs are told within their caller's.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from audit_log.records import Event, EventKind
from bot.answers import Answers
from bot.identities import Identities
from bot.slack.rings import Deadline, Ring, by_state, deadlines, due, held
from config.actors import ENGINE
from config.clock import microseconds
from config.ids import RunId
from config.node_names import fold
from config.permissions import Permission
from config.settings import PageKind, Settings
from runbooks.explain import Card, steps
from runbooks.frames import Frames
from runbooks.machine import RunState
from runbooks.parts import Parts
from runbooks.rails import PlanGate
from runbooks.run import Run, StepRecord, StepState, run_nodes

RECENT = timedelta(hours=12)
"""A run that ended while Slack could not be reached still gets its card for so long."""
MOST_MENTIONS = 5
TOLD = frozenset({StepState.DONE, StepState.FAILED, StepState.UNKNOWN, StepState.UNDONE})
"""Steps that get a line in the thread; one that was skipped stands in `status`."""
FINAL_SHOWN = "final"
"""Note: the last state was shown and Slack has confirmed it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """Where a message lies."""

    channel: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """A run for Slack."""

    run: RunId
    card: Card
    details: tuple[tuple[str, str], ...]
    """Note and line of each step that ended."""
    rings: tuple[Ring, ...]
    """What must ring, the most important first."""
    again: float | None
    """Seconds until a deadline gets near; None where there is none."""
    mention: str
    channels: tuple[str, ...]
    """Where its card may stand, the best first."""
    asked_at: datetime
    spot: Spot | None
    told: frozenset[str]


class Stories:
    """Reads and records; safe from any thread."""

    def __init__(
        self, settings: Settings, parts: Parts, answers: Answers, identities: Identities
    ) -> None:
        """Over the parts of the bot."""
        self._settings = settings
        self._parts = parts
        self._answers = answers
        self._identities = identities
        self._frames = Frames(parts)

    @property
    def bot(self) -> str:
        """The ledger's instance: another bot may have the same run numbers."""
        return str(self._parts.ledger.instance)

    def head(self) -> int:
        """The newest record."""
        return self._parts.ledger.head.seq

    def changed(self, since: int) -> tuple[int, frozenset[RunId]]:
        """The newest record, and the runs that had news after `since`."""
        rows = self._parts.ledger.query(
            "SELECT seq, run, kind FROM ledger NOT INDEXED WHERE seq > ? ORDER BY seq", (since,)
        )
        ours = {EventKind.CARD_POSTED.value, EventKind.CARD_NOTED.value}
        runs = {str(run) for _, run, kind in rows if run is not None and kind not in ours}
        return (rows[-1][0] if rows else since), frozenset(self._root(run) for run in runs)

    def unfinished(self, now: datetime) -> frozenset[RunId]:
        """At the start: runs whose last state Slack may not show yet."""
        rows = self._parts.ledger.query(
            "SELECT id FROM runs WHERE parent IS NULL AND (open = 1 OR requested_us > ?"
            " OR id IN (SELECT run FROM cards)) AND NOT EXISTS (SELECT 1 FROM card_notes"
            " WHERE run = runs.id AND note = ?)",
            (microseconds(now - RECENT), FINAL_SHOWN),
        )
        return frozenset(RunId(row[0]) for row in rows)

    def story(self, run_id: RunId) -> Story | None:
        """The run as it is now; None for one that has no row."""
        card = self._answers.card(run_id)
        if card is None:
            return None
        run = self._answers.run(run_id)
        family = [run, *self._below(run_id)]
        asking = _asking(family)
        near, again = due(self._deadlines(asking, family), self._parts.clock.now().wall)
        return Story(
            run=run_id,
            card=card if asking is run else self._with_child(card, asking),
            details=tuple(_details(family)),
            rings=(*self._rings(asking), *near),
            again=again,
            mention=self._mention(asking),
            channels=self._channels(run),
            asked_at=run.requested_at,
            spot=self.spot(run_id),
            told=self._told(run_id),
        )

    def spot(self, run: RunId) -> Spot | None:
        """Where the card of this run lies."""
        rows = self._parts.ledger.query("SELECT channel, message FROM cards WHERE run = ?", (run,))
        return Spot(channel=rows[0][0], message=rows[0][1]) if rows else None

    def run_at(self, channel: str, message: str) -> RunId | None:
        """The run whose card this message is."""
        rows = self._parts.ledger.query(
            "SELECT run FROM cards WHERE channel = ? AND message = ?", (channel, message)
        )
        return RunId(rows[0][0]) if rows else None

    def record_posted(self, run: RunId, spot: Spot) -> None:
        """The card lies there."""
        self._record(EventKind.CARD_POSTED, run, {"channel": spot.channel, "message": spot.message})

    def record_told(self, run: RunId, notes: Sequence[str]) -> None:
        """These notes stand in the thread."""
        self._record(EventKind.CARD_NOTED, run, {"notes": list(notes)})

    def _record(self, kind: EventKind, run: RunId, data: dict[str, str | list[str]]) -> None:
        event = Event(kind=kind, actor=ENGINE.id, run=run, data=data)
        self._parts.ledger.commit(lambda transaction: transaction.append(event))

    def _root(self, run: str) -> RunId:
        rows = self._parts.ledger.query(
            "WITH RECURSIVE up (id, parent) AS (SELECT id, parent FROM runs WHERE id = ?"
            " UNION SELECT runs.id, runs.parent FROM runs JOIN up ON runs.id = up.parent)"
            " SELECT id FROM up WHERE parent IS NULL",
            (run,),
        )
        return RunId(rows[0][0] if rows else run)

    def _below(self, run: RunId) -> list[Run]:
        """The called runs, at any depth, in the order of their numbers."""
        rows = self._parts.ledger.query(
            "WITH RECURSIVE down (id) AS (SELECT id FROM runs WHERE parent = ?"
            " UNION SELECT runs.id FROM runs JOIN down ON runs.parent = down.id)"
            " SELECT runs.id FROM runs JOIN down ON runs.id = down.id ORDER BY runs.number",
            (run,),
        )
        return [self._answers.run(row[0]) for row in rows]

    def _with_child(self, card: Card, child: Run) -> Card:
        """The card with the question of a called run, and its buttons."""
        below = self._answers.card(child.id)
        if below is None:
            return card
        lines = (*below.lines[:1], *card.lines[1:5], *below.lines[-1:])
        return replace(card, lines=lines, buttons=below.buttons, rings=True)

    def _rings(self, run: Run) -> tuple[Ring, ...]:
        """The state that rings, named by the record with which it began."""
        if by_state(run):
            word, kind = run.state.value, EventKind.RUN_STATE
        elif held(run):
            word, kind = "held", EventKind.STEP_WAITS
        else:
            return ()
        rows = self._parts.ledger.query(
            "SELECT max(seq) FROM ledger WHERE run = ? AND kind = ?", (run.id, kind.value)
        )
        return (Ring(note=f"ring {run.id} {word} {rows[0][0] or 0}"),)

    def _deadlines(self, asking: Run, family: Sequence[Run]) -> tuple[Deadline, ...]:
        """From the plan that waits, and from the looks at nodes of the whole family."""
        if asking.state.final:
            return ()
        now = self._parts.clock.now().wall
        taken = [(run, step) for run in family for step in run.steps.values() if step.output]
        taken.sort(key=lambda one: one[1].ended_at or now)
        looks = ((_node(run, step), self._frames.value(step.output)) for run, step in taken)
        described = ((node, look) for node, look in looks if "dies_at_earliest" in look)
        return deadlines(asking, described, now)

    def _told(self, run: RunId) -> frozenset[str]:
        rows = self._parts.ledger.query("SELECT note FROM card_notes WHERE run = ?", (run,))
        return frozenset(row[0] for row in rows)

    def _channels(self, run: Run) -> tuple[str, ...]:
        """The cluster's channel, where it was typed, the pages' channels, the requester."""
        pages = (page.channel for page in self._settings.pages if page.kind is PageKind.SLACK)
        found = (
            self._settings.clusters[run.cluster].channel
            if run.cluster in self._settings.clusters
            else None,
            run.place,
            *pages,
            self._identities.slack_user(run.requested_by),
        )
        return tuple(dict.fromkeys(channel for channel in found if channel))

    def _mention(self, run: Run) -> str:
        """Whom the state concerns: who may decide, and who asked unless somebody else must decide."""
        asker = self._identities.slack_user(run.requested_by)
        others = run.plan is not None and run.plan.gate != PlanGate.CONFIRM
        if run.state is RunState.AWAITING_APPROVAL and others:
            return " ".join(self._able(Permission.RUN_APPROVE, run))
        own = [f"<@{asker}>"] if asker else []
        needed = held(run) or Permission.RUN_CONTROL
        return " ".join(dict.fromkeys([*own, *self._able(needed, run)]))

    def _able(self, permission: Permission, run: Run) -> list[str]:
        """User groups whose roles are enough; where there are none, persons."""
        roles = frozenset(self._settings.enough(permission))
        groups = [
            f"<!subteam^{name}>"
            for name, group in self._settings.groups.items()
            if roles & frozenset(group.roles)
        ]
        if groups:
            return groups[:MOST_MENTIONS]
        people = (
            self._identities.slack_user(person.id)
            for person in self._identities.everybody()
            if person.roles & roles and person.id != run.requested_by
        )
        return [f"<@{user}>" for user in people if user][:MOST_MENTIONS]


def _asking(family: Sequence[Run]) -> Run:
    """The run of the family that waits for a person: the caller itself, or a called one."""
    return next((run for run in family if by_state(run) or held(run)), family[0])


def _node(run: Run, step: StepRecord) -> str:
    return step.node or fold(run_nodes(run))


def _details(family: Iterable[Run]) -> Iterable[tuple[str, str]]:
    """A note and a line for each step that ended."""
    for run in family:
        for key, step in run.steps.items():
            if step.state is StepState.DONE and "/" in key:
                continue  # what it took over to take it back was told by the called run
            if step.state in TOLD and step.child is None:
                note = f"{run.id} {key} {step.attempt} {step.state.value}"
                line = " ".join(steps(replace(run, steps={key: step})))
                yield note, f"{line} [{run.id}]" if run.parent else line
