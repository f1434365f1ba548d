"""The command line's door: a Unix socket on the bot's host. Who asks is read from the socket.

Started by `bot.serve`. One thread for each connection, a limited number of them; it knows the desk
and nothing of the engine.
"""

import contextlib
import logging
import secrets
import select
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from audit_log.errors import StoreError
from bot.answers import Answers
from bot.desk import Desk, Request
from bot.identities import UNKNOWN, Identities, Stranger
from bot.local_wire import (
    LONGEST_REQUEST,
    Ask,
    NotUnderstood,
    decode_ask,
    encode_card,
    encode_reply,
)
from bot.os_users import Peer, names_of
from bot.phrases import Misread, parse_words
from bot.replies import Reply, ReplyKind, misread, refused
from config.actors import Actor, Door, Identity
from config.ids import RunId
from runbooks.explain import Card

log = logging.getLogger(__name__)

MOST_CONNECTIONS = 64
MOST_OF_ONE = 48
"""Connections of one OS user, so that nobody takes all the places and an on-call still gets in."""
PATIENCE = 10.0
"""Seconds in which a connected program must have sent its request."""
WAITING = 1024
"""Connections that the kernel keeps until they are let in: a crowd is answered, not refused."""
MOST_DISCARDED = 8 * 1024 * 1024
"""Bytes of a request that is too long which are read on, so that its sender can read the answer."""
LOOK = 0.2
"""Seconds between two looks at a run that is followed."""


class LocalDoor:
    """Serves the socket."""

    def __init__(self, path: Path, desk: Desk, identities: Identities, answers: Answers) -> None:
        """Listens from `start` on."""
        self._path = path
        self._desk = desk
        self._identities = identities
        self._answers = answers
        self._stopping = threading.Event()
        self._guard = threading.Lock()
        self._open: Counter[int] = Counter()
        """Connections by OS user."""
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        self._thread = threading.Thread(target=self._serve, name="local-door", daemon=True)

    def start(self) -> None:
        """Listen; every local user may connect, and the desk decides what each may do."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._path.unlink(missing_ok=True)  # `bot_sockets` has seen that nobody listens here
        self._listener.bind(str(self._path))
        self._path.chmod(0o666)
        self._listener.listen(WAITING)
        self._thread.start()

    def stop(self) -> None:
        """Take no new request; answers under way are finished by their own threads."""
        self._stopping.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._path.unlink(missing_ok=True)

    def _serve(self) -> None:
        while not self._stopping.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            user = _peer(connection).uid
            why = self._enter(user)
            if why:
                _turn_away(connection, why)
                continue
            threading.Thread(target=self._attend, args=(connection, user), daemon=True).start()

    def _enter(self, user: int) -> str:
        """Take a place; why there is none, or the empty string."""
        with self._guard:
            if self._open[user] >= MOST_OF_ONE:
                return (
                    f"{MOST_OF_ONE} commands of your OS user are open already; nothing was done: "
                    "end those that follow a run (Ctrl-C ends no run), then say it again"
                )
            if self._open.total() >= MOST_CONNECTIONS:
                return (
                    f"{MOST_CONNECTIONS} commands are open already; nothing was done: say it again "
                    "in a moment, or use Slack; `nodewarden halt` works in any case"
                )
            self._open[user] += 1
            return ""

    def _attend(self, connection: socket.socket, user: int) -> None:
        try:
            with connection:
                connection.settimeout(PATIENCE)
                self._answer(connection)
        except OSError as problem:
            log.info("a local connection ended early: %s", problem)
        except Exception:  # one connection must not end the door
            log.exception("a local request failed in the bot's own code")
        finally:
            with self._guard:
                self._open[user] -= 1

    def _answer(self, connection: socket.socket) -> None:
        try:
            ask = decode_ask(_read_line(connection))
            actor = self._actor(connection)
        except NotUnderstood as problem:
            connection.sendall(encode_reply(refused(str(problem)), None))
            return
        except Stranger as problem:
            reply = self._desk.turn_away(Door.CLI, str(problem), UNKNOWN)
            connection.sendall(encode_reply(reply, None))
            return
        reply = self._reply(actor, ask)
        card = self._answers.card(reply.run) if reply.run else None
        connection.sendall(encode_reply(reply, card))
        if ask.follow and reply.kind is ReplyKind.STARTED and reply.run is not None:
            self._follow(reply.run, card, connection)

    def _reply(self, actor: Actor, ask: Ask) -> Reply:
        try:
            command = parse_words([self._desk.heard(word) for word in ask.words])
        except Misread as problem:
            return misread(str(problem))
        request = Request(actor=actor, door=Door.CLI, command=command, key=ask.key)
        try:
            return self._desk.submit(request)
        except StoreError as problem:
            return refused(f"it cannot be recorded, so nothing was done: {problem}")
        except Exception:  # whoever asks must hear of it, and find it in the log
            number = secrets.token_hex(4)
            log.exception("error %s: a local request failed in the bot's own code", number)
            return refused(
                f"the bot failed at this (error {number} in its log): see `status` for what was "
                "done, and give an admin that number"
            )

    def _actor(self, connection: socket.socket) -> Actor:
        """The person behind the peer's user; raises Stranger."""
        names = names_of(_peer(connection))
        for name in names:
            try:
                return self._identities.at_door(Identity(door="os", subject=name))
            except Stranger:
                continue
        raise Stranger(
            f"OS user {' / '.join(names)} is nobody in the configuration; an admin adds it under "
            "`people: …: os_users`"
        )

    def _follow(self, run: RunId, shown: Card | None, connection: socket.socket) -> None:
        """Send each new card until the run rests (final, or waiting for a person)."""
        send: Callable[[bytes], None] = connection.sendall
        while not self._stopping.wait(LOOK) and not _gone(connection):
            card = self._answers.card(run)
            if card is None:
                return
            if shown is None or card.revision != shown.revision:
                send(encode_card(card))
                shown = card
            if not card.state.acts:
                return


