"""The states of a run and the moves between them: one total function. Pure.

`docs/reference/states.md` is generated from the table, so that operators read what the code does.
"""

from enum import StrEnum


class RunState(StrEnum):
    """Where a run stands."""

    REQUESTED = "requested"
    """Asked for and allowed; nothing looked at yet."""
    AWAITING_APPROVAL = "awaiting_approval"
    """Its plan waits for a yes."""
    RUNNING = "running"
    """A step is being looked at or carried out."""
    WAITING = "waiting"
    """It will look again at a stored time; nobody holds a thread for it."""
    PAUSED = "paused"
    """A person stopped it at a step boundary; its locks are kept."""
    UNDOING = "undoing"
    """Taking back what it did, last step first."""
    NEEDS_PERSON = "needs_person"
    """It cannot find out or may not decide: a person was paged; its locks are kept."""
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    UNDONE = "undone"
    """Everything it did was taken back."""
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    """Nobody approved in time."""

    @property
    def final(self) -> bool:
        """Whether nothing can follow."""
        return self in _FINAL

    @property
    def acts(self) -> bool:
        """Whether the worker moves it on by itself."""
        return self in {RunState.REQUESTED, RunState.RUNNING, RunState.WAITING, RunState.UNDOING}


_FINAL = frozenset(
    {
        RunState.SUCCEEDED,
        RunState.FAILED,
        RunState.UNDONE,
        RunState.CANCELLED,
        RunState.EXPIRED,
    }
)


class Move(StrEnum):
    """What can happen to a run."""

    BEGIN = "begin"
    ASK = "ask"
    APPROVE = "approve"
    DENY = "deny"
    EXPIRE = "expire"
    WAIT = "wait"
    WAKE = "wake"
    PAUSE = "pause"
    RESUME = "resume"
    ESCALATE = "escalate"
    """A step failed or is unknown, and a person must decide."""
    FAIL = "fail"
    UNDO = "undo"
    UNDONE = "undone"
    FINISH = "finish"
    ABORT = "abort"
    RESOLVE = "resolve"
    """A person said what happened."""
    WANT_ABORT = "want_abort"
    WANT_PAUSE = "want_pause"
    WANT_TAKEOVER = "want_takeover"

    @property
    def asks_to_stop(self) -> bool:
        """Whether it only asks for a stop at the next step boundary and moves no state."""
        return self in {Move.WANT_ABORT, Move.WANT_PAUSE, Move.WANT_TAKEOVER}

    @property
    def keeps_stop(self) -> bool:
        """Whether a stop that is wanted still is: none of these carries it out."""
        return self in {Move.BEGIN, Move.ASK, Move.APPROVE, Move.WAIT, Move.WAKE}

    @property
    def stop(self) -> str:
        """The stop that a `want_…` asks for."""
        return self.value.removeprefix("want_")


class IllegalTransition(ValueError):
    """A move that cannot follow in this state."""

    def __init__(self, state: RunState, move: Move) -> None:
        """Name both."""
        super().__init__(f"a run that is {state} cannot {move}")
        self.state = state
        self.move = move


_S = RunState
TRANSITIONS: dict[tuple[RunState, Move], RunState] = {
    (_S.REQUESTED, Move.BEGIN): _S.RUNNING,
    (_S.REQUESTED, Move.ABORT): _S.CANCELLED,
    (_S.REQUESTED, Move.ESCALATE): _S.NEEDS_PERSON,
    (_S.REQUESTED, Move.FAIL): _S.FAILED,
    (_S.AWAITING_APPROVAL, Move.APPROVE): _S.RUNNING,
    (_S.AWAITING_APPROVAL, Move.DENY): _S.CANCELLED,
    (_S.AWAITING_APPROVAL, Move.EXPIRE): _S.EXPIRED,
    (_S.AWAITING_APPROVAL, Move.ABORT): _S.CANCELLED,
    (_S.AWAITING_APPROVAL, Move.UNDO): _S.UNDOING,
    (_S.AWAITING_APPROVAL, Move.ESCALATE): _S.NEEDS_PERSON,
    (_S.RUNNING, Move.ASK): _S.AWAITING_APPROVAL,
    (_S.RUNNING, Move.WAIT): _S.WAITING,
    (_S.RUNNING, Move.PAUSE): _S.PAUSED,
    (_S.RUNNING, Move.ESCALATE): _S.NEEDS_PERSON,
    (_S.RUNNING, Move.FAIL): _S.FAILED,
    (_S.RUNNING, Move.UNDO): _S.UNDOING,
    (_S.RUNNING, Move.FINISH): _S.SUCCEEDED,
    (_S.RUNNING, Move.ABORT): _S.CANCELLED,
    (_S.WAITING, Move.WAKE): _S.RUNNING,
    (_S.WAITING, Move.PAUSE): _S.PAUSED,
    (_S.WAITING, Move.ESCALATE): _S.NEEDS_PERSON,
    (_S.WAITING, Move.FAIL): _S.FAILED,
    (_S.WAITING, Move.UNDO): _S.UNDOING,
    (_S.WAITING, Move.ABORT): _S.CANCELLED,
    (_S.PAUSED, Move.RESUME): _S.RUNNING,
    (_S.PAUSED, Move.ESCALATE): _S.NEEDS_PERSON,
    (_S.PAUSED, Move.UNDO): _S.UNDOING,
    (_S.PAUSED, Move.ABORT): _S.CANCELLED,
    (_S.UNDOING, Move.UNDONE): _S.UNDONE,
    (_S.UNDOING, Move.ESCALATE): _S.NEEDS_PERSON,
    (_S.NEEDS_PERSON, Move.RESOLVE): _S.RUNNING,
    (_S.NEEDS_PERSON, Move.UNDO): _S.UNDOING,
    (_S.NEEDS_PERSON, Move.FAIL): _S.FAILED,
    (_S.NEEDS_PERSON, Move.ABORT): _S.CANCELLED,
}
"""Every pair that is allowed; all others are illegal. Resuming a run that was waiting goes through
`running`, which looks again at once: a pause may have outlasted the reason for the wait."""


def next_state(state: RunState, move: Move) -> RunState:
    """The state after this move. Raises IllegalTransition."""
    found = TRANSITIONS.get((state, move))
    if found is None:
        raise IllegalTransition(state, move)
    return found
