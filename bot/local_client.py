"""Talks to the running bot over its Unix socket. Called by the command line; standard library only."""

import contextlib
import json
import socket
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bot.bot_sockets import stranger
from bot.local_wire import Ask, encode_ask
from bot.replies import ReplyKind

CONNECT = 2
"""Seconds to be let in."""
FIRST_ANSWER = 30.0
"""Seconds for the first answer; a bot that is stopped does not give one."""


class BotAway(Exception):
    """No bot answers; the message says what to do."""


def talk(path: Path, ask: Ask) -> Iterator[dict[str, Any]]:
    """Send one request; its answer and, when followed, the cards. Raises BotAway."""
    line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    # a time limit of Python's would make a crowd before the door look like no bot at all
    line.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", CONNECT, 0))
    try:
        line.connect(str(path))
        _refuse_stranger(path, line)
        line.settimeout(FIRST_ANSWER)
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            line.sendall(encode_ask(ask))  # one that is turned away has its answer already
    except OSError as problem:
        line.close()
        raise BotAway(
            f"no bot answers at {path} ({problem}): start it with `nodewarden serve`, or name its "
            "socket with --socket or NODEWARDEN_SOCKET; in an emergency use --standalone"
        ) from problem
    with line, line.makefile("rb") as answers:
        try:
            yield from _lines(answers, line, ask)
        except OSError as problem:
            raise BotAway(
                f"the bot at {path} stopped answering: {problem}; "
                "whether it was done shows in `status`, and in the bot's log"
            ) from problem


def _refuse_stranger(path: Path, line: socket.socket) -> None:
    """Say nothing to a program of somebody else that sits at the bot's place. Raises BotAway."""
    packed = line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    why = stranger(path, struct.unpack("3i", packed)[1])
    if why:
        line.close()
        raise BotAway(why)


def _lines(answers: Any, line: socket.socket, ask: Ask) -> Iterator[dict[str, Any]]:
    text = answers.readline()
    if not text:
        raise OSError("it closed the connection without an answer")
    first: dict[str, Any] = json.loads(text)
    yield first
    if not ask.follow or first["reply"]["kind"] != ReplyKind.STARTED:
        return  # nothing more is meant to come
    line.settimeout(None)  # a run may rest for hours before its next card
    for text in answers:
        yield json.loads(text)
