"""The Socket Mode side: connections, hello, envelopes, acknowledgements, pings and their faults.

Everything here runs on the stand-in's event loop. An envelope goes to one of the connections;
while there is none it waits as long as the person does.
"""

import asyncio
import json
import socket
import struct
from collections import deque
from dataclasses import dataclass, field

from aiohttp import WSMsgType, web

from bot.standin.deliveries import ACK_SECONDS, RETRY_AFTER, Delivery, Kind
from bot.standin.faults import Faults
from bot.standin.interactions import Interactions
from bot.standin.records import (
    APP_ID,
    Payload,
)
from bot.standin.tickets import Tickets

MOST_CONNECTIONS = 10
"""Slack's limit per app; one more is told `too_many_websockets`."""


@dataclass(slots=True, kw_only=True, eq=False)
class Connection:
    """One open socket of the bot."""

    number: int
    socket: web.WebSocketResponse
    transport: asyncio.Transport
    leaving: bool = False
    """It was told to refresh: nothing more is sent over it, acknowledgements still count."""
    deaf: bool = False
    pongs: bool = True


@dataclass(slots=True, kw_only=True)
class SocketMode:
    """All sockets of the app."""

    interactions: Interactions
    tickets: Tickets
    faults: Faults
    retry_after: tuple[float, ...] = RETRY_AFTER
    ack_seconds: float = ACK_SECONDS
    connections: list[Connection] = field(default_factory=list)
    opened: int = 0
    deafness: tuple[bool, bool] = (False, True)
    """Whether new sockets are deaf, and whether a deaf one still answers pings."""
    _waiting: deque[Delivery] = field(default_factory=deque)
    _turn: int = 0

    async def link(self, request: web.Request) -> web.StreamResponse:
        """The address that `apps.connections.open` gave out."""
        with self.interactions.world.condition:
            if not self.tickets.use_link(request.query.get("ticket", "")):
                return web.Response(status=403, text="this address was used or never given out")
        connection = await self._accept(request)
        try:
            if len(self.connections) >= MOST_CONNECTIONS:
                await self._tell_to_leave(connection, "too_many_websockets")
            await self._hello(connection)
            await self._listen(connection)
        finally:
            self._forget(connection)
        return connection.socket

    async def _accept(self, request: web.Request) -> Connection:
        response = web.WebSocketResponse(autoping=False, compress=False, max_msg_size=2**24)
        await response.prepare(request)
        transport = request.transport
        if not isinstance(transport, asyncio.Transport):
            raise ConnectionResetError("the client went away while it opened a socket")
        with self.interactions.world.changing():
            self.opened += 1
            deaf, pongs = self.deafness
            return Connection(
                number=self.opened, socket=response, transport=transport, deaf=deaf, pongs=pongs
            )

    async def _hello(self, connection: Connection) -> None:
        """Greet, then let the connection take its share, and all that waited for one."""
        if not connection.deaf:
            await self._frame(connection, _greeting(len(self.connections) + 1))
        with self.interactions.world.changing():
            self.connections.append(connection)
        while self._waiting and not connection.leaving:
            await self._transmit(connection, self._waiting.popleft())

    async def _listen(self, connection: Connection) -> None:
        async for message in connection.socket:
            if message.type is WSMsgType.PING and (connection.pongs or not connection.deaf):
                await connection.socket.pong(message.data)
            elif message.type is WSMsgType.TEXT and not connection.deaf:
                self._received(message.data)

    def _received(self, text: str) -> None:
        frame = json.loads(text)
        if "envelope_id" in frame:
            payload = frame.get("payload")
            self.interactions.acknowledged(
                frame["envelope_id"], payload if isinstance(payload, dict) else {}
            )

    def _forget(self, connection: Connection) -> None:
        with self.interactions.world.changing():
            if connection in self.connections:
                self.connections.remove(connection)

    async def deliver(self, delivery: Delivery) -> None:
        """Send an envelope over one connection, or keep it until there is one."""
        loop = asyncio.get_running_loop()
        loop.call_later(self.ack_seconds, self._time_is_up, delivery)
        usable = [c for c in self.connections if not c.leaving]
        if not usable:
            self._waiting.append(delivery)
            return
        self._turn += 1
        await self._transmit(usable[self._turn % len(usable)], delivery)

    async def _transmit(self, connection: Connection, delivery: Delivery) -> None:
        with self.interactions.world.changing():
            delivery.copies = self.faults.copies()
            delivery.sent_over.append(connection.number)
        for _ in range(delivery.copies):
            if not connection.deaf:
                await self._frame(connection, delivery.envelope())

    async def _frame(self, connection: Connection, frame: Payload) -> None:
        try:
            await connection.socket.send_str(json.dumps(frame))
        except ConnectionError:
            # What was sent into a dying socket is lost, as on a real network.
            connection.leaving = True

    def _time_is_up(self, delivery: Delivery) -> None:
        if delivery in self._waiting:
            self._waiting.remove(delivery)
        self.interactions.gave_up(delivery)
        if delivery.kind is not Kind.EVENT or not delivery.timed_out:
            return
        if delivery.attempt < len(self.retry_after):
            loop = asyncio.get_running_loop()
            loop.call_later(self.retry_after[delivery.attempt], self._send_again, delivery)

    def _send_again(self, delivery: Delivery) -> None:
        with self.interactions.world.changing():
            again = self.interactions.redelivered(delivery)
        task = asyncio.get_running_loop().create_task(self.deliver(again))
        task.add_done_callback(lambda done: done.exception())

    async def refresh(self, reason: str = "refresh_requested") -> None:
        """Ask every connection to come back on a new one."""
        for connection in list(self.connections):
            await self._tell_to_leave(connection, reason)

    async def _tell_to_leave(self, connection: Connection, reason: str) -> None:
        connection.leaving = True
        frame = {"type": "disconnect", "reason": reason, "debug_info": {"host": "standin"}}
        await self._frame(connection, frame)

    async def close(self) -> None:
        """Close every connection in the orderly way."""
        closing = list(self.connections)
        for connection in closing:
            connection.leaving = True
        await asyncio.gather(*(c.socket.close() for c in closing), return_exceptions=True)

    def reset(self) -> None:
        """Break every connection as a crashed peer does: TCP reset, no close frame."""
        for connection in list(self.connections):
            connection.leaving = True
            abort(connection.transport)

    def deafen(self, *, deaf: bool, pongs: bool) -> None:
        """Let every socket, open or to come, be deaf or hear again."""
        self.deafness = (deaf, pongs)
        for connection in self.connections:
            connection.deaf = deaf
            connection.pongs = pongs


def _greeting(connections: int) -> Payload:
    return {
        "type": "hello",
        "num_connections": connections,
        "debug_info": {
            "host": "standin",
            "build_number": 1,
            "approximate_connection_time": 18060,
        },
        "connection_info": {"app_id": APP_ID},
    }


def abort(transport: asyncio.Transport) -> None:
    """End a TCP connection with a reset instead of a farewell."""
    raw = transport.get_extra_info("socket")
    if raw is not None:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()
