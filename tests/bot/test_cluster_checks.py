"""A bot that must not act on a cluster does not start, and doctor names what it lacks there."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

import pytest

from actions.catalogue import ClusterSite, Rights
from actions.contract import Unreadable
from bot.cluster_checks import EVERY, ClusterChecks, ClusterRefused
from bot.inventory import Inventory
from config.clock import Instant
from tests.actions.fakes import CLUSTER, NOW, FakeCluster, FakeNodes, make_job


@dataclass
class HandClock:
    passed: timedelta = timedelta(0)

    def now(self) -> Instant:
        return Instant(wall=NOW + self.passed, monotonic=self.passed)


class Asked:
    """Answers what it holds, and counts; raises Unreadable where it holds nothing."""

    def __init__(self, *answer: str) -> None:
        self.answer: tuple[str, ...] | None = answer
        self.times = 0

    def __call__(self) -> tuple[str, ...]:
        self.times += 1
        if self.answer is None:
            raise Unreadable("slurmctld does not answer")
        return self.answer


def checks(
    faults: Callable[[], tuple[str, ...]],
    rights: Rights | None = None,
    cluster: FakeCluster | None = None,
    clock: HandClock | None = None,
) -> ClusterChecks:
    hands = cluster or FakeCluster()
    inventory = Inventory({CLUSTER: hands})
    inventory.refresh()
    site = ClusterSite(
        cluster=hands,
        nodes=FakeNodes(),
        units=frozenset(),
        close=lambda: None,
        faults=faults,
        rights=lambda: rights or Rights(),
        remarks=lambda: ("snapshots go by Slurm's tools",),
    )
    return ClusterChecks({CLUSTER: site}, inventory, clock or HandClock(), "nodewarden")


def told(found: ClusterChecks, good: bool) -> list[str]:
    return [finding.text for finding in found.findings() if finding.good is good]


def test_a_fault_refuses_the_start_and_names_the_cluster() -> None:
    with pytest.raises(ClusterRefused, match=f"cluster {CLUSTER}: the bot runs as root"):
        checks(Asked("the bot runs as root")).refuse_faulty()


def test_a_controller_that_is_silent_at_start_is_asked_again_and_its_fault_is_told() -> None:
    faults = Asked()
    faults.answer = None
    found = checks(faults)
    found.refuse_faulty()
    assert "not answered yet" in told(found, good=False)[0]
    faults.answer = ("the Slurm tools are newer",)
    found.tick()
    assert told(found, good=False) == [f"cluster {CLUSTER}: the Slurm tools are newer"]


def test_a_cluster_is_checked_again_after_ten_minutes_and_not_before() -> None:
    clock, faults = HandClock(), Asked()
    found = checks(faults, clock=clock)
    found.refuse_faulty()
    clock.passed = EVERY - timedelta(seconds=1)
    found.tick()
    assert faults.times == 1
    clock.passed = EVERY
    found.tick()
    assert faults.times == 2


def test_a_missing_right_is_a_finding_and_no_reason_to_stay_away() -> None:
    lacks = {"node.drain": "nodewarden has AdminLevel=None, so Slurm will refuse node.drain"}
    found = checks(Asked(), Rights(said=("nodewarden has AdminLevel=None",), lacks=lacks))
    assert found.lacks(CLUSTER, "node.drain") == ""  # nobody has asked yet
    found.refuse_faulty()
    assert told(found, good=False) == [f"cluster {CLUSTER}: nodewarden has AdminLevel=None"]
    assert found.lacks(CLUSTER, "node.drain") == lacks["node.drain"]
    assert found.lacks(CLUSTER, "service.start") == ""


@pytest.mark.parametrize(
    ("user", "said"), [("ann", "1 jobs of 1 other users"), ("nodewarden", "not provable now")]
)
def test_only_another_users_job_proves_that_others_jobs_are_seen(user: str, said: str) -> None:
    found = checks(Asked(), cluster=FakeCluster(jobs=(make_job(user=user),)))
    found.refuse_faulty()
    assert any(said in text for text in told(found, good=True))


def test_jobs_of_another_cluster_of_the_federation_are_told() -> None:
    job = make_job(user="ann", federation_origin="west")
    found = checks(Asked(), cluster=FakeCluster(jobs=(job,)))
    found.refuse_faulty()
    assert any("1 jobs were submitted on west" in text for text in told(found, good=True))


def test_remarks_on_how_a_cluster_is_read_are_told() -> None:
    found = checks(Asked())
    found.refuse_faulty()
    assert f"cluster {CLUSTER}: snapshots go by Slurm's tools" in told(found, good=True)
