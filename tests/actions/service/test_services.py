"""service.start and service.restart: done only when read back, refused where a job could end."""

from dataclasses import replace
from datetime import timedelta

import pytest

from actions.cluster import NodeBase
from actions.contract import (
    Call,
    Done,
    Failed,
    FailureKind,
    Refusal,
    Standing,
    Unknown,
    Unreadable,
)
from actions.remote_values import CommandResult, Reach, Reachability, ServiceState
from actions.service.settings import Hands, ServiceSettings
from actions.service.verbs import Restart, Start, actions
from config.node_names import NodeName
from tests.actions.fakes import (
    BOOT,
    CLUSTER,
    HEALTHY,
    NODE,
    NOW,
    FakeCluster,
    FakeNodes,
    make_call,
    make_job,
    make_node,
    slurmd,
)

CALL = make_call(arguments={"unit": "slurmd"})
DEAD = slurmd(ServiceState.FAILED)
BACK = slurmd(since=NOW + timedelta(seconds=1), main_pid=99)
EFFECT = "nw-0a1b2c3d-run-12-step-1"


def _hands(nodes: FakeNodes, cluster: FakeCluster | None = None, *, hands_off: str = "") -> Hands:
    settings = ServiceSettings(
        units=frozenset({"slurmd", "munge"}), hands_off=lambda _cluster, _node: hands_off
    )
    return Hands(clusters={CLUSTER: cluster or FakeCluster()}, nodes=nodes, settings=settings)


def _busy(**changes: object) -> FakeCluster:
    cluster = FakeCluster(nodes={NODE: make_node(base=NodeBase.ALLOCATED, **changes)})
    cluster.jobs = (make_job(),)
    return cluster


def test_a_dead_service_is_started_and_read_back() -> None:
    nodes = FakeNodes(unit=DEAD, after=BACK)
    verb = Start(_hands(nodes))
    seen = verb.look(CALL)
    assert (seen.standing, seen.boot_id) == (Standing.NOT_SO, BOOT)
    outcome = verb.do(CALL)
    assert isinstance(outcome, Done)
    assert (outcome.output["state"], outcome.output["main_pid"]) == ("active", 99)
    assert nodes.done == [f"start slurmd {EFFECT}"]


def test_a_running_service_is_left_alone_and_nobody_claims_it() -> None:
    nodes = FakeNodes()
    seen = Start(_hands(nodes)).look(CALL)
    assert seen.standing is Standing.FOREIGN
    assert "already running since 2026-11-30T17:17:00Z" in seen.why
    assert isinstance(Start(_hands(nodes)).do(CALL), Done)
    assert nodes.done == []


@pytest.mark.parametrize("verb", [Start, Restart])
def test_a_recovery_knows_its_own_start_by_its_time(verb: type[Start] | type[Restart]) -> None:
    nodes = FakeNodes(unit=slurmd(since=NOW))
    call = replace(CALL, intended_at=NOW + timedelta(milliseconds=400))
    assert verb(_hands(nodes)).look(call).standing is Standing.OURS
    before = replace(CALL, intended_at=NOW + timedelta(minutes=2))
    assert verb(_hands(nodes)).look(before).standing is not Standing.OURS


@pytest.mark.parametrize(
    "cluster",
    [
        FakeCluster(silent=True),
        FakeCluster(started=NOW - timedelta(seconds=5)),
        FakeCluster(nodes={NODE: make_node(flags=frozenset({"DRAIN"}), reason="RMA 4711")}),
    ],
    ids=["slurmctld is silent", "slurmctld has just started", "a person drained it meanwhile"],
)
def test_a_recovery_ends_as_soon_as_the_unit_runs(cluster: FakeCluster) -> None:
    hands = _hands(FakeNodes(unit=slurmd(since=NOW)), cluster)
    recovery = replace(CALL, intended_at=NOW - timedelta(seconds=5))
    assert Start(hands).look(recovery).standing is Standing.OURS
    late = replace(CALL, intended_at=NOW + timedelta(minutes=2))
    assert Start(hands).look(late).standing is Standing.FOREIGN


def test_the_time_of_the_start_is_by_the_bots_clock() -> None:
    facts = replace(HEALTHY, clock_offset_ms=-600_000)
    nodes = FakeNodes(unit=slurmd(since=NOW - timedelta(minutes=9)), facts=facts)
    call = replace(CALL, intended_at=NOW)
    assert Start(_hands(nodes)).look(call).standing is Standing.OURS


@pytest.mark.parametrize("verb", [Start, Restart])
def test_no_result_is_unknown_and_never_a_failure(verb: type[Start] | type[Restart]) -> None:
    nodes = FakeNodes(unit=DEAD, result=CommandResult(exit_code=None, lost="node agent died"))
    outcome = verb(_hands(nodes)).do(CALL)
    assert isinstance(outcome, Unknown)
    assert "node agent died" in outcome.why


