"""What the web page shows to one person in one channel, as plain JSON.

Called by `page` under the world's lock; it changes nothing.
"""

from bot.standin.interactions import Interactions
from bot.standin.records import (
    BOT_USER,
    Conversation,
    Payload,
    StoredMessage,
    User,
)
from bot.standin.world import World

SHOWN_MESSAGES = 200
SHOWN_ERRORS = 20


def state(place: Interactions, me: str, wanted: str) -> Payload:
    """Everything on the screen of the person `me` (a user id) who looks at `wanted`."""
    world = place.world
    person = world.users.get(me) or _first_person(world)
    channel = _channel(world, person, wanted)
    own = "" if person is None else person.id
    return {
        "revision": world.revision,
        "me": own,
        "people": [_person(user) for user in world.users.values() if not user.is_bot],
        "names": _names(world),
        "channels": [_entry(world, c) for c in world.channels.values() if not c.is_im],
        "channel": None if channel is None else channel.id,
        "messages": [] if channel is None else _messages(world, channel, own),
        "modal": _view(world, world.stacks.get(own, [])[-1:]),
        "home": _view(world, [world.homes[own]] if own in world.homes else []),
        "wrong": _wrong(place, world.stacks.get(own, [])[-1:]),
        "failed": _failed(place, own),
        "panels": [],
    }


def _first_person(world: World) -> User | None:
    return next((user for user in world.users.values() if not user.is_bot), None)


def _channel(world: World, person: User | None, wanted: str) -> Conversation | None:
    if wanted == "direct":
        return None if person is None else _direct(world, person)
    if wanted in world.channels and not world.channels[wanted].is_im:
        return world.channels[wanted]
    return next((c for c in world.channels.values() if not c.is_im), None)


def _direct(world: World, person: User) -> Conversation | None:
    members = {person.id, BOT_USER}
    return next((c for c in world.channels.values() if c.is_im and c.members == members), None)


def _person(user: User) -> Payload:
    notes = {
        "deactivated": user.deleted,
        "guest": user.is_restricted or user.is_ultra_restricted,
        "other workspace": user.is_stranger,
    }
    told = ", ".join(note for note, holds in notes.items() if holds)
    return {"id": user.id, "name": user.name, "note": told}


def _names(world: World) -> Payload:
    names = {user.id: f"@{user.name}" for user in world.users.values()}
    names |= {group.id: f"@{group.handle}" for group in world.groups.values()}
    return names | {c.id: f"#{c.name}" for c in world.channels.values()}


def _entry(world: World, channel: Conversation) -> Payload:
    return {
        "id": channel.id,
        "name": channel.name,
        "private": channel.is_private,
        "archived": channel.is_archived,
        "shared": channel.is_ext_shared,
        "bot": BOT_USER in channel.members,
        "newest": max((m.ts for m in world.in_channel(channel.id)), default=""),
    }


def _messages(world: World, channel: Conversation, me: str) -> list[Payload]:
    """The newest messages, each with its thread; ephemerals only for whom they are meant."""
    there = [
        m
        for m in world.messages.values()
        if m.channel == channel.id and not m.deleted and m.visible_to in (None, me)
    ]
    there.sort(key=lambda m: m.ts)
    tops = [m for m in there if m.thread_ts in (None, m.ts) or m.broadcast][-SHOWN_MESSAGES:]
    threads: dict[str, list[Payload]] = {}
    for message in there:
        if message.thread_ts not in (None, message.ts):
            threads.setdefault(str(message.thread_ts), []).append(_message(world, message))
    return [_message(world, m) | {"thread": threads.get(m.ts, [])} for m in tops]


def _message(world: World, message: StoredMessage) -> Payload:
    content = message.content
    files = [world.files[name] for name in message.files]
    return {
        "ts": message.ts,
        "from": world.users[message.user].name,
        "bot": message.user == BOT_USER,
        "text": content.text,
        "blocks": list(content.blocks),
        "version": len(message.revisions),
        "ephemeral": message.visible_to is not None,
        "reactions": [name for name, users in message.reactions.items() if users],
        "files": [{"name": f.title or f.name, "text": _file_text(f.content)} for f in files],
    }


def _file_text(content: bytes | None) -> str:
    return (content or b"")[:20_000].decode("utf-8", errors="backslashreplace")


def _view(world: World, names: list[str]) -> Payload | None:
    return world.views[names[0]].as_payload() if names else None


def _wrong(place: Interactions, top: list[str]) -> Payload:
    """What the bot found wrong with the values that were last submitted in the topmost modal."""
    for delivery in reversed(place.deliveries.values()):
        payload = delivery.payload
        if payload.get("type") == "view_submission" and payload["view"]["id"] in top:
            return dict((delivery.interaction.ack or {}).get("errors", {}))
    return {}


def _failed(place: Interactions, me: str) -> list[Payload]:
    """What Slack would tell this person went wrong, newest last."""
    acts = [d.interaction for d in place.deliveries.values() if d.interaction.user == me]
    failed = [{"id": act.id, "error": act.error} for act in acts if act.error is not None]
    return failed[-SHOWN_ERRORS:]
