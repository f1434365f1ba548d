"""The list of verbs of this area, for `actions.catalogue`."""

from actions.canary.plan import Plan
from actions.canary.settings import Hands
from actions.canary.start import End, Start
from actions.canary.verdict import Verdict
from actions.contract import Action


def actions(hands: Hands) -> tuple[Action, ...]:
    """Every verb on canaries, over these hands."""
    return (Plan(hands), Start(hands), Verdict(hands), End(hands))
