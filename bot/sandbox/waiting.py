"""Waits on a condition with a deadline: for the sandbox's programs, which tell nobody when they are ready."""

import time
from collections.abc import Callable

from bot.sandbox.playground import SandboxError

PATIENCE = 300.0
"""Seconds after which something hangs; a slow machine that is busy needs minutes for what takes seconds."""
_LOOK = 0.05


def wait_for(
    condition: Callable[[], object], what: str, seconds: float = PATIENCE, look: float = _LOOK
) -> None:
    """Look until the condition holds. Raises SandboxError when it does not in time."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise SandboxError(f"waited {seconds:g} s in vain for {what}")
        time.sleep(look)
