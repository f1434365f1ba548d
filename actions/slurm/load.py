"""Whether a controller has more to do than it should, as `sdiag` tells it. Pure.

Asked by the snapshot child, once for each snapshot. Its answer slows the bot down, and nothing else: a
line that is missing or of another form means that nothing is known.
"""

import re

_LINE = re.compile(r"^(?P<what>[A-Za-z ]+?)\s*:\s*(?P<count>\d+)\s*$", re.ASCII | re.MULTILINE)
_LIMITS = {"Server thread count": 128, "Agent queue size": 500}
"""Half of the 256 threads with which slurmctld answers, and messages to nodes that wait to be sent."""


def overload(answer: str) -> str:
    """What is above its limit, or the empty text."""
    counts = {found["what"]: int(found["count"][:9]) for found in _LINE.finditer(answer)}
    high = [
        f"{what.lower()} {counts[what]} (above {limit})"
        for what, limit in _LIMITS.items()
        if counts.get(what, 0) > limit
    ]
    return ", ".join(high)
