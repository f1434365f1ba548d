"""Play one case again and say what happens: `python -m tests.sweep.replay SCENARIO POINT [POINT]`.

Without a point the scenario is played to its end; each point kills one bot for real.
"""

import sys

from tests.sweep.crash import Sweep
from tests.sweep.mortal import Point
from tests.sweep.scenarios import SCENARIOS
from tests.sweep.theatre import theatre


def main(words: list[str]) -> int:
    """Say where each bot died, what it had done, and how the last one ended."""
    scenario = SCENARIOS[words[0]]
    with theatre() as stage:
        sweep = Sweep(stage, scenario)
        kept = sweep.start
        for number, (sort, label) in enumerate(sweep.labels):
            print(f"{number:4} {sort} {label}")
        for word in words[1:]:
            kept = sweep.killed(kept, Point.parse(word))
            print(f"killed at {word}, effects so far:")
            for effect in stage.effects():
                print(f"    {effect.at:%H:%M:%S} {effect.verb} {effect.arguments}")
        finished, person = sweep.outcome(kept, " ".join(words[1:]))
        for effect in stage.effects():
            print(f"    {effect.at:%H:%M:%S} {effect.verb} {effect.arguments}")
        print(*sweep.swept.failures, sep="\n")
        print("as without a crash" if finished else "NOT as without a crash", "person" * person)
        return int(not finished)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
