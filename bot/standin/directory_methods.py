"""The methods that tell about people, groups, channels, the team and the bot.

Called by the Web API under the world's lock.
"""

from dataclasses import dataclass

from bot.standin.arguments import Arguments
from bot.standin.records import (
    APP_ID,
    BOT_ID,
    BOT_USER,
    HOME_TEAM,
    Conversation,
    Payload,
    SlackError,
    User,
)
from bot.standin.world import World


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectoryMethods:
    """Look-ups in one workspace."""

    world: World

    def auth_test(self, _args: Arguments) -> Payload:
        """`auth.test`."""
        return {
            "url": "https://standin.slack.invalid/",
            "team": "standin",
            "user": self.world.users[BOT_USER].name,
            "team_id": HOME_TEAM,
            "user_id": BOT_USER,
            "bot_id": BOT_ID,
            "is_enterprise_install": False,
        }

    def team_info(self, _args: Arguments) -> Payload:
        """`team.info`."""
        return {"team": {"id": HOME_TEAM, "name": "standin", "domain": "standin"}}

    def bots_info(self, args: Arguments) -> Payload:
        """`bots.info`."""
        if args.text("bot", BOT_ID) != BOT_ID:
            raise SlackError("bot_not_found")
        return {
            "bot": {
                "id": BOT_ID,
                "deleted": False,
                "name": self.world.users[BOT_USER].name,
                "app_id": APP_ID,
                "user_id": BOT_USER,
            }
        }

    def user_info(self, args: Arguments) -> Payload:
        """`users.info`."""
        return {"user": self._user(args.text("user")).as_payload()}

    def user_list(self, _args: Arguments) -> Payload:
        """`users.list`, in one page."""
        members = [user.as_payload() for user in self.world.users.values()]
        return {"members": members, "response_metadata": {"next_cursor": ""}}

    def user_by_email(self, args: Arguments) -> Payload:
        """`users.lookupByEmail`: deactivated accounts are not found."""
        email = args.text("email").lower()
        for user in self.world.users.values():
            if user.email == email and not user.deleted:
                return {"user": user.as_payload()}
        raise SlackError("users_not_found")

    def group_list(self, args: Arguments) -> Payload:
        """`usergroups.list`: disabled ones only when asked for."""
        disabled = args.flag("include_disabled")
        groups = [g for g in self.world.groups.values() if disabled or not g.disabled]
        users = args.flag("include_users")
        return {
            "usergroups": [
                g.as_payload() | ({"users": list(g.members)} if users else {}) for g in groups
            ]
        }

    def group_members(self, args: Arguments) -> Payload:
        """`usergroups.users.list`: a disabled group looks empty."""
        group = self.world.groups.get(args.text("usergroup"))
        if group is None:
            raise SlackError("no_such_subteam")
        hidden = group.disabled and not args.flag("include_disabled")
        return {"users": [] if hidden else list(group.members)}

    def channel_info(self, args: Arguments) -> Payload:
        """`conversations.info`."""
        return {"channel": self._channel(args).as_payload()}

    def channel_list(self, args: Arguments) -> Payload:
        """`conversations.list`: what the bot can see, in one page."""
        wanted = args.text("types", "public_channel").split(",")
        seen = [c for c in self.world.channels.values() if self._kind(c) in wanted]
        visible = [c for c in seen if not c.is_private or BOT_USER in c.members]
        if args.flag("exclude_archived"):
            visible = [c for c in visible if not c.is_archived]
        return {
            "channels": [c.as_payload() for c in visible],
            "response_metadata": {"next_cursor": ""},
        }

    def channel_members(self, args: Arguments) -> Payload:
        """`conversations.members`, in one page."""
        members = sorted(self._channel(args).members)
        return {"members": members, "response_metadata": {"next_cursor": ""}}

    def join(self, args: Arguments) -> Payload:
        """`conversations.join`: public channels only."""
        channel = self._channel(args)
        if channel.is_archived:
            raise SlackError("is_archived")
        if channel.is_private or channel.is_im:
            raise SlackError("method_not_supported_for_channel_type")
        self.world.join(channel.id, BOT_USER)
        return {"channel": self.world.channels[channel.id].as_payload()}

    def open_direct(self, args: Arguments) -> Payload:
        """`conversations.open` with one user."""
        user = self._user(args.text("users"))
        if user.deleted:
            raise SlackError("user_disabled")
        if user.is_bot:
            raise SlackError("cannot_dm_bot")
        return {"channel": self.world.direct(user.id).as_payload()}

    def replies(self, args: Arguments) -> Payload:
        """`conversations.replies`: the parent and its thread; metadata only when asked for."""
        channel = self._channel(args)
        parent = self.world.messages.get((channel.id, args.text("ts")))
        if parent is None or parent.deleted:
            raise SlackError("thread_not_found")
        thread = [m for m in self.world.in_channel(channel.id) if parent.ts in (m.ts, m.thread_ts)]
        return self._page([self.world.message_payload(m) for m in thread], args)

    def history(self, args: Arguments) -> Payload:
        """`conversations.history`: newest first, without thread replies."""
        channel = self._channel(args)
        shown = [
            m
            for m in self.world.in_channel(channel.id)
            if m.thread_ts in (None, m.ts) or m.broadcast
        ]
        return self._page([self.world.message_payload(m) for m in reversed(shown)], args)

    def _page(self, messages: list[Payload], args: Arguments) -> Payload:
        limit = int(args.text("limit", "100"))
        kept = messages[:limit]
        if not args.flag("include_all_metadata"):
            kept = [{k: v for k, v in m.items() if k != "metadata"} for m in kept]
        return {"messages": kept, "has_more": len(messages) > limit}

    def _user(self, user_id: str) -> User:
        user = self.world.users.get(user_id)
        if user is None:
            raise SlackError("user_not_found")
        return user

    def _channel(self, args: Arguments) -> Conversation:
        channel = self.world.channels.get(args.text("channel"))
        if channel is None or (channel.is_private and BOT_USER not in channel.members):
            raise SlackError("channel_not_found")
        return channel

    def _kind(self, channel: Conversation) -> str:
        if channel.is_im:
            return "im"
        return "private_channel" if channel.is_private else "public_channel"
