"""Moves runs on: asks `next_step` what comes next and carries out exactly that.

Reached only through `bot.desk`, `runbooks.worker` and the update coordinator. Each call of
`advance` takes one run as far as it gets without waiting; it keeps nothing in memory between calls,
so a run continues in another process from what the ledger holds.
"""

from collections.abc import Callable
from datetime import datetime, timedelta

from actions.contract import FailureKind, Refusal, Unreadable
from audit_log.search import AuditQuery, search
from config.actors import Door
from config.ids import RunId
from config.json_values import JsonMap
from config.node_names import NodeName
from config.policy import Autonomy
from runbooks.acting import LONGEST_BLINDNESS, Acting
from runbooks.expressions import ExpressionError
from runbooks.following import Following
from runbooks.frames import Frames
from runbooks.intents import Changed
from runbooks.journal import Journal
from runbooks.later import Later
from runbooks.machine import Move, RunState
from runbooks.model import OnFailure
from runbooks.next_step import (
    Act,
    CallRunbook,
    Finish,
    Frame,
    GiveUp,
    MakePlan,
    NeedPerson,
    Next,
    PassApproval,
    Read,
    Recover,
    Skip,
    Stop,
    TakeLocks,
    TakeOver,
    Undone,
    UndoStep,
    given_up,
    next_step,
    past_return,
)
from runbooks.parts import Parts
from runbooks.places import keys_at
from runbooks.planner import atoms, diagnosis_of, items
from runbooks.rails import correlated, lacking, needed
from runbooks.reach import Reach
from runbooks.reading import Reading
from runbooks.run import Run, StepState
from runbooks.wording import effects

POLL = timedelta(seconds=5)
"""Between two looks at something that gave no answer or is held by somebody else."""
MOST_REFUSALS = 20
"""Moves in a row that the ledger refuses as decided on an older view: two runs that meet cause a few,
more is a fault of ours, and a person must hear of it instead of a thread that spins."""
MOST_MOVES = 200
"""Moves in one `advance`: a run that makes more without waiting gives others their turn."""


_PEOPLE = frozenset({Door.SLACK.value, Door.CLI.value, Door.STANDALONE.value})
"""Doors at which persons ask."""


