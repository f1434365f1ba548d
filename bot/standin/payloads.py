"""The payloads that Slack sends for what people do, as plain JSON.

Pure; called by `interactions`, which puts them into envelopes.
"""

from bot.standin.deliveries import Interaction
from bot.standin.records import APP_ID, BOT_USER, HOME_TEAM, Conversation, Payload, User


def where(user: User, channel: Conversation) -> Payload:
    """The part of a command that says who typed it where."""
    name = channel.name
    if channel.is_private and not channel.is_im:
        name = "privategroup"
    return {
        "team_id": user.team_id,
        "team_domain": "standin",
        "channel_id": channel.id,
        "channel_name": name,
        "user_id": user.id,
        "user_name": user.name,
    }


def by(user: User) -> Payload:
    """The part of every interactive payload that says who did it."""
    return {
        "user": {
            "id": user.id,
            "username": user.name,
            "name": user.name,
            "team_id": user.team_id,
        },
        "team": {"id": HOME_TEAM, "domain": "standin"},
        "enterprise": None,
        "is_enterprise_install": False,
        "api_app_id": APP_ID,
        "token": "standin",
    }


def actions(act: Interaction, user: User, control: Payload) -> Payload:
    """A press on a control, without the place where it stands."""
    pressed = {k: v for k, v in control.items() if k not in {"confirm", "options"}}
    return by(user) | {
        "type": "block_actions",
        "trigger_id": act.trigger_id,
        "state": {"values": {}},
        "actions": [pressed | {"action_ts": act.began}],
    }


def event_callback(
    event: Payload, event_id: str, user: User, act: Interaction, *, is_shared: bool
) -> Payload:
    """An event as Slack wraps it; `app_rate_limited` comes without the wrapping."""
    if event["type"] == "app_rate_limited":
        return {**event, "team_id": HOME_TEAM, "api_app_id": APP_ID, "token": "standin"}
    authorization = {
        "enterprise_id": None,
        "team_id": HOME_TEAM,
        "user_id": BOT_USER,
        "is_bot": True,
        "is_enterprise_install": False,
    }
    return {
        "token": "standin",
        "type": "event_callback",
        "event_id": event_id,
        "event_time": int(float(act.began)),
        "team_id": user.team_id,
        "api_app_id": APP_ID,
        "event": event,
        "authorizations": [authorization],
        "is_ext_shared_channel": is_shared,
    }
