"""Which channel belongs to which clusters, so that nothing is changed on one in the channel of another.

Consulted by the desk for what comes through Slack. A channel that belongs to no cluster serves all.
"""

from collections.abc import Callable, Mapping

from bot.commands import VERBS, Verb
from bot.desk import Request
from config.ids import ClusterName

STOPS = frozenset({Verb.HALT, Verb.ABORT, Verb.PAUSE})
"""What changes something and only holds back: it may be said anywhere."""


class Places:
    """The channels of the configuration."""

    def __init__(
        self, channels: Mapping[ClusterName, str | None], name: Callable[[str], str]
    ) -> None:
        """Channel by cluster; `name` gives what people call a channel."""
        self._channels = channels
        self._name = name

    def elsewhere(self, request: Request, cluster: ClusterName | None) -> str:
        """Where this is to be said instead; empty where it may be said here.

        A button and words in a card's thread mean that card; what only holds back may be said
        anywhere; a cluster that is named is meant.
        """
        command = request.command
        own = [name for name, channel in self._channels.items() if channel == request.place]
        named = "cluster" in command.options
        if cluster is None or not own or cluster in own or named or request.at_card:
            return ""
        if not command.changes or command.verb in STOPS or "dry-run" in command.flags:
            return ""
        right = self._channels.get(cluster)
        where = f"say it in {self._name(right)}" if right else "say it in another channel"
        if "cluster" in VERBS[command.verb].options:
            where += f", or add --cluster {cluster}"
        return f"this channel belongs to {', '.join(own)}, and that is on {cluster}: {where}"
