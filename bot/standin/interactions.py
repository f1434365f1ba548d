"""What people do in Slack, as envelopes for the bot, and what an acknowledgement brings about.

The vocabulary of the tests and the web page call it; Socket Mode carries what it makes and hands
back what the bot acknowledged.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from bot.standin import block_rules, payloads
from bot.standin.chat_methods import ChatMethods
from bot.standin.deliveries import Delivery, Interaction, Kind
from bot.standin.records import (
    APP_ID,
    BOT_USER,
    Content,
    Conversation,
    Payload,
    SlackError,
    StoredMessage,
    StoredView,
    User,
)
from bot.standin.slash_text import Names, as_sent
from bot.standin.tickets import ReplyPlace, Tickets
from bot.standin.view_methods import ViewMethods
from bot.standin.world import World

TROUBLE = "We had some trouble connecting. Try again?"
KEPT_DELIVERIES = 20_000
EVENTS = frozenset(
    "app_mention app_home_opened message.im user_change team_join subteam_updated"
    " channel_shared channel_unshared"
    " subteam_members_changed app_rate_limited".split()
)
"""What the app subscribes to; channel messages are left out as the app's manifest does."""


@dataclass(slots=True, kw_only=True)
class Interactions:
    """People's doings in one workspace; `send` hands an envelope to Socket Mode."""

    world: World
    tickets: Tickets
    chat: ChatMethods
    views: ViewMethods
    send: Callable[[Delivery], None]
    base_url: Callable[[], str]
    should_escape: bool = True
    subscriptions: frozenset[str] = EVENTS
    deliveries: dict[str, Delivery] = field(default_factory=dict)
    missed: int = 0
    """Envelopes that were not acknowledged within three seconds."""

    def command(self, user: User, channel: Conversation, text: str) -> Interaction:
        """A slash command; Slack refuses one in an archived channel."""
        verb, _, rest = text.partition(" ")
        with self.world.changing():
            channel = self._enter(user, channel)
            act = self._act(user, channel.id)
            place = ReplyPlace(channel=channel.id, user=user.id, interaction=act.id)
            payload = payloads.where(user, channel) | {
                "token": "standin",
                "command": verb,
                "text": self.sent_text(rest),
                "api_app_id": APP_ID,
                "is_enterprise_install": "false",
                "response_url": self._response_url(place),
                "trigger_id": act.trigger_id,
            }
            self._deliver(act, Kind.COMMAND, payload, accepts=True)
        return act

    def click(self, user: User, message: StoredMessage, control: Payload) -> Interaction:
        """A press on a control of a message, maybe one that a newer version no longer has."""
        with self.world.changing():
            channel = self._enter(user, self.world.channels[message.channel])
            act = self._act(user, channel.id)
            place = ReplyPlace(
                channel=channel.id, user=user.id, interaction=act.id, message_ts=message.ts
            )
            ephemeral = message.visible_to is not None
            payload = payloads.actions(act, user, control) | {
                "container": {
                    "type": "message",
                    "message_ts": message.ts,
                    "channel_id": channel.id,
                    "is_ephemeral": ephemeral,
                },
                "channel": {"id": channel.id, "name": channel.name},
                "response_url": self._response_url(place),
            }
            if not ephemeral:
                payload["message"] = self.world.message_payload(message)
            self._deliver(act, Kind.INTERACTIVE, payload)
        return act

    def click_view(self, user: User, view: StoredView, control: Payload) -> Interaction:
        """A press on a control of a modal or a home tab."""
        with self.world.changing():
            act = self._act(user, None)
            payload = payloads.actions(act, user, control) | {
                "container": {"type": "view", "view_id": view.id},
                "view": view.as_payload(),
            }
            self._deliver(act, Kind.INTERACTIVE, payload)
        return act

    def submit(self, user: User, view: StoredView, values: Payload) -> Interaction:
        """A modal sent off, `values` being block id -> action id -> value object."""
        with self.world.changing():
            view.values = values
            act = self._act(user, None)
            payload = payloads.by(user) | {
                "type": "view_submission",
                "trigger_id": act.trigger_id,
                "response_urls": [],
                "view": view.as_payload(),
            }
            self._deliver(act, Kind.INTERACTIVE, payload, accepts=True)
        return act

    def dismiss(self, user: User, view: StoredView) -> Interaction | None:
        """A modal closed by its user; the bot hears of it only if the view asked for that."""
        with self.world.changing():
            self.views.close(view)
            if not view.body.get("notify_on_close"):
                return None
            act = self._act(user, None)
            payload = payloads.by(user) | {
                "type": "view_closed",
                "is_cleared": False,
                "view": view.as_payload(),
            }
            self._deliver(act, Kind.INTERACTIVE, payload)
        return act

    def suggest(self, user: User, view: StoredView, control: Payload) -> Interaction:
        """Letters typed into an external select; `control` names it and holds the letters."""
        with self.world.changing():
            act = self._act(user, None)
            payload = payloads.by(user) | {
                "type": "block_suggestion",
                "block_id": control["block_id"],
                "action_id": control["action_id"],
                "value": control["value"],
                "container": {"type": "view", "view_id": view.id},
                "view": view.as_payload(),
            }
            self._deliver(act, Kind.INTERACTIVE, payload, accepts=True)
        return act

    def say(
        self, user: User, channel: Conversation, text: str, thread_ts: str | None = None
    ) -> StoredMessage:
        """A message in a channel or to the bot, with the events that follow from it."""
        with self.world.changing():
            channel = self._enter(user, channel)
            message = self.world.post(
                StoredMessage(
                    channel=channel.id,
                    ts=self.world.new_ts(),
                    user=user.id,
                    revisions=[Content(text=self.sent_text(text))],
                    thread_ts=thread_ts,
                )
            )
            self._message_events(user, channel, message)
        return message

    def _message_events(self, user: User, channel: Conversation, message: StoredMessage) -> None:
        kind = "im" if channel.is_im else "group" if channel.is_private else "channel"
        event = self.world.message_payload(message) | {
            "channel": channel.id,
            "event_ts": message.ts,
        }
        if f"message.{kind}" in self.subscriptions or f"message.{kind}s" in self.subscriptions:
            self._event(user, channel, event | {"channel_type": kind})
        mentioned = f"<@{BOT_USER}" in message.content.text
        if mentioned and not channel.is_im and "app_mention" in self.subscriptions:
            self._event(user, channel, event | {"type": "app_mention"})

    def event(self, user: User, event: Payload) -> Interaction | None:
        """Any other event, if the app subscribes to it."""
        if event["type"] not in self.subscriptions:
            return None
        with self.world.changing():
            return self._event(user, None, event)

    def _event(self, user: User, channel: Conversation | None, event: Payload) -> Interaction:
        act = self._act(user, None if channel is None else channel.id)
        shared = channel is not None and channel.is_ext_shared
        event_id = self.world.new_id("Ev")
        payload = payloads.event_callback(event, event_id, user, act, is_shared=shared)
        self._deliver(act, Kind.EVENT, payload)
        return act

    def sent_text(self, text: str) -> str:
        """What Slack makes of typed text."""
        if not self.should_escape:
            return text.strip()
        names = Names(
            users={user.name: user.id for user in self.world.users.values()},
            groups={group.handle: group.id for group in self.world.groups.values()},
            channels={c.name: c.id for c in self.world.channels.values() if not c.is_im},
        )
        return as_sent(text, names)

    def redelivered(self, delivery: Delivery) -> Delivery:
        """The same event once more, in a new envelope."""
        again = replace(
            delivery,
            envelope_id=self.world.new_id("env-"),
            attempt=delivery.attempt + 1,
            copies=1,
            made=self.world.seconds(),
            sent_over=[],
            acks=0,
            timed_out=False,
        )
        self._keep(again)
        return again

    def acknowledged(self, envelope_id: str, payload: Payload) -> None:
        """The bot has acknowledged an envelope; only the first time has consequences."""
        delivery = self.deliveries.get(envelope_id)
        if delivery is None:
            return
        with self.world.changing():
            delivery.acks += 1
            act = delivery.interaction
            if act.settled:
                return
            act.ack = payload
            act.acked_after = self.world.seconds() - delivery.made
            try:
                self._consequences(delivery, payload)
            except SlackError as refusal:
                act.error = refusal.error

    def gave_up(self, delivery: Delivery) -> None:
        """Three seconds are over: the person is told that the app did not respond."""
        with self.world.changing():
            delivery.timed_out = delivery.acks == 0
            self.missed += delivery.timed_out
            act = delivery.interaction
            if not act.settled and delivery.kind is not Kind.EVENT:
                act.error = "operation_timeout" if delivery.sent_over else "dispatch_failed"

    def _consequences(self, delivery: Delivery, payload: Payload) -> None:
        act = delivery.interaction
        kind = delivery.payload.get("type")
        if delivery.kind is Kind.COMMAND and payload and act.channel is not None:
            place = ReplyPlace(channel=act.channel, user=act.user, interaction=act.id)
            self.chat.answer(place, payload)
        elif kind == "view_submission":
            self._submitted(act, self.world.views[delivery.payload["view"]["id"]], payload)
        elif kind == "block_suggestion":
            self._check_options(payload)

    def _submitted(self, act: Interaction, view: StoredView, payload: Payload) -> None:
        action = payload.get("response_action")
        if action == "errors":
            inputs = {b["block_id"] for b in view.body["blocks"] if b["type"] == "input"}
            if not payload.get("errors") or not set(payload["errors"]) <= inputs:
                raise SlackError(TROUBLE)
        elif action == "update":
            self.views.check(payload["view"])
            self.views.replace(view, payload["view"])
        elif action == "push":
            self.views.check(payload["view"])
            self.views.push_for(act.user, payload["view"])
        elif action == "clear":
            self.views.close_all(act.user)
        else:
            self.views.close(view)

    def _check_options(self, payload: Payload) -> None:
        groups = payload.get("option_groups", [])
        options = [*payload.get("options", []), *(o for g in groups for o in g["options"])]
        wrong = [c for o in options for c in block_rules.option_complaints(o, "/options")]
        if len(options) > block_rules.OPTIONS or wrong:
            raise SlackError(TROUBLE)

    def _enter(self, user: User, channel: Conversation) -> Conversation:
        """The channel with `user` in it: people join public ones before they write."""
        if channel.is_archived:
            raise SlackError("is_archived")
        if user.deleted:
            raise SlackError("account_inactive")
        if user.id not in channel.members:
            if channel.is_private or channel.is_im:
                raise SlackError("not_in_channel")
            self.world.join(channel.id, user.id)
        return self.world.channels[channel.id]

    def _act(self, user: User, channel: str | None) -> Interaction:
        return Interaction(
            id=self.world.new_id("act-"),
            user=user.id,
            channel=channel,
            began=self.world.new_ts(),
            trigger_id=self.tickets.new_trigger(user.id),
        )

    def _deliver(
        self, act: Interaction, kind: Kind, payload: Payload, *, accepts: bool = False
    ) -> None:
        delivery = Delivery(
            envelope_id=self.world.new_id("env-"),
            kind=kind,
            payload=payload,
            interaction=act,
            accepts_payload=accepts,
            made=self.world.seconds(),
        )
        self._keep(delivery)
        self.send(delivery)

    def _keep(self, delivery: Delivery) -> None:
        """Remember an envelope, and forget the oldest: a sandbox may run for weeks."""
        self.deliveries[delivery.envelope_id] = delivery
        if len(self.deliveries) > KEPT_DELIVERIES:
            del self.deliveries[next(iter(self.deliveries))]

    def _response_url(self, place: ReplyPlace) -> str:
        token = self.tickets.new_response_url(place)
        return f"{self.base_url()}/response/{token}"
