"""The command line's door: a Unix socket on the bot's host. Who asks is read from the socket.

Started by `bot.serve`. One thread for each connection, a limited number of them; it knows the desk
and nothing of the engine.
"""

import logging
import socket
import struct
import threading
from collections.abc import Callable
from pathlib import Path

from bot.answers import Answers
from bot.desk import Desk, Request
from bot.identities import Identities, Stranger
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
PATIENCE = 10.0
"""Seconds in which a connected program must have sent its request."""
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
        self._places = threading.BoundedSemaphore(MOST_CONNECTIONS)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        self._thread = threading.Thread(target=self._serve, name="local-door", daemon=True)

    def start(self) -> None:
        """Listen; every local user may connect, and the desk decides what each may do."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._path.unlink(missing_ok=True)  # the ledger's lock says that no other bot listens here
        self._listener.bind(str(self._path))
        self._path.chmod(0o666)
        self._listener.listen(MOST_CONNECTIONS)
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
            if not self._places.acquire(blocking=False):
                connection.close()
                continue
            threading.Thread(target=self._attend, args=(connection,), daemon=True).start()

    def _attend(self, connection: socket.socket) -> None:
        try:
            with connection:
                connection.settimeout(PATIENCE)
                self._answer(connection)
        except OSError as problem:
            log.info("a local connection ended early: %s", problem)
        except Exception:  # one connection must not end the door
            log.exception("a local request failed in the bot's own code")
        finally:
            self._places.release()

    def _answer(self, connection: socket.socket) -> None:
        line = _read_line(connection)
        try:
            ask = decode_ask(line)
            actor = self._actor(connection)
        except (NotUnderstood, Stranger) as problem:
            connection.sendall(encode_reply(refused(str(problem)), None))
            return
        reply = self._reply(actor, ask)
        card = self._answers.card(reply.run) if reply.run else None
        connection.sendall(encode_reply(reply, card))
        if ask.follow and reply.kind is ReplyKind.STARTED and reply.run is not None:
            self._follow(reply.run, card, connection.sendall)

    def _reply(self, actor: Actor, ask: Ask) -> Reply:
        try:
            command = parse_words(ask.words)
        except Misread as problem:
            return misread(str(problem))
        request = Request(actor=actor, door=Door.CLI, command=command, key=ask.key)
        return self._desk.submit(request)

    def _actor(self, connection: socket.socket) -> Actor:
        """The person behind the peer's user; raises Stranger."""
        size = struct.calcsize("3i")
        packed = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
        pid, uid, _ = struct.unpack("3i", packed)
        names = names_of(Peer(pid=pid, uid=uid))
        for name in names:
            try:
                return self._identities.at_door(Identity(door="os", subject=name))
            except Stranger:
                continue
        raise Stranger(
            f"OS user {' / '.join(names)} is nobody in the configuration; an admin adds it under "
            "`people: …: os_users`"
        )

    def _follow(self, run: RunId, shown: Card | None, send: Callable[[bytes], None]) -> None:
        """Send each new card until the run rests (final, or waiting for a person)."""
        while not self._stopping.wait(LOOK):
            card = self._answers.card(run)
            if card is None:
                return
            if shown is None or card.revision != shown.revision:
                send(encode_card(card))
                shown = card
            if not card.state.acts:
                return


def _read_line(connection: socket.socket) -> bytes:
    """One line, however many pieces it comes in; at most LONGEST_REQUEST bytes."""
    line = bytearray()
    while not line.endswith(b"\n"):
        piece = connection.recv(4096)
        if not piece:
            break
        line += piece
        if len(line) > LONGEST_REQUEST:
            raise OSError("the request is too long")
    return bytes(line)