@pytest.mark.parametrize("after", [slurmd(ServiceState.UNKNOWN), slurmd(ServiceState.ACTIVATING)])
def test_what_cannot_be_read_back_or_goes_on_is_unknown(after: object) -> None:
    nodes = FakeNodes(unit=DEAD, after=after)  # type: ignore[arg-type]
    assert isinstance(Start(_hands(nodes)).do(CALL), Unknown)


@pytest.mark.parametrize("after", [DEAD, slurmd(main_pid=0)])
def test_exit_code_0_is_not_enough(after: object) -> None:
    nodes = FakeNodes(unit=DEAD, after=after)  # type: ignore[arg-type]
    assert isinstance(Start(_hands(nodes)).do(CALL), Failed)


def test_systemctls_words_are_in_the_failure() -> None:
    result = CommandResult(exit_code=1, errors="can't stat gres.conf file /dev/nvidia0")
    outcome = Start(_hands(FakeNodes(unit=DEAD, result=result))).do(CALL)
    assert isinstance(outcome, Failed)
    assert "/dev/nvidia0" in outcome.error


def test_a_lock_on_the_node_is_worth_another_try() -> None:
    outcome = Start(_hands(FakeNodes(unit=DEAD, result=CommandResult(exit_code=75)))).do(CALL)
    assert isinstance(outcome, Failed)
    assert outcome.kind is FailureKind.RETRYABLE


@pytest.mark.parametrize("unit", ["sshd", "", None, "slurmd;reboot"])
@pytest.mark.parametrize("verb", [Start, Restart])
def test_a_unit_that_is_not_listed_is_refused(
    verb: type[Start] | type[Restart], unit: str | None
) -> None:
    nodes = FakeNodes(unit=DEAD)
    call = make_call(arguments={"unit": unit})
    with pytest.raises(Refusal, match="list of units"):
        verb(_hands(nodes)).look(call)
    assert isinstance(verb(_hands(nodes)).do(call), Failed)
    assert nodes.done == []


@pytest.mark.parametrize("verb", [Start, Restart])
@pytest.mark.parametrize(
    "cluster",
    [
        FakeCluster(nodes={NODE: make_node(flags=frozenset({"DRAIN"}), reason="RMA 4711")}),
        FakeCluster(nodes={NODE: make_node(flags=frozenset({"MAINTENANCE"}))}),
    ],
)
def test_hands_off_what_somebody_else_holds(
    verb: type[Start] | type[Restart], cluster: FakeCluster
) -> None:
    seen = verb(_hands(FakeNodes(unit=DEAD), cluster)).look(CALL)
    assert seen.standing is Standing.BLOCKED
    assert "hands off" in seen.why


def test_hands_off_labels_hold_here_too() -> None:
    verb = Start(_hands(FakeNodes(unit=DEAD), hands_off="label by dana"))
    assert verb.look(CALL).standing is Standing.BLOCKED


def test_a_node_that_slurm_itself_took_out_may_be_repaired() -> None:
    reason = "gres/gpu count reported lower than configured (0 < 8)"
    cluster = FakeCluster(
        nodes={NODE: make_node(flags=frozenset({"DRAIN", "INVALID_REG"}), reason=reason)}
    )
    assert Restart(_hands(FakeNodes(), cluster)).look(CALL).standing is Standing.NOT_SO


@pytest.mark.parametrize(
    ("reach", "standing"),
    [(Reach.REFUSED, Standing.BLOCKED), (Reach.TIME_OUT, Standing.BLOCKED)],
)
def test_a_host_that_cannot_be_reached_blocks(reach: Reach, standing: Standing) -> None:
    nodes = FakeNodes(verdict=Reachability(reach=reach, evidence="Connection refused"))
    assert Start(_hands(nodes)).look(CALL).standing is standing


def test_a_bot_that_is_cut_off_looks_again_later() -> None:
    nodes = FakeNodes(verdict=Reachability(reach=Reach.NOT_ASKED, evidence="cut off"))
    with pytest.raises(Unreadable):
        Start(_hands(nodes)).look(CALL)


def test_nothing_acts_in_the_first_minute_of_a_controller() -> None:
    cluster = FakeCluster(started=NOW - timedelta(seconds=59))
    with pytest.raises(Unreadable, match="just started"):
        Start(_hands(FakeNodes(unit=DEAD), cluster)).look(CALL)


def test_a_restart_with_killmode_process_spares_the_jobs_and_is_allowed() -> None:
    nodes = FakeNodes(after=BACK)
    verb = Restart(_hands(nodes, _busy()))
    assert verb.look(CALL).standing is Standing.NOT_SO
    assert isinstance(verb.do(CALL), Done)
    assert nodes.done == [f"restart slurmd {EFFECT}"]


