"""job.await and job.observe: running again means a new run, elsewhere, and nothing less."""

from datetime import timedelta

import pytest

from actions.contract import Done, Failed, Unknown, Wait
from actions.job.observe import Observe
from actions.job.wait_for import WaitForJob
from tests.actions.fakes import NOW
from tests.actions.job.hands import GROUND, NODES, SICK, JobCluster, call, cluster, hands, training


def again(**changes: object) -> JobCluster:
    """The job was requeued."""
    return cluster(jobs=(training(**{"restarts": 1, **changes}),))


def waited(found: JobCluster) -> object:
    return WaitForJob(hands(found)).do(call(restarts=0))


def test_a_new_run_without_the_sick_node_is_what_is_waited_for() -> None:
    outcome = waited(again(nodes=GROUND, started_at=NOW))
    assert isinstance(outcome, Done)
    assert (outcome.output["nodes"], outcome.output["restarts"]) == (list(GROUND), 1)
    assert outcome.output["started"] == "2026-11-30T17:20:00Z"


def test_restarts_alone_proves_nothing_while_the_old_run_ends() -> None:
    outcome = waited(again(state="COMPLETING", nodes=(SICK,)))
    assert isinstance(outcome, Wait)
    assert outcome.why == "job 7: its old run has not ended yet, held by gpu-01"
    outcome = waited(again(state="PENDING", state_flags=frozenset({"COMPLETING"}), nodes=(SICK,)))
    assert isinstance(outcome, Wait)
    assert "held by gpu-01" in outcome.why


def test_the_old_run_is_not_the_new_one() -> None:
    assert isinstance(waited(cluster()), Wait)


def test_a_job_that_waits_says_for_what() -> None:
    due = NOW + timedelta(seconds=120)
    found = again(state="PENDING", nodes=(), state_reason="BeginTime", eligible_at=due)
    outcome = waited(found)
    assert isinstance(outcome, Wait)
    assert outcome.why == "job 7 is PENDING (BeginTime, Slurm starts it from 17:22:00 UTC on)"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"state": "CANCELLED", "nodes": ()}, "has ended and does not come back"),
        ({"restarts": 2, "nodes": GROUND}, "somebody requeued it again"),
        ({"nodes": NODES}, "it was started on gpu-01 again"),
    ],
)
def test_what_cannot_become_right_is_not_waited_for(changes: dict[str, object], said: str) -> None:
    outcome = waited(again(**changes))
    assert isinstance(outcome, Failed)
    assert said in outcome.error


def test_a_job_that_is_gone_is_a_failure_and_silence_is_none() -> None:
    assert isinstance(waited(cluster(jobs=())), Failed)
    assert isinstance(waited(cluster(silent=True)), Unknown)


def test_an_observation_tells_whose_work_would_be_lost() -> None:
    found = cluster(jobs=(training(array_job=6, array_task="3", comment="nw:restartable"),))
    outcome = Observe(hands(found)).do(call())
    assert isinstance(outcome, Done)
    told = outcome.output
    assert (told["user"], told["state"], told["nodes"]) == ("ann", "RUNNING", list(NODES))
    assert (told["restartable"], told["restartable_by"]) == (True, "its comment")
    assert (told["parts"], told["becomes"]) == (
        "task 3 of array 6",
        "goes on from its checkpoint (by its comment)",
    )
