"""Pages as a Slack message with a mention: the last link of the chain, open only while Slack is."""

from collections.abc import Callable
from datetime import timedelta

from actions.catalogue import NotAccepted, Post
from config.settings import PageBackend

Send = Callable[[PageBackend, str, str, timedelta], str]
"""Posts a text for a back end under a key, within a limit; answers where it stands."""


class SlackMentions:
    """Posters for the back ends of kind slack; each works once the Slack door is open."""

    def __init__(self) -> None:
        """Closed."""
        self.send: Send | None = None

    def poster(self, backend: PageBackend) -> Post:
        """The poster of one back end."""

        def post(text: str, key: str, limit: timedelta) -> str:
            if self.send is None:
                raise NotAccepted("Slack is not connected")
            return self.send(backend, text, key, limit)

        return post
