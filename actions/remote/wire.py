"""The JSON lines between the bot and its node agent: requests one way, answers the other.

Used by `actions.remote.agent` (the child) and `actions.remote.agent_process` (the parent). Pure.
"""

import json
from dataclasses import dataclass

from config.node_names import NodeName


class Garbled(ValueError):
    """A line that is no message of this protocol."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One command line for some nodes."""

    id: int
    nodes: tuple[NodeName, ...]
    command: str
    """Made by `shlex.join`; the login shell of the node takes it apart again."""
    options: tuple[str, ...]
    """Further options of ssh, before the node."""
    limit_ms: int
    """After which the agent ends the connection of a node."""
    cap: int
    """Bytes kept of each output of each node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What one node answered, or why nothing can be said."""

    id: int
    node: NodeName
    exit_code: int | None
    output: str = ""
    errors: str = ""
    truncated: bool = False
    lost: str = ""


def request_line(request: Request) -> bytes:
    """A request as one line."""
    return _line(
        {
            "id": request.id,
            "nodes": request.nodes,
            "command": request.command,
            "options": request.options,
            "limit_ms": request.limit_ms,
            "cap": request.cap,
        }
    )


def answer_line(answer: Answer) -> bytes:
    """An answer as one line."""
    return _line(
        {
            "id": answer.id,
            "node": answer.node,
            "exit_code": answer.exit_code,
            "output": answer.output,
            "errors": answer.errors,
            "truncated": answer.truncated,
            "lost": answer.lost,
        }
    )


def read_request(line: bytes) -> Request:
    """The request in a line. Raises Garbled."""
    try:
        plain = json.loads(line)
        return Request(
            id=plain["id"],
            nodes=tuple(plain["nodes"]),
            command=plain["command"],
            options=tuple(plain["options"]),
            limit_ms=plain["limit_ms"],
            cap=plain["cap"],
        )
    except (ValueError, KeyError, TypeError) as error:
        raise Garbled(f"not a request: {line[:80]!r}") from error


def read_answer(line: bytes) -> Answer:
    """The answer in a line. Raises Garbled."""
    try:
        return Answer(**json.loads(line))
    except (ValueError, TypeError) as error:
        raise Garbled(f"not an answer: {line[:80]!r}") from error


def _line(message: dict[str, object]) -> bytes:
    return json.dumps(message).encode("ascii") + b"\n"
