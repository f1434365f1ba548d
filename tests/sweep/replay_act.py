"""Play one act of the other operator again: `python -m tests.sweep.replay_act SCENARIO ACT PLACE`."""

import sys

from tests.sweep.other_operator import OtherOperator, Where
from tests.sweep.theatre import theatre


def main(words: list[str]) -> int:
    """Say how the run ended and what was wrong with it."""
    name, act, where = words
    with theatre() as stage:
        operator = OtherOperator(stage, name)
        case = operator.play(act, Where(where))
        print("acted" if case.acted else "the act was not possible there", "->", case.end)
        print(*case.complaints, sep="\n")
        return int(bool(case.complaints))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
