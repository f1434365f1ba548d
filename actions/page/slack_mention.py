"""Pages as a new Slack message with a mention: the last resort. Called by the chain.

How a message is posted belongs to `bot`, which passes it in; the text is escaped here already.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from actions.hands import Page
from actions.page import messages
from actions.page.backends import Accepted


class Post(Protocol):
    """Posts a new message that mentions the people on call; an edit rings no phone."""

    def __call__(self, text: str, key: str, limit: timedelta) -> str:
        """Post `text` (escaped already) and answer where it stands.

        `key` is the page's: a repeat goes into the thread of the first. Raises NotAccepted when
        Slack said no, MaybeAccepted when it gave no answer.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SlackMention:
    """One channel with the people on call."""

    name: str
    post: Post

    def page(self, page: Page, limit: timedelta) -> Accepted:
        """Post it. Raises NotAccepted, MaybeAccepted."""
        where = self.post(messages.mention(page), messages.stable_key(page), limit)
        return Accepted(detail=f"posted at {messages.plain(where, messages.LONGEST_NAME)}")