def _peer(connection: socket.socket) -> Peer:
    """The process at the other end, as the kernel knows it."""
    size = struct.calcsize("3i")
    packed = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
    pid, uid, _ = struct.unpack("3i", packed)
    return Peer(pid=pid, uid=uid)


def _turn_away(connection: socket.socket, why: str) -> None:
    """One line, without waiting for anything: this is the thread that lets everybody in."""
    with connection, contextlib.suppress(OSError):
        connection.setblocking(False)
        connection.sendall(encode_reply(refused(why), None))


def _gone(connection: socket.socket) -> bool:
    """Whether the follower has left; he keeps his place no longer than that."""
    poll = select.poll()
    poll.register(connection, select.POLLIN)
    return bool(poll.poll(0)) and connection.recv(1, socket.MSG_PEEK) == b""


def _read_line(connection: socket.socket) -> bytes:
    """One line, however many pieces it comes in. Raises NotUnderstood, OSError."""
    line = bytearray()
    size = 0
    end = time.monotonic() + PATIENCE
    while not line.endswith(b"\n"):
        try:
            connection.settimeout(max(0.001, end - time.monotonic()))
            piece = connection.recv(65_536)
        except TimeoutError as problem:
            raise NotUnderstood(
                f"no whole line came within {PATIENCE:.0f} s; nothing was done: say it again"
            ) from problem
        size += len(piece)
        if not piece or size > MOST_DISCARDED:
            break
        line = (line + piece)[-LONGEST_REQUEST - 2 :]
    connection.settimeout(PATIENCE)
    if size > LONGEST_REQUEST:
        raise NotUnderstood(
            f"the request is longer than {LONGEST_REQUEST:,} bytes; nothing was done: say it "
            "shorter"
        )
    return bytes(line)
