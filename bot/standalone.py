"""`--standalone`: one command without a server, for the night when everything is down (design 8).

It takes the lock of the ledger, does the work in this process, and parks what it cannot finish: the
server goes on with it at its next start. It counts as break-glass: recorded, paged, and no approval
of one's own request.
"""

import json
import os
import threading
from pathlib import Path

import click

from actions.catalogue import open_pager
from audit_log.errors import StoreError
from audit_log.records import Event, EventKind
from bot.cluster_checks import ClusterRefused
from bot.commands import Verb
from bot.desk import Request
from bot.identities import UNKNOWN, Stranger
from bot.local_wire import card_json
from bot.os_users import Peer, names_of
from bot.phrases import Misread, parse_words
from bot.replies import ReplyKind, refused
from bot.serve import ground
from bot.slack.mention import SlackMentions
from bot.terminal import plain
from bot.wiring import Bot, open_bot
from config.actors import Actor, Door, Identity
from config.ids import RunId
from config.json_values import Json
from config.load import ConfigErrors, load
from config.permissions import Permission
from config.secret_store import SecretError
from runbooks.machine import RunState
from runbooks.problems import Problems

LONGEST = 900.0
"""Seconds after which a run is parked for the server."""
LOOK = 0.1
ADMIN = "admin"
"""The shipped role that may work here: a site gives it to its people, it has no other name."""


def run_standalone(paths: list[Path], words: tuple[str, ...], *, as_json: bool) -> int:
    """Do one command here; its exit code."""
    if not paths:
        click.echo("--standalone needs --config: there is no server that knows it", err=True)
        return 2
    try:
        settings = load(paths)
        below = ground(settings)
        bot = open_bot(settings, below, open_pager(settings, below, SlackMentions().poster))
    except (
        ConfigErrors,
        SecretError,
        StoreError,
        ClusterRefused,
        Problems,
        PermissionError,
    ) as problem:
        for text in f"cannot work standalone: {problem}".splitlines():
            click.echo(plain(text), err=True)
        return 1
    try:
        return _carry_out(bot, words, as_json=as_json)
    finally:
        bot.close()


def _carry_out(bot: Bot, words: tuple[str, ...], *, as_json: bool) -> int:
    try:
        actor = _actor(bot)
        words = tuple(bot.desk.heard(word) for word in words)
        command = parse_words(words)
    except Stranger as problem:
        reply = bot.desk.turn_away(Door.STANDALONE, str(problem), UNKNOWN)
        click.echo(plain(reply.lines[0]), err=True)
        return reply.kind.exit_code
    except Misread as problem:
        click.echo(plain(str(problem)), err=True)
        return 2
    if ADMIN not in actor.roles:
        click.echo(_denied(bot, actor), err=True)
        return ReplyKind.DENIED.exit_code
    _tell(bot, actor, words)
    bot.start()
    try:
        reply = bot.desk.submit(Request(actor=actor, door=Door.STANDALONE, command=command))
    except StoreError as problem:
        reply = refused(f"it cannot be recorded, so nothing was done: {problem}")
    for text in reply.lines:
        click.echo(plain(text), err=reply.kind.exit_code != 0)
    goes_on = reply.kind is ReplyKind.STARTED or command.verb in {Verb.APPROVE, Verb.RESUME}
    if reply.kind.exit_code != 0 or reply.run is None or not goes_on:
        return reply.kind.exit_code
    return _wait(bot, reply.run, as_json=as_json)


def _actor(bot: Bot) -> Actor:
    names = names_of(Peer(pid=os.getpid(), uid=os.getuid()))
    for name in names:
        try:
            return bot.identities.at_door(Identity(door="os", subject=name))
        except Stranger:
            continue
    raise Stranger(f"OS user {' / '.join(names)} is nobody in the configuration")


def _denied(bot: Bot, actor: Actor) -> str:
    """Record that this person may not work here, whatever their roles allow at the other doors."""
    why = (
        f"{Permission.BREAK_GLASS} by --standalone is not allowed: it is for admins, whose account "
        f"owns the data folder; role {ADMIN} would be enough"
    )
    data: dict[str, Json] = {
        "because": why,
        "count": 1,
        "door": Door.STANDALONE.value,
        "enough": [ADMIN],
        "nodes": "",
        "permission": Permission.BREAK_GLASS.value,
    }
    event = Event(kind=EventKind.REQUEST_DENIED, actor=actor.id, data=data)
    bot.parts.ledger.commit(lambda transaction: transaction.append(event))
    return why


def _tell(bot: Bot, actor: Actor, words: tuple[str, ...]) -> None:
    """Break-glass: recorded before anything is done, and paged."""
    why = f"{actor.id} works standalone: {' '.join(words)}"[:200]
    key = f"nodewarden/{bot.parts.ledger.instance}/standalone"
    details = json.dumps({"actor": actor.id, "words": " ".join(words)[:500]})
    data = {"key": key, "summary": why, "details": details}
    event = Event(kind=EventKind.PAGE_INTENDED, actor=actor.id, data=data)
    bot.parts.ledger.commit(lambda transaction: transaction.append(event))


def _moves(bot: Bot, run: RunId) -> bool:
    """Whether it acts, or has its yes and acts in a moment."""
    now = bot.answers.run(run)
    return now.state.acts or (now.state is RunState.AWAITING_APPROVAL and now.approved)


def _wait(bot: Bot, run: RunId, *, as_json: bool) -> int:
    """Until the run rests; it is parked when that takes too long."""
    waited = threading.Event()
    for _ in range(int(LONGEST / LOOK)):
        if not _moves(bot, run):
            break
        waited.wait(LOOK)
    card = bot.answers.card(run)
    if card is None:
        return 1
    if as_json:
        click.echo(json.dumps(card_json(card)))
    else:
        for text in (card.title, *card.lines, *card.steps):
            click.echo(plain(text))
    if not card.state.final:
        click.echo(f"{card.run} is parked; the server goes on with it at its next start")
    return 0 if card.state is RunState.SUCCEEDED else 1