class Engine:
    """One per process."""

    def __init__(self, parts: Parts) -> None:
        """Over its parts; starts nothing."""
        self._parts = parts
        self._frames = Frames(parts)
        self._journal = Journal(parts)
        self._acting = Acting(parts, self._frames, self._journal)
        self._reach = Reach(parts, self._frames)
        self._reading = Reading(parts, self._frames, self._journal)
        self._parked = False
        self._moves: dict[type, Callable[..., Later | None]] = {
            Read: self._read,
            Skip: self._skip,
            CallRunbook: self._call,
            MakePlan: self._plan,
            PassApproval: self._pass,
            TakeLocks: self._take_locks,
            Act: self._act,
            Recover: self._recover,
            UndoStep: self._undo,
            TakeOver: self._take_over,
            Finish: self._finish,
            GiveUp: self._give_up,
            Undone: self._undone,
            Stop: self._stop,
            NeedPerson: self._need_person,
        }

    def park(self) -> None:
        """From now on every run stops at its next step boundary; the next process goes on from there."""
        self._parked = True

    def advance(self, run: RunId) -> Later:
        """Take this run as far as it gets. Raises what is a fault of ours, nothing else."""
        refused, following = 0, Following(self._frames, run)
        for _ in range(MOST_MOVES):
            if self._parked:
                break
            frame = following.frame()
            if frame is None:
                return Later(at=None)
            try:
                later = self._one(frame)
            except Changed as news:
                refused += 1
                if refused >= MOST_REFUSALS:
                    raise RuntimeError(f"{run} is refused every move: {news}") from news
                continue
            refused = 0
            if later is not None:
                return later
        return Later(at=self._now())

    def _one(self, frame: Frame) -> Later | None:
        """One move; None when the next can follow at once."""
        run = frame.run
        if run.state is RunState.REQUESTED:
            self._journal.move(run.id, Move.BEGIN, "")
            return None
        if run.state is RunState.AWAITING_APPROVAL:
            return self._approval(frame)
        if not run.state.acts:
            return Later(at=None)
        if self._held(frame):
            return Later(at=self._now() + POLL)
        missing = frame.definition.missing_contracts(self._parts.specs)
        if missing:
            why = f"this release no longer has {', '.join(missing)}, which the run was made for"
            self._journal.move(run.id, Move.ESCALATE, why)
            return None
        try:
            move = next_step(frame)
        except ExpressionError as problem:
            self._journal.move(run.id, Move.ESCALATE, f"the runbook cannot go on: {problem}")
            return None
        return self._carry_out(frame, move)

    def _held(self, frame: Frame) -> bool:
        """Whether it stands still because its caller does; what began is looked after all the same."""
        run, began = frame.run, keys_at(frame, StepState.INTENDED)
        ends = began or run.stop_wanted or run.state is RunState.UNDOING
        return not ends and not self._frames.callers_act(run)

    def _carry_out(self, frame: Frame, move: Next) -> Later | None:
        try:
            return self._moves[type(move)](frame, move)
        except Unreadable as problem:
            # Whatever had to be looked at: a cluster that gives no answer is waited for, not a fault.
            return self._no_answer(frame, f"the cluster gives no answer: {problem}")

    def _now(self) -> datetime:
        return self._parts.clock.now().wall

    # -- looking ------------------------------------------------------------------------------

    def _read(self, frame: Frame, move: Read) -> Later | None:
        return self._reading.read(frame, move.place)

    def _skip(self, frame: Frame, move: Skip) -> None:
        self._journal.skip(frame.run.id, move.place, move.why)

    # -- planning -----------------------------------------------------------------------------

    def _plan(self, frame: Frame, move: MakePlan) -> Later | None:
        run = frame.run
        if run.voids >= self._parts.policy.site.approvals.replans:
            why = f"the cluster changed {run.voids} times while this was planned: {run.why}"
            self._journal.move(run.id, Move.ESCALATE, why)
            return None
        ahead = tuple(items(frame))
        denied = self._reach.plan(frame, ahead)
        if denied:
            self._deny(frame, denied)
            return None
        try:
            plan = self._frames.fresh_plan(frame, ahead)
        except Unreadable as problem:
            return self._no_answer(frame, f"the plan waits for an answer: {problem}")
        except Refusal as problem:
            self._journal.move(run.id, Move.ESCALATE, f"no plan can be made: {problem}")
            return None
        policy, cause = self._parts.policy, str(diagnosis_of(frame).get("id") or "")
        lacks = lacking(plan, run.cluster, policy.lacks)
        who = needed(plan, self._autonomy(frame, cause), policy.site.limits, bool(move.at), lacks)
        self._journal.plan(run.id, plan, move.at, who)
        return None

    def _deny(self, frame: Frame, why: str) -> None:
        """The requester may not take all that the plan takes: a failure like others."""
        if frame.run.acted:
            self._give_up(frame, given_up(frame, why))
            return
        how = frame.runbook.on_failure
        nothing = OnFailure.STOP if how is OnFailure.UNDO else how  # there is nothing to take back
        self._give_up(frame, GiveUp(how=nothing, why=f"{why}; nothing was done"))

    def _autonomy(self, frame: Frame, cause: str) -> Autonomy:
        """Policy, narrowed to `propose` when several nodes dropped together (promise 6).

        A called runbook may never do more by itself than the one that called it.
        """
        run = frame.run
        above = self._frames.frame(run.parent) if run.parent is not None else None
        if above is not None:
            said = str(diagnosis_of(above).get("id") or "")
            both = (self._autonomy(above, said), self._own_autonomy(frame, cause))
            return min(both, key=list(Autonomy).index)
        return self._own_autonomy(frame, cause)

    def _own_autonomy(self, frame: Frame, cause: str) -> Autonomy:
        run = frame.run
        told = diagnosis_of(frame).get("autonomy")
        autonomy = self._parts.policy.autonomy_of(
            run.runbook, cause, str(told or ""), asked_by_person=run.door in _PEOPLE
        )
        if not cause or autonomy is not Autonomy.ACT:
            return autonomy
        snapshot = self._parts.clusters[run.cluster].snapshot()
        limits = self._parts.policy.site.limits
        for node in self._frames.nodes(run):
            if correlated(snapshot, node, limits, self._now()) or self._started_lately(node):
                return Autonomy.PROPOSE
        return autonomy

    def _started_lately(self, node: NodeName) -> bool:
        """Whether a service of this node was started by us already: once may be chance (hands)."""
        since = self._now() - self._parts.policy.site.limits.starts_per_node
        query = AuditQuery(target=node, action="service.start", since=since)
        return any(search(self._parts.ledger, query, 1))

    def _approval(self, frame: Frame) -> Later | None:
        run = frame.run
        if run.stop_wanted:
            return self._stop(frame, Stop(how=run.stop_wanted))
        if run.approved:
            self._journal.move(run.id, Move.APPROVE, "")
            return None
        plan = run.plan
        if plan is not None and self._now() >= plan.expires_at:
            self._expire(frame)
            return None
        return Later(at=plan.expires_at if plan else None)

    def _expire(self, frame: Frame) -> None:
        """Nobody agreed in time; in the middle of a run that is a failure like others."""
        run, why = frame.run, "nobody approved it in time"
        how = frame.runbook.on_failure
        if not run.acted:
            self._journal.move(run.id, Move.EXPIRE, f"{why}; nothing was done")
        elif how is OnFailure.STOP:
            self._end(run, Move.EXPIRE, f"{why}; what was done before stays")
        elif how is OnFailure.UNDO and not past_return(frame):
            self._journal.move(run.id, Move.UNDO, why)
        else:
            self._journal.move(run.id, Move.ESCALATE, why)

    def _pass(self, frame: Frame, move: PassApproval) -> None:
        plan = frame.run.plan
        output: JsonMap = {"hash": plan.hash if plan else ""}
        self._journal.read(frame.run.id, move.place, "approve@1", output)

    def _take_locks(self, frame: Frame, _move: TakeLocks) -> Later | None:
        run, root = frame.run, self._frames.root(frame.run)
        locks = tuple(sorted({*root.locks, *self._frames.locks(run)}))
        members = self._frames.partition_members(run.cluster)
        held = self._journal.take_locks(root.id, locks, atoms(run.cluster, locks, members))
        if held and root.locks:
            # Waiting with locks in hand is how two runs wait for each other (design 5).
            why = f"{held}; {root.id} holds locks already and waits for no further one"
            self._journal.move(run.id, Move.ESCALATE, why)
            return None
        return self._look_again(frame, held) if held else None

    def _no_answer(self, frame: Frame, why: str) -> Later | None:
        """Wait for an answer, but not for ever: then a person is told."""
        run = frame.run
        # Its wait was recorded once, with the time of the first look that was to follow.
        waits = run.state is RunState.WAITING and run.due_at is not None
        if waits and run.due_at and self._now() >= run.due_at + LONGEST_BLINDNESS:
            self._journal.move(run.id, Move.ESCALATE, f"since {run.due_at:%H:%M} UTC {why}")
            return None
        return self._look_again(frame, why)

    def _look_again(self, frame: Frame, why: str) -> Later:
        """Wait for the world with one record for each new reason."""
        due = self._now() + POLL
        run = frame.run
        if run.state is RunState.RUNNING:
            self._journal.move(run.id, Move.WAIT, why, due)
        return Later(at=due)

    # -- acting -------------------------------------------------------------------------------

    def _act(self, frame: Frame, move: Act) -> Later | None:
        return self._acting.act(frame, move.place)

    def _recover(self, frame: Frame, move: Recover) -> Later | None:
        return self._acting.recover(frame, move.key)

    def _undo(self, frame: Frame, move: UndoStep) -> Later | None:
        return self._acting.undo(frame, move.key)

    def _take_over(self, frame: Frame, move: TakeOver) -> None:
        self._journal.take_over(frame.run.id, move.key)

    def _call(self, frame: Frame, move: CallRunbook) -> Later | None:
        run, place = frame.run, move.place
        if move.child is None:
            self._journal.start_child(run, place, self._frames.fresh_child(frame, place))
            return Later(at=None)
        child = self._frames.run(move.child)
        if child is None or child.open:
            return Later(at=self._now() + POLL)  # its end makes this run due; here it was resumed
        output: JsonMap = {"run": child.id, "state": child.state.value, "why": child.why}
        if child.state is RunState.SUCCEEDED:
            self._journal.read(run.id, place, f"call {child.runbook}@{child.version}", output)
        else:
            error = f"{child.id} {child.runbook} {child.state}: {child.why}"
            self._journal.refuse(run.id, place, error, FailureKind.PERMANENT.value)
        return None

    # -- endings ------------------------------------------------------------------------------

    def _finish(self, frame: Frame, move: Finish) -> None:
        run = frame.run
        did = effects(run, StepState.DONE)
        told = [str(output["say"]) for output in frame.outputs.values() if set(output) == {"say"}]
        nothing = told[-1] if told else "nothing needed to be done"
        why = move.why or (f"did {', '.join(did)}" if did else nothing)
        self._wake(frame)
        self._end(run, Move.FINISH, why)

    def _end(self, run: Run, move: Move, why: str) -> None:
        """Make it final; what it changed is anchored first, as far as an anchor can be reached."""
        if run.acted and run.parent is None:
            self._parts.before_end()
        self._journal.move(run.id, move, why)

    def _wake(self, frame: Frame) -> None:
        """A waiting run that has nothing left to wait for goes through `running`."""
        if frame.run.state is RunState.WAITING:
            self._journal.move(frame.run.id, Move.WAKE, "")

    def _give_up(self, frame: Frame, move: GiveUp) -> None:
        moves = {
            OnFailure.STOP: Move.FAIL,
            OnFailure.ESCALATE: Move.ESCALATE,
            OnFailure.UNDO: Move.UNDO,
        }
        if move.how is OnFailure.STOP:
            self._end(frame.run, moves[move.how], move.why)
        else:
            self._journal.move(frame.run.id, moves[move.how], move.why)

    def _undone(self, frame: Frame, _move: Undone) -> None:
        run = frame.run
        unknown = [key for key, step in run.steps.items() if step.state is StepState.UNKNOWN]
        if unknown:
            why = f"{unknown[0]}: nobody knows whether it happened; the rest is taken back"
            self._journal.move(run.id, Move.ESCALATE, why)
            return
        self._end(run, Move.UNDONE, "everything it did was taken back")

    def _stop(self, frame: Frame, move: Stop) -> Later | None:
        run = frame.run
        aborts = move.how == Move.WANT_ABORT.stop
        busy = self._frames.open_children if aborts else self._frames.effect_open_below
        if busy(run.id):
            return Later(at=self._now() + POLL)
        why = run.stop_reason
        if move.how == "pause":
            self._journal.move(run.id, Move.PAUSE, why)
        elif move.how == "takeover":
            self._journal.hand_over(run.id, why)
        elif frame.runbook.on_failure is OnFailure.UNDO and past_return(frame):
            why = f"{why}; past the point of no return: nothing was taken back"
            self._end(run, Move.ABORT, why)
        elif frame.runbook.on_failure is OnFailure.UNDO:
            self._journal.move(run.id, Move.UNDO, why)
        else:
            self._end(run, Move.ABORT, why)
        return None

    def _need_person(self, frame: Frame, move: NeedPerson) -> Later | None:
        run = frame.run
        self._journal.wait(run, move.place, self._now(), move.why)
        self._journal.move(run.id, Move.ESCALATE, move.why)
        return None
