"""Let slurmctld forget one write again: `python -m tests.sweep.replay_forgetting SCENARIO MODE WRITE`."""

import sys

from tests.sweep.forgetting import Forgetting
from tests.sweep.theatre import theatre


def main(words: list[str]) -> int:
    """Say what is wrong."""
    name, mode, number = words
    with theatre() as stage:
        wrong = Forgetting(stage, name, int(mode)).forget(int(number))
        print(wrong or "as if nothing had happened, or a person was told")
        return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
