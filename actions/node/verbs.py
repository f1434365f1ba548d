"""The list of verbs of this area, for `actions.catalogue`."""

from actions.contract import Action
from actions.node.drain import Drain
from actions.node.evidence import SaveEvidence
from actions.node.give_back import GiveBack
from actions.node.observe import Observe
from actions.node.partition import restore_partition, write_partition
from actions.node.reboot import Reboot
from actions.node.settings import Hands
from actions.node.spare import ChooseSpare, NameSpares
from actions.node.wait_for import WaitFor


def actions(hands: Hands) -> tuple[Action, ...]:
    """Every verb on nodes, over these hands."""
    return (
        Observe(hands),
        Drain(hands),
        GiveBack(hands),
        Reboot(hands),
        WaitFor(hands),
        SaveEvidence(hands),
        ChooseSpare(hands),
        NameSpares(hands),
        write_partition(hands),
        restore_partition(hands),
    )