@pytest.mark.parametrize(
    ("nodes", "cluster", "sentence"),
    [
        (FakeNodes(unit=slurmd(kill_mode="control-group")), _busy(), "KillMode=control-group"),
        (FakeNodes(unit=slurmd(kill_mode="")), _busy(), "KillMode=not read"),
        (FakeNodes(unit=slurmd(delegate="no")), _busy(), "Delegate=no"),
        (FakeNodes(unit=slurmd(delegate="")), _busy(), "Delegate=not read"),
        (FakeNodes(facts=None), _busy(), "the host could not be read"),
        (FakeNodes(facts=replace(HEALTHY, slurmd_version="")), _busy(), "on disk is not read"),
        (FakeNodes(), _busy(version=""), "running is not known"),
        (FakeNodes(facts=replace(HEALTHY, munge_ok=False)), _busy(), "munge on gpu-01"),
        (FakeNodes(facts=replace(HEALTHY, munge_ok=None)), _busy(), "munge on gpu-01"),
        (FakeNodes(facts=replace(HEALTHY, clock_offset_ms=None)), _busy(), "was not read"),
        (FakeNodes(facts=replace(HEALTHY, cpus=63)), _busy(), "63 of 64 CPUs"),
        (FakeNodes(facts=replace(HEALTHY, gres_seen="")), _busy(), "GRES not read of gpu:h100:8"),
        (
            FakeNodes(facts=replace(HEALTHY, gres_seen="gpu:h100:7")),
            _busy(gres="gpu:h100:8(S:0-1),shard:16"),
            "GRES gpu:h100:7 of gpu:h100:8(S:0-1),shard:16",
        ),
        (
            FakeNodes(facts=replace(HEALTHY, slurmd_version="26.05.0")),
            _busy(),
            "on disk is 26.05.0",
        ),
        (FakeNodes(facts=replace(HEALTHY, clock_offset_ms=-90_000)), _busy(), "is off by 90 s"),
        (FakeNodes(facts=replace(HEALTHY, gpus_seen=7)), _busy(), "7 of 8 GPUs"),
        (FakeNodes(facts=replace(HEALTHY, gpus_seen=None)), _busy(), "? of 8 GPUs"),
        (FakeNodes(facts=replace(HEALTHY, memory_mib=900)), _busy(), "900 of 1000 MiB"),
        (
            FakeNodes(unit=slurmd(kill_mode="mixed")),
            FakeCluster(nodes={NODE: make_node(base=NodeBase.MIXED)}),
            "that is not shown",
        ),
        (FakeNodes(), FakeCluster(blind="PrivateData=jobs"), "which jobs are on gpu-01"),
    ],
)
def test_a_restart_that_could_end_a_job_is_refused(
    nodes: FakeNodes, cluster: FakeCluster, sentence: str
) -> None:
    verb = Restart(_hands(nodes, cluster))
    seen = verb.look(CALL)
    assert seen.standing is Standing.BLOCKED
    assert sentence in seen.why
    outcome = verb.do(CALL)
    assert isinstance(outcome, Failed)
    assert (outcome.kind, nodes.done) == (FailureKind.REFUSED, [])


@pytest.mark.parametrize("seen", ["gpu:8", "gpu:h100:8", "gpu:a:4,gpu:b:4", "gpu:1g.10gb:8,x:1"])
def test_gres_are_compared_by_name_and_count(seen: str) -> None:
    nodes = FakeNodes(facts=replace(HEALTHY, gres_seen=seen))
    assert Restart(_hands(nodes, _busy())).look(CALL).standing is Standing.NOT_SO


def test_without_a_job_a_sick_munge_stops_no_restart() -> None:
    nodes = FakeNodes(unit=slurmd(delegate=""), facts=replace(HEALTHY, munge_ok=False))
    assert Restart(_hands(nodes)).look(CALL).standing is Standing.NOT_SO


def test_a_job_that_starts_between_look_and_restart_stops_it() -> None:
    cluster, nodes = FakeCluster(), FakeNodes(unit=slurmd(kill_mode="control-group"))
    verb = Restart(_hands(nodes, cluster))
    assert verb.look(CALL).standing is Standing.NOT_SO
    cluster.jobs = (make_job(),)
    assert isinstance(verb.do(CALL), Failed)
    assert nodes.done == []


def test_a_unit_that_does_not_exist_is_not_tried_again() -> None:
    nodes = FakeNodes(unit=slurmd(ServiceState.NOT_FOUND))
    assert Start(_hands(nodes)).look(CALL).standing is Standing.BLOCKED
    outcome = Start(_hands(nodes)).do(CALL)
    assert isinstance(outcome, Failed)
    assert (outcome.kind, nodes.done) == (FailureKind.PERMANENT, [])


def test_an_unknown_node_is_refused() -> None:
    call: Call = replace(CALL, node=NodeName("gpu-99"))
    with pytest.raises(Refusal, match="gpu-99"):
        Start(_hands(FakeNodes())).look(call)


def test_start_and_restart_are_two_permissions() -> None:
    permissions = {verb.spec.permission.value for verb in actions(_hands(FakeNodes()))}
    assert permissions == {"service.start", "service.restart"}
