"""Play one disturbance again: `python -m tests.sweep.replay_disturbance SCENARIO KIND COMMIT`."""

import sys

from tests.sweep.disturbances import Disturbed
from tests.sweep.theatre import theatre


def main(words: list[str]) -> int:
    """Say what differs."""
    name, kind, commit = words
    with theatre() as stage:
        differs = Disturbed(stage, name).play(kind, int(commit))
        print(differs or "as if nothing had happened")
        return int(bool(differs))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
