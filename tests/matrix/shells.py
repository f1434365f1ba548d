"""Shells of other OS users: each is a process of that user which asks at the bot's socket.

They are forked before anything else has threads. The kernel tells the bot who they are, so nothing
in a test can claim to be somebody.
"""

import contextlib
import io
import json
import os
import socket
import sqlite3
from pathlib import Path
from typing import Any

from actions.catalogue import open_pager
from bot.desk import Request
from bot.local_client import BotAway, talk
from bot.local_wire import Ask
from bot.phrases import parse
from bot.replies import ReplyKind
from bot.serve import ground
from bot.slack.mention import SlackMentions
from bot.standalone import run_standalone
from bot.wiring import Bot, open_bot
from config.actors import Door
from config.ids import RunId
from config.load import load
from tests.matrix.people import BOSS
from tests.patience import until


class Shell:
    """One user at one terminal."""

    def __init__(self, uid: int) -> None:
        """Fork; the child never comes back."""
        here, there = socket.socketpair()
        self._pid = os.fork()
        if self._pid == 0:
            here.close()
            try:
                _become(uid)
                _serve(there)
            finally:
                os._exit(0)
        there.close()
        self._line = here.makefile("rwb")
        here.close()

    def ask(self, path: Path, words: list[str]) -> dict[str, Any]:
        """One command at the bot's socket; the reply."""
        return self._call({"path": str(path), "words": words})

    def alone(self, config: Path, words: list[str]) -> dict[str, Any]:
        """One command with --standalone; its exit code and what it printed."""
        return self._call({"config": str(config), "words": words})

    def prepare(self, config: Path, commands: list[str]) -> None:
        """Let BOSS say this to a bot that works on the same data folder and ends before this returns."""
        told = self._call({"config": str(config), "words": commands, "prepare": True})
        assert told["code"] == 0, told

    def records(self, config: Path, *kinds: str) -> list[dict[str, Any]]:
        """Records of these kinds that the last bot on this data folder made."""
        found: list[dict[str, Any]] = self._call(
            {"config": str(config), "words": kinds, "read": 1}
        )["records"]
        return found

    def _call(self, request: dict[str, Any]) -> dict[str, Any]:
        self._line.write(json.dumps(request).encode() + b"\n")
        self._line.flush()
        answer: dict[str, Any] = json.loads(self._line.readline())
        return answer

    def close(self) -> None:
        """Log out."""
        self._line.close()
        os.waitpid(self._pid, 0)


def _become(uid: int) -> None:
    os.environ["LOGNAME"] = f"user{uid}"
    os.setgroups([])
    os.setgid(uid)
    os.setuid(uid)


def _serve(there: socket.socket) -> None:
    with there.makefile("rwb") as line:
        there.close()
        for text in line:
            line.write(json.dumps(_carry_out(json.loads(text))).encode() + b"\n")
            line.flush()


def _carry_out(request: dict[str, Any]) -> dict[str, Any]:
    words = list(request["words"])
    if "prepare" in request:
        return prepare(Path(request["config"]), words)
    if "read" in request:
        return {"records": _records(Path(request["config"]), words)}
    if "config" in request:
        return _alone(Path(request["config"]), words)
    try:
        ask = Ask(words=tuple(words), key=os.urandom(16).hex(), follow=False)
        reply: dict[str, Any] = next(talk(Path(request["path"]), ask))["reply"]
    except BotAway as away:
        return {"kind": "away", "lines": [str(away)]}
    return reply


def _alone(config: Path, words: list[str]) -> dict[str, Any]:
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            code = run_standalone([config], tuple(words), as_json=False)
        except Exception as problem:  # noqa: BLE001  told to the test, which fails on it
            return {"code": 99, "text": f"{said.getvalue()}{problem!r}"}
    return {"code": code, "text": said.getvalue()}


def prepare(config: Path, commands: list[str]) -> dict[str, Any]:
    """What BOSS says to a bot that works on this data folder and ends before this returns."""
    settings = load([config])
    below = ground(settings)
    bot = open_bot(settings, below, open_pager(settings, below, SlackMentions().poster))
    try:
        bot.start()
        actor = bot.identities.by_name(BOSS)
        assert actor is not None
        lines: list[str] = []
        for text in commands:
            asked = Request(actor=actor, door=Door.CLI, command=parse(text))
            reply = bot.desk.submit(asked)
            lines.extend(reply.lines)
            if reply.kind is ReplyKind.STARTED and reply.run is not None:
                _rest(bot, reply.run)
        return {"code": 0, "text": "\n".join(lines)}
    finally:
        bot.close()


def _rest(bot: Bot, run: RunId) -> None:
    def rests() -> bool:
        card = bot.answers.card(run)
        return card is not None and not card.state.acts

    until(rests, lambda: f"{run} does not come to rest")


def _records(config: Path, kinds: list[str]) -> list[dict[str, Any]]:
    file = load([config]).bot.data_folder / "nodewarden.db"
    with contextlib.closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as reader:
        rows = reader.execute("SELECT record FROM ledger ORDER BY seq").fetchall()
    events = [json.loads(row[0])["event"] for row in rows]
    start = max(place for place, event in enumerate(events) if event["kind"] == "bot.started")
    return [event for event in events[start:] if event["kind"] in kinds]
