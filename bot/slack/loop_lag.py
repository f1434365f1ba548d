"""How late the event loop is: on a busy machine an acknowledgement needs several of its turns.

Run by `bot.slack.door` as a task; asked by `bot.slack.listeners` how long a commit may be waited for.
"""

import asyncio

LOOK = 0.1
"""Seconds between two looks at the clock."""
FADES = 0.9
"""What is left of an old delay after a look that met none."""
SHORTEST = 0.3
"""Seconds that a commit is waited for in any case."""
SPARE = 0.5
"""Seconds of Slack's three that are left when the longest wait and the way there and back are over."""


class LoopLag:
    """Seconds by which the loop was late lately."""

    def __init__(self) -> None:
        """In time."""
        self.seconds = 0.0

    async def run(self) -> None:
        """Look until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + LOOK
            await asyncio.sleep(LOOK)
            self.note(loop.time() - due)

    def note(self, late: float) -> None:
        """The loop was so late just now."""
        self.seconds = max(late, self.seconds * FADES)

    def shortened(self, longest: float) -> float:
        """How much of the longest wait is left for an acknowledgement: its envelope may have waited
        for one turn of the loop before it was heard, and the end of the wait comes one turn late.
        """
        return max(min(longest, SHORTEST), longest - max(0.0, 2 * self.seconds - SPARE))
