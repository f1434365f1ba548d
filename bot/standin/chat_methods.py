"""The `chat.*` and `reactions.*` methods, and answers through a response url.

Called by the Web API under the world's lock, after token, scope and rate were checked.
"""

from dataclasses import dataclass
from typing import Any

from bot.standin import block_rules
from bot.standin.arguments import Arguments
from bot.standin.records import (
    BOT_USER,
    Content,
    Conversation,
    Payload,
    SlackError,
    StoredMessage,
)
from bot.standin.tickets import ReplyPlace
from bot.standin.world import World


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatMethods:
    """Messages of one workspace; `sizes` says whether Slack's size limits hold."""

    world: World
    sizes: bool = True

    def post_message(self, args: Arguments) -> Payload:
        """`chat.postMessage`: also opens a direct message when the channel is a user."""
        channel = self.writable(args.text("channel"))
        content = self.content(args.values)
        thread_ts = self._thread(channel, args)
        message = self.world.post(
            StoredMessage(
                channel=channel.id,
                ts=self.world.new_ts(),
                user=BOT_USER,
                revisions=[content],
                thread_ts=thread_ts,
                broadcast=args.flag("reply_broadcast"),
            )
        )
        return self._posted(message)

    def post_ephemeral(self, args: Arguments) -> Payload:
        """`chat.postEphemeral`: only for somebody who is in the channel."""
        channel = self.writable(args.text("channel"))
        user = args.text("user")
        if user not in self.world.users:
            raise SlackError("user_not_found")
        if user not in channel.members:
            raise SlackError("user_not_in_channel")
        message = self.ephemeral(channel.id, user, self.content(args.values))
        message.thread_ts = args.values.get("thread_ts")
        return {"message_ts": message.ts}

    def update(self, args: Arguments) -> Payload:
        """`chat.update`: keeps what the call leaves out."""
        channel = self._readable(args.text("channel"))
        message = self._stored(channel, args.text("ts"))
        if message.user != BOT_USER:
            raise SlackError("cant_update_message")
        if self.sizes and len(args.text("text", "")) > block_rules.UPDATE_TEXT:
            raise SlackError("msg_too_long")
        old = message.content
        kept = {"text": old.text, "blocks": list(old.blocks), "metadata": old.metadata}
        given = {k: v for k, v in args.values.items() if k in kept and v is not None}
        message.revisions.append(self.content(kept | given))
        return self._posted(message) | {"text": message.content.text}

    def delete(self, args: Arguments) -> Payload:
        """`chat.delete`: the bot's own messages."""
        message = self._stored(self._readable(args.text("channel")), args.text("ts"))
        if message.user != BOT_USER:
            raise SlackError("cant_delete_message")
        message.deleted = True
        return {"channel": message.channel, "ts": message.ts}

    def permalink(self, args: Arguments) -> Payload:
        """`chat.getPermalink`."""
        channel = self._readable(args.text("channel"))
        message = self._stored(channel, args.text("message_ts"))
        place = f"{channel.id}/p{message.ts.replace('.', '')}"
        return {
            "channel": channel.id,
            "permalink": f"https://standin.slack.invalid/archives/{place}",
        }

    def add_reaction(self, args: Arguments) -> Payload:
        """`reactions.add`."""
        message = self._stored(self._readable(args.text("channel")), args.text("timestamp"))
        users = message.reactions.setdefault(args.text("name"), [])
        if BOT_USER in users:
            raise SlackError("already_reacted")
        users.append(BOT_USER)
        return {}

    def remove_reaction(self, args: Arguments) -> Payload:
        """`reactions.remove`."""
        message = self._stored(self._readable(args.text("channel")), args.text("timestamp"))
        users = message.reactions.get(args.text("name"), [])
        if BOT_USER not in users:
            raise SlackError("no_reaction")
        users.remove(BOT_USER)
        return {}

    def answer(self, place: ReplyPlace, body: Payload) -> None:
        """An answer through a response url, or in the payload of an acknowledgement."""
        target = self._replaced(place, body)
        if target is not None and body.get("delete_original"):
            target.deleted = True
            return
        content = self.content(body)
        if target is not None:
            target.revisions.append(content)
        elif body.get("response_type") == "in_channel":
            message = StoredMessage(
                channel=place.channel,
                ts=self.world.new_ts(),
                user=BOT_USER,
                revisions=[content],
                thread_ts=body.get("thread_ts"),
                answers=place.interaction,
            )
            self.world.post(message)
        else:
            message = self.ephemeral(place.channel, place.user, content)
            message.answers = place.interaction

    def ephemeral(self, channel: str, user: str, content: Content) -> StoredMessage:
        """Store a message that only `user` sees."""
        return self.world.post(
            StoredMessage(
                channel=channel,
                ts=self.world.new_ts(),
                user=BOT_USER,
                revisions=[content],
                visible_to=user,
            )
        )

    def content(self, values: Payload) -> Content:
        """What a call wants shown, checked against Slack's sizes."""
        text = values.get("text") or ""
        blocks: Any = values.get("blocks")
        if isinstance(blocks, str):
            blocks = Arguments(values).json("blocks")
        if not blocks and not text and not values.get("attachments"):
            raise SlackError("no_text")
        if blocks and self.sizes:
            block_rules.check_message(blocks)
        metadata = Arguments(values).json("metadata") if values.get("metadata") else None
        shown = str(text)[: block_rules.POST_TEXT] if self.sizes else str(text)
        stored = self.world.with_block_ids(blocks or [])
        return Content(text=shown, blocks=stored, metadata=metadata)

    def writable(self, name: str) -> Conversation:
        """The channel that the bot may post to, or Slack's refusal."""
        if name in self.world.users:
            return self._direct(name)
        channel = self._readable(name)
        if channel.is_archived:
            raise SlackError("is_archived")
        if BOT_USER not in channel.members:
            raise SlackError("not_in_channel")
        return channel

    def _direct(self, name: str) -> Conversation:
        user = self.world.users[name]
        if user.deleted:
            raise SlackError("user_disabled")
        if user.is_bot:
            raise SlackError("cannot_dm_bot")
        return self.world.direct(name)

    def _readable(self, name: str) -> Conversation:
        channel = self.world.channels.get(name)
        if channel is None:
            channel = None if not name.startswith("#") else self.world.channel_named(name)
        if channel is None or (channel.is_private and BOT_USER not in channel.members):
            raise SlackError("channel_not_found")
        return channel

    def _stored(self, channel: Conversation, ts: str) -> StoredMessage:
        message = self.world.messages.get((channel.id, ts))
        if message is None or message.deleted or message.visible_to is not None:
            raise SlackError("message_not_found")
        return message

    def _thread(self, channel: Conversation, args: Arguments) -> str | None:
        if not args.has("thread_ts"):
            return None
        parent = self.world.messages.get((channel.id, args.text("thread_ts")))
        if parent is None or parent.deleted:
            raise SlackError("thread_not_found")
        return parent.ts

    def _replaced(self, place: ReplyPlace, body: Payload) -> StoredMessage | None:
        """The message that an answer replaces or deletes, if it asks for that."""
        wants = body.get("replace_original") or body.get("delete_original")
        if not wants or place.message_ts is None:
            return None
        message = self.world.messages.get((place.channel, place.message_ts))
        return None if message is None or message.deleted else message

    def _posted(self, message: StoredMessage) -> Payload:
        return {
            "channel": message.channel,
            "ts": message.ts,
            "message": self.world.message_payload(message),
        }
