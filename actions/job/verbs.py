"""The list of verbs of this area, for `actions.catalogue`."""

from actions.contract import Action
from actions.job.ground import SeeGround
from actions.job.observe import Observe
from actions.job.pointing import Point, Settle
from actions.job.requeue import Requeue
from actions.job.settings import Hands
from actions.job.wait_for import WaitForJob


def actions(hands: Hands) -> tuple[Action, ...]:
    """Every verb on jobs, over these hands."""
    return (
        Observe(hands),
        SeeGround(hands),
        Requeue(hands),
        Point(hands),
        Settle(hands),
        WaitForJob(hands),
    )
