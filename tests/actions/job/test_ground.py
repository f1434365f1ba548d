"""job.ground: it says where a job would run again, and names everything that speaks against it."""

from dataclasses import replace
from datetime import timedelta

import pytest

from actions.cluster import NodeBase, Partition, Reservation
from actions.contract import Done, Failed, Standing, Unknown
from actions.job.ground import SeeGround
from actions.power_hands import PowerState
from actions.spares import SpareRules
from config.ids import JobId
from config.json_values import JsonMap
from tests.actions.fakes import NOW
from tests.actions.job.hands import (
    GROUND,
    HELD,
    NODES,
    SICK,
    SPARE,
    TWO,
    FakePower,
    JobCluster,
    call,
    cluster,
    hands,
    held,
    pending,
    training,
)


def ground(found: JobCluster, **changes: object) -> JsonMap:
    outcome = SeeGround(hands(found, **changes)).do(call())  # type: ignore[arg-type]
    assert isinstance(outcome, Done)
    assert found.written == []
    return outcome.output


def against(found: JobCluster, **changes: object) -> str:
    """All that speaks against it."""
    said = ground(found, **changes)["blockers"]
    assert isinstance(said, list)
    return "; ".join(str(line) for line in said)


def test_survivors_and_spare_are_held_for_the_jobs_user() -> None:
    queue = tuple(pending(number) for number in range(20, 40))
    found = ground(cluster(jobs=(training(), *queue)))
    assert found["blockers"] == []
    assert (found["survivors"], found["spare"]) == ([TWO, "gpu-03"], SPARE)
    assert found["nodes"] == list(GROUND)
    assert (found["reservation"], found["user"], found["restarts"]) == (HELD, "ann", 0)
    assert found["becomes"] == "starts from zero, may overwrite its output"


def test_what_the_job_had_is_kept_to_be_put_back() -> None:
    job = training(priority=4711, excluded_nodes="gpu-09", reservation="team")
    found = ground(cluster(jobs=(job,)))
    kept = (found["priority"], found["excluded"], found["reservation_before"])
    assert kept == (4711, "gpu-09", "team")


def test_a_list_of_nodes_that_names_the_sick_one_blocks_it() -> None:
    said = against(cluster(jobs=(training(required_nodes="gpu-[01-02]"),)))
    assert said == "job 7 asks for gpu-01 by name (-w): without it it can never start"
    assert against(cluster(jobs=(training(required_nodes="gpu-[02-03]"),))) == ""


def test_a_spare_that_the_job_excludes_or_nobody_may_touch_is_none() -> None:
    said = against(cluster(jobs=(training(excluded_nodes=SPARE),)))
    assert "gpu-04 is idle, but has the job excludes it" in said
    off = {"hands_off": lambda node: "labelled" if node == SPARE else ""}
    assert "no spare for gpu-01" in against(cluster(), **off)


def test_a_spare_that_differs_is_refused_with_the_difference() -> None:
    found = cluster()
    found.change_node(SPARE, gpus=4, gres="gpu:h100:4")
    assert "GRES gpu:h100:4, not gpu:h100:8" in against(found)


def test_a_spare_that_must_be_brought_in_first_is_for_a_person() -> None:
    found = cluster()
    found.change_node(SPARE, partitions=frozenset({"other"}))
    rules = SpareRules(nodes=frozenset({SPARE}), partition_edit=True)
    assert "it must be brought in first" in against(found, spares=rules)


