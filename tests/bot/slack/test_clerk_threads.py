"""Every thread of the Slack door has begun before the first command: the event loop waits for none."""

import threading
from typing import cast

from bot.answers import Answers
from bot.desk import Desk
from bot.slack.clerk import ACTORS, READERS, Clerk
from bot.slack.visitors import Visitors
from tests.patience import until


def begun(name: str) -> int:
    return sum(thread.name.startswith(name) for thread in threading.enumerate())


def test_all_threads_have_begun_before_the_first_command() -> None:
    before = begun("slack-desk"), begun("slack-reads")
    clerk = Clerk(cast(Desk, None), cast(Answers, None), cast(Visitors, None))
    assert (begun("slack-desk"), begun("slack-reads")) == (before[0] + ACTORS, before[1] + READERS)
    clerk.close()
    until(lambda: (begun("slack-desk"), begun("slack-reads")) == before)
