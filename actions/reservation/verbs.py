"""The list of verbs of this area, for `actions.catalogue`."""

from actions.contract import Action
from actions.reservation.delete import Delete
from actions.reservation.hold import Hold
from actions.reservation.keep import keep, restore
from actions.reservation.settings import Hands


def actions(hands: Hands) -> tuple[Action, ...]:
    """Every verb on reservations, over these hands."""
    return (Hold(hands), Delete(hands), keep(hands), restore(hands))