def test_without_a_spare_a_person_hears_who_would_take_the_nodes() -> None:
    queue = (pending(21, priority=10), pending(20, priority=90, node_count=2))
    running = training(
        id=JobId("8"), slurm_id=8, user="cyd", nodes=(SPARE,), node_count=1,
        ends_at=NOW + timedelta(hours=3),
    )  # fmt: skip
    full = cluster(jobs=(training(), running, *queue))
    full.change_node(SPARE, base=NodeBase.ALLOCATED)
    found = ground(full)
    none = "no spare for gpu-01: no node of its partitions is idle, and no spare fits"
    assert found["blockers"] == [none]
    assert found["takers"] == [
        "job 20 (bob, 2 nodes, for up to 1d)",
        "job 21 (bob, 1 node, for up to 1d)",
    ]
    assert found["starts"] == "2026-11-30T20:20Z"
    said = str(found["say"])
    assert "nothing was changed: no spare for gpu-01" in said
    assert "it starts from zero, may overwrite its output" in said
    assert "its nodes would go to job 20 (bob, 2 nodes" in said
    assert "it could start at 2026-11-30T20:20Z at the earliest" in said


def test_a_job_of_another_qos_may_preempt_it() -> None:
    urgent = pending(20, qos="urgent")
    assert against(cluster(jobs=(training(), urgent))) == ""
    found = cluster(jobs=(training(), urgent), preempt_type="preempt/qos")
    assert against(found) == "job 20 (bob, QOS urgent) waits and may preempt job 7"
    for reason in ("JobHeldUser", "Dependency", "BeginTime"):
        found.jobs = (training(), replace(urgent, state_reason=reason))
        assert against(found) == ""
    found.jobs = (training(), pending(20, qos="normal"))
    assert against(found) == ""


def _tiers(mode: str) -> tuple[Partition, ...]:
    nodes = (*NODES, SPARE)
    return (
        Partition(name="train", state="UP", nodes=nodes, priority_tier=1, preempt_mode=mode),
        Partition(name="fast", state="UP", nodes=(TWO,), priority_tier=2),
        Partition(name="away", state="UP", nodes=(), priority_tier=9),
    )


def test_a_job_of_a_higher_partition_on_its_nodes_may_preempt_it() -> None:
    found = cluster(
        jobs=(training(), pending(20, partition="fast,away")),
        partitions=_tiers("REQUEUE"),
        preempt_type="preempt/partition_prio",
    )
    assert "job 20 (bob, partition fast,away) waits and may preempt" in against(found)
    found.partitions = _tiers("OFF")
    assert against(found) == ""
    found.partitions = _tiers("REQUEUE")
    found.jobs = (training(), pending(20, partition="away"))
    assert against(found) == ""


def test_preemption_that_was_not_read_is_not_called_none() -> None:
    assert "was not read" in against(cluster(preempt_type=""))


def test_a_job_that_waits_for_the_same_limit_may_take_its_place() -> None:
    waits = pending(20, user="ann", state_reason="QOSMaxJobsPerUserLimit")
    assert "waits for QOSMaxJobsPerUserLimit" in against(cluster(jobs=(training(), waits)))
    group = pending(21, account="pre", state_reason="AssocGrpGRES")
    assert "waits for AssocGrpGRES" in against(cluster(jobs=(training(), group)))
    others = pending(22, state_reason="QOSMaxJobsPerUserLimit")
    assert against(cluster(jobs=(training(), others))) == ""


def _window(**changes: object) -> Reservation:
    found = held(name="maint", users=("root",), nodes=(TWO,))
    return replace(found, **changes)  # type: ignore[arg-type]


def test_a_window_of_somebody_else_on_the_ground_blocks_it() -> None:
    now = _window(starts_at=NOW - timedelta(hours=1))
    later = _window(
        starts_at=NOW + timedelta(days=1), ends_at=NOW + timedelta(days=2), active=False
    )
    for found in (now, later):
        assert "reservation maint holds gpu-02" in against(cluster(reservations=(found,)))
    after = _window(
        starts_at=NOW + timedelta(days=3), ends_at=NOW + timedelta(days=4), active=False
    )
    past = _window(starts_at=NOW - timedelta(days=2), ends_at=NOW - timedelta(days=1))
    elsewhere = replace(now, nodes=(SICK,))
    assert against(cluster(reservations=(after, past, elsewhere))) == ""


