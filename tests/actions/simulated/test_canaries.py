"""The canary of the simulated cluster, over the socket."""

from datetime import timedelta

import pytest

from actions.cluster import ReservationWish
from actions.contract import Rejected
from actions.hands import CanaryWord
from actions.simulated.canary import SimulatedCanary
from config.node_names import NodeName
from tests.actions.simulated.small import N7, SECOND, Served

NAME = "nw-run-1-canary-x"


@pytest.fixture
def canary(served: Served) -> SimulatedCanary:
    served.cluster.create_reservation(wish(N7))
    return SimulatedCanary(line=served.cluster.line)


def wish(node: NodeName) -> ReservationWish:
    return ReservationWish(
        name=NAME,
        nodes=(node,),
        user="canary",
        length=timedelta(minutes=30),
        flags=frozenset({"MAINT", "IGNORE_JOBS"}),
    )


def test_a_canary_runs_in_its_reservation_and_passes(
    served: Served, canary: SimulatedCanary
) -> None:
    assert canary.state(NAME).word is CanaryWord.NONE
    canary.start(N7, NAME, NAME)
    assert canary.state(NAME).word is CanaryWord.RUNNING
    assert served.cluster.fresh_jobs(N7)[0].reservation == NAME
    served.plugs.forward(31 * SECOND)
    seen = canary.state(NAME)
    assert (seen.word, seen.why) == (CanaryWord.PASSED, "COMPLETED, exit code 0")


def test_no_canary_runs_on_a_drained_node(served: Served, canary: SimulatedCanary) -> None:
    served.cluster.drain(N7, "nw A1")
    canary.start(N7, NAME, NAME)
    served.plugs.forward(600 * SECOND)
    assert canary.state(NAME).word is CanaryWord.PENDING
    canary.end(NAME)
    assert canary.state(NAME).word is CanaryWord.FAILED


@pytest.mark.parametrize(
    "plug, given", [("fail_canary", {"says": "no NVLink"}), ("lose_gpus", {"present": 7})]
)
def test_a_canary_fails_on_a_node_that_is_not_as_it_should_be(
    served: Served, canary: SimulatedCanary, plug: str, given: dict[str, object]
) -> None:
    served.plugs.pull(plug, node=N7, **given)
    canary.start(N7, NAME, NAME)
    served.plugs.forward(31 * SECOND)
    seen = canary.state(NAME)
    assert seen.word is CanaryWord.FAILED
    assert seen.lines


def test_another_account_may_not_use_the_reservation(
    served: Served, canary: SimulatedCanary
) -> None:
    with pytest.raises(Rejected, match="Access denied"):
        SimulatedCanary(line=canary.line, user="eve").start(N7, NAME, NAME)
    with pytest.raises(Rejected, match="invalid"):
        canary.start(N7, "nw-other", NAME)
