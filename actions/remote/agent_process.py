"""The bot's side of the node agent: starts it, asks it, and says `lost` when it dies.

Used by `actions.remote.nodes` only, from any thread. The child is started at the first question
and again at the next question after its death. What was asked of a dead agent has an unknown
outcome: it must never be asked again here, because the command may have run.
"""

import math
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import IO, Protocol

from actions.remote.wire import Answer, Garbled, Request, read_answer, request_line
from config.node_names import NodeName

_GRACE = 10.0
"""Seconds beyond every limit after which an agent that does not answer counts as hung."""


class Child(Protocol):
    """A started process with three pipes."""

    @property
    def stdin(self) -> IO[bytes] | None:
        """Takes requests."""
        ...

    @property
    def stdout(self) -> IO[bytes] | None:
        """Gives answers."""
        ...

    @property
    def stderr(self) -> IO[bytes] | None:
        """Gives what went wrong in it."""
        ...

    def kill(self) -> None:
        """End it at once; nothing if it has ended."""
        ...

    def wait(self) -> int:
        """Its return code, once it has ended."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked of some nodes."""

    nodes: tuple[NodeName, ...]
    command: str
    limit_ms: int
    cap: int
    options: tuple[str, ...] = ()


class AgentProcess:
    """The agent, whichever process it is at the moment."""

    def __init__(self, start: Callable[[], Child], fan_out: int) -> None:
        """`start` starts an agent and raises NotStarted when it cannot."""
        self._start = start
        self._fan_out = fan_out
        self._lock = threading.Lock()
        self._life: _Life | None = None

    def ask(self, question: Question) -> dict[NodeName, Answer]:
        """One answer for each node. Raises NotStarted when no agent can be started."""
        with self._lock:
            life = self._living()
            ticket = life.send(question, self._fan_out)
            if ticket is None:
                # It died before it could read a whole line: nothing of this was begun.
                life = self._life = _Life(self._start())
                ticket = life.send(question, self._fan_out)
        if ticket is None:
            return _lost(0, question.nodes, f"the node agent ended at once: {life.last_words()}")
        return life.wait(ticket)

    def close(self) -> None:
        """End the agent and with it every connection; what was asked is lost."""
        with self._lock:
            if self._life is not None:
                self._life.end("the bot is stopping")
                self._life = None

    def _living(self) -> "_Life":
        if self._life is None or not self._life.ours:
            self._life = _Life(self._start())
        return self._life


@dataclass(slots=True, kw_only=True)
class _Ticket:
    """One question under way."""

    id: int
    nodes: tuple[NodeName, ...]
    deadline: float
    answers: dict[NodeName, Answer] = field(default_factory=dict)
    done: threading.Event = field(default_factory=threading.Event)

    @property
    def missing(self) -> list[NodeName]:
        return [node for node in self.nodes if node not in self.answers]


class _Life:
    """One agent process from its start to its end."""

    def __init__(self, child: Child) -> None:
        self._child = child
        self._owner = os.getpid()
        self._lock = threading.Lock()
        self._tickets: dict[int, _Ticket] = {}
        self._next = 1
        self._dead = ""
        self._words: deque[str] = deque(maxlen=20)
        threads = (
            threading.Thread(target=self._read_answers, name="node-agent-answers", daemon=True),
            threading.Thread(target=self._read_words, name="node-agent-words", daemon=True),
        )
        for thread in threads:
            thread.start()

    @property
    def ours(self) -> bool:
        """False after a fork: our reading threads stayed behind in the process that made it."""
        return self._owner == os.getpid()

    def last_words(self) -> str:
        """What it wrote to stderr last."""
        return " | ".join(self._words)[-300:] or "it said nothing"

    def send(self, question: Question, fan_out: int) -> _Ticket | None:
        """Ask; None if the agent is gone and cannot have read the question."""
        with self._lock:
            if self._dead:
                return None
            ticket = self._ticket(question, fan_out)
            self._tickets[ticket.id] = ticket
            try:
                _write(self._child.stdin, request_line(_request(ticket.id, question)))
            except OSError:
                del self._tickets[ticket.id]
                return None
            return ticket

    def _ticket(self, question: Question, fan_out: int) -> _Ticket:
        """Places are shared by all callers: the last of `waiting` nodes starts after all others."""
        number, self._next = self._next, self._next + 1
        waiting = sum(len(other.missing) for other in self._tickets.values())
        waves = math.ceil((waiting + len(question.nodes)) / fan_out)
        now = time.monotonic()
        longest = max(
            [question.limit_ms / 1000, *(other.deadline - now for other in self._tickets.values())]
        )
        return _Ticket(id=number, nodes=question.nodes, deadline=now + waves * longest + _GRACE)

    def wait(self, ticket: _Ticket) -> dict[NodeName, Answer]:
        """Answers as they stand when all are there, the agent has died, or its time is over."""
        if not ticket.done.wait(ticket.deadline - time.monotonic()):
            self.end("the node agent did not answer in time and was ended")
        with self._lock:
            self._tickets.pop(ticket.id, None)
            why = self._dead or "the node agent gave no answer"
            return {**_lost(ticket.id, ticket.missing, why), **ticket.answers}

    def end(self, why: str) -> None:
        """Kill it; every open question is lost."""
        with self._lock:
            self._dead = self._dead or why
        self._child.kill()
        self._finish(why)

    def _finish(self, why: str) -> None:
        with self._lock:
            self._dead = self._dead or why
            for ticket in self._tickets.values():
                ticket.done.set()

    def _read_answers(self) -> None:
        stream = self._child.stdout
        why = "the node agent died"
        try:
            for line in stream or ():
                self._take(read_answer(line))
        except Garbled as error:
            why = f"the node agent wrote nonsense and was ended ({error})"
        self._child.kill()
        code = self._child.wait()
        self._finish(f"{why} (exit code {code}): {self.last_words()}")
        for pipe in (self._child.stdin, self._child.stdout):
            _close(pipe)

    def _take(self, answer: Answer) -> None:
        with self._lock:
            ticket = self._tickets.get(answer.id)
            if ticket is None:
                return
            ticket.answers[answer.node] = answer
            if not ticket.missing:
                ticket.done.set()

    def _read_words(self) -> None:
        for line in self._child.stderr or ():
            self._words.append(line.decode("utf-8", errors="backslashreplace").strip()[:200])
        _close(self._child.stderr)


def _request(number: int, question: Question) -> Request:
    return Request(
        id=number,
        nodes=question.nodes,
        command=question.command,
        options=question.options,
        limit_ms=question.limit_ms,
        cap=question.cap,
    )


def _lost(number: int, nodes: Sequence[NodeName], why: str) -> dict[NodeName, Answer]:
    return {node: Answer(id=number, node=node, exit_code=None, lost=why) for node in nodes}


def _write(pipe: IO[bytes] | None, line: bytes) -> None:
    if pipe is None:
        raise BrokenPipeError
    pipe.write(line)
    pipe.flush()


def _close(pipe: IO[bytes] | None) -> None:
    try:
        if pipe is not None:
            pipe.close()
    except OSError:
        pass  # the other end is gone; there is nothing left to say to it
