"""The bot's configuration in the sandbox: five people, one cluster, the stand-in for Slack.

JSON is YAML, and cannot be misread for numbers or dates; the file is one that a site could write.
"""

import getpass
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bot.sandbox.playground import Playground, pools
from bot.standin.records import HOME_TEAM
from bot.standin.server import SlackStandIn

PEOPLE = {
    "ann": "oncall",
    "ben": "researcher",
    "cora": "admin",
    "dan": "oncall",
    "vic": "viewer",
}
"""Who lives in the stand-in, and the role of each."""
CHANNEL = "#ops"
ON_CALL = "oncall"
BOT_TOKEN, APP_TOKEN = "NODEWARDEN_SANDBOX_BOT_TOKEN", "NODEWARDEN_SANDBOX_APP_TOKEN"
"""Environment variables that hold the stand-in's tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Where the bot keeps what it writes."""

    folder: Path

    @property
    def data(self) -> Path:
        """Database, lock, halt file."""
        return self.folder / "data"

    @property
    def socket(self) -> Path:
        """The command line's door."""
        return self.data / "nodewarden.sock"

    @property
    def file(self) -> Path:
        """The configuration."""
        return self.folder / "nodewarden.yaml"

    @property
    def anchors(self) -> Path:
        """Copies of the audit log's head."""
        return self.folder / "anchors"


def populate(slack: SlackStandIn) -> None:
    """Make the people, the channel and the group, always in the same order and so with the same ids."""
    for name in PEOPLE:
        slack.person(name)
    slack.channel(CHANNEL).invite(*PEOPLE)
    slack.group(ON_CALL, [name for name, role in PEOPLE.items() if role == "oncall"])


def text(playground: Playground, slack: SlackStandIn, places: Places) -> str:
    """The file."""
    channel = slack.channel(CHANNEL).id
    cluster = {
        **playground.settings(),
        "pools": pools(playground.partitions()),
        "channel": channel,
    }
    whole = {
        "bot": {"data_folder": str(places.data)},
        "slack": {
            "bot_token": f"env:{BOT_TOKEN}",
            "app_token": f"env:{APP_TOKEN}",
            "team": HOME_TEAM,
            "api_url": slack.base_url,
        },
        "clusters": {playground.cluster: cluster},
        "people": _people(slack),
        "pages": [{"kind": "slack", "channel": channel, "mention": _group(slack)}],
        "anchors": {"files": [str(places.anchors)]},
    }
    return f"{json.dumps(whole, indent=2)}\n"


def environment(slack: SlackStandIn) -> Mapping[str, str]:
    """The secrets that the file names."""
    return {BOT_TOKEN: slack.bot_token, APP_TOKEN: slack.app_token}


def _people(slack: SlackStandIn) -> dict[str, object]:
    people: dict[str, object] = {
        name: {"slack": [f"{HOME_TEAM}/{slack.person(name).id}"], "roles": [role]}
        for name, role in PEOPLE.items()
    }
    # Whoever started the sandbox may use the command line too, as an account that several share.
    return people | {"shell": {"os_users": [getpass.getuser()], "roles": ["admin"], "shared": True}}


def _group(slack: SlackStandIn) -> str:
    found = slack.world.group_named(ON_CALL)
    return "" if found is None else found.id