def test_a_reservation_of_this_run_is_no_obstacle_and_that_of_the_job_is_one() -> None:
    team = _window(name="team")
    job = training(reservation="team")
    ours = held(nodes=GROUND[:2])
    assert against(cluster(jobs=(training(),), reservations=(ours,))) == ""
    told = against(cluster(jobs=(job,), reservations=(team, ours)))
    assert "runs in reservation team, which holds its nodes" in told


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"state": "SUSPENDED"}, "job 7 is SUSPENDED, not RUNNING"),
        ({"state": "COMPLETING"}, "job 7 is COMPLETING, not RUNNING"),
        ({"batch": False}, "is interactive"),
        ({"requeue": False}, "--no-requeue"),
        ({"het_job": 7}, "part of het job 7"),
        ({"array_job": 7, "array_task": "4-9"}, "several tasks of an array"),
        ({"federation_origin": "west"}, "belongs to cluster west"),
        ({"nodes": (TWO, "gpu-03", SPARE), "restarts": 1}, "does not run on gpu-01"),
        (
            {"state": "PENDING", "nodes": (), "restarts": 1},
            "has requeued job 7 already (Restarts 1)",
        ),
    ],
)
def test_a_job_that_is_not_one_to_start_again_is_left(
    changes: dict[str, object], said: str
) -> None:
    assert said in against(cluster(jobs=(training(**changes),)))


def test_one_task_of_an_array_is_a_job_like_others() -> None:
    assert against(cluster(jobs=(training(array_job=6, array_task="3"),))) == ""


def test_a_blind_list_decides_nothing() -> None:
    found = cluster(blind="node MIXED without a visible job")
    assert against(found) == "the job list cannot be believed: node MIXED without a visible job"
    found = cluster(blind_snapshot=("PrivateData=jobs is set",))
    assert against(found) == "the job list cannot be believed: PrivateData=jobs is set"


def test_not_answering_is_not_dead() -> None:
    found = cluster()
    found.change_node(SICK, flags=frozenset({"NOT_RESPONDING"}))
    assert "no way to its power is configured" in against(found)
    once = FakePower(says=[PowerState.OFF, PowerState.ON])
    assert "its power reads off and on" in against(found, power=once)
    assert "no BMC of gpu-01" in against(found, power=FakePower())
    assert against(found, power=FakePower(says=[PowerState.OFF, PowerState.OFF])) == ""


def test_ground_that_takes_no_job_is_no_ground() -> None:
    found = cluster()
    found.change_node(TWO, flags=frozenset({"DRAIN"}))
    assert "gpu-02 is IDLE+DRAIN: Slurm would not start the job there" in against(found)


def test_a_node_that_nobody_may_touch_is_not_held() -> None:
    off = {"hands_off": lambda node: "labelled" if node == TWO else ""}
    assert against(cluster(), **off) == "gpu-02 is not to be touched: labelled"


def test_a_partition_that_starts_nothing_blocks_it() -> None:
    found = cluster()
    found.partitions = (replace(found.partitions[0], state="INACTIVE"),)
    assert against(found) == "partition train is INACTIVE: nothing starts in it"


def test_a_job_that_is_gone_is_refused_and_a_silent_controller_is_asked_again() -> None:
    assert isinstance(SeeGround(hands(cluster(jobs=()))).do(call()), Failed)
    assert isinstance(SeeGround(hands(cluster(silent=True))).do(call()), Unknown)
    just = cluster(started=NOW - timedelta(seconds=20))
    assert isinstance(SeeGround(hands(just)).do(call()), Unknown)


def test_a_look_says_the_same() -> None:
    assert SeeGround(hands(cluster())).look(call()).standing is Standing.NOT_SO
    found = cluster(jobs=(training(required_nodes=SICK),))
    assert SeeGround(hands(found)).look(call()).standing is Standing.BLOCKED
