"""Whatever happens in whatever order: what no operation may do to jobs, drains and time."""

import contextlib
import copy
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from actions.contract import Rejected
from actions.remote_values import CommandResult
from actions.simulated.world import World
from actions.simulated.writes import Write, WriteVerb
from config.node_names import NodeName
from tests.actions.simulated.small import LIMIT, drain, forward, resume, small_world

NAMES = [NodeName(f"gpu-{number}") for number in range(1, 9)]
NODES = st.sampled_from(NAMES)
JOBS = st.sampled_from([10, 11, 12, 13])
SPANS = st.integers(1, 400).map(lambda seconds: timedelta(seconds=seconds))
HARMLESS = (
    *("kill_slurmd", "start_slurmd", "late_driver", "refuse_ssh", "change_host_key"),
    *("cut_off", "hang_service_start", "stop_service"),
)
"""Plugs that end no job by themselves; some do once SlurmdTimeout has passed."""


def arguments(plug: str, node: NodeName) -> dict[str, object]:
    units = {"hang_service_start": "slurmd", "stop_service": "munge"}
    return {"node": node, **({"unit": units[plug]} if plug in units else {})}


def running(world: World) -> dict[int, tuple[int, tuple[NodeName, ...]]]:
    return {
        each.slurm_id: (each.restarts, each.nodes)
        for each in world.snapshot(LIMIT).jobs
        if each.state == "RUNNING"
    }


class Night(RuleBasedStateMachine):
    """A night in which everybody does something to the same eight nodes."""

    def __init__(self) -> None:
        super().__init__()
        self.world = small_world()
        self.foreign: dict[NodeName, str] = {}

    @property
    def controller_is_up(self) -> bool:
        return self.world.state.controller.up

    @rule(by=SPANS)
    def time_passes(self, by: timedelta) -> None:
        forward(self.world, by)

    @rule(plug=st.sampled_from(HARMLESS), node=NODES)
    def something_breaks(self, plug: str, node: NodeName) -> None:
        before = self.ended()
        self.world.plug(plug, arguments(plug, node))
        # A slurmd that starts on a rebooted host tells what is gone; nothing else may end work.
        if plug != "start_slurmd":
            assert self.ended() == before

    @rule(node=NODES)
    def power_fails(self, node: NodeName) -> None:
        before = self.ended()
        self.world.plug("kill_host", {"node": node})
        assert self.ended() == before

    @rule(node=NODES)
    def power_returns(self, node: NodeName) -> None:
        self.world.plug("power_on", {"node": node})

    @rule(node=NODES)
    def a_host_reboots(self, node: NodeName) -> None:
        self.world.plug("reboot", {"node": node})

    @rule(node=NODES, left=st.integers(0, 8))
    def gpus_go_or_return(self, node: NodeName, left: int) -> None:
        self.world.plug("shrink_gpus", {"node": node, "present": left})

    @precondition(lambda self: self.controller_is_up)
    @rule(node=NODES)
    def a_person_drains(self, node: NodeName) -> None:
        before = self.ended()
        self.world.plug("admin_drain", {"node": node, "reason": f"dana {node}", "by": "dana"})
        self.foreign[node] = f"dana {node}"
        assert self.ended() == before
        forward(self.world, timedelta(seconds=6))  # until slurmctld has saved it

    @precondition(lambda self: self.controller_is_up)
    @rule(node=NODES)
    def somebody_resumes(self, node: NodeName) -> None:
        before = self.ended()
        try:
            resume(self.world, node)
        except Rejected:
            return
        self.foreign.pop(node, None)
        assert self.ended() == before
        forward(self.world, timedelta(seconds=6))

    @precondition(lambda self: self.controller_is_up)
    @rule(node=NODES)
    def the_bot_drains_what_nobody_drained(self, node: NodeName) -> None:
        if node not in self.foreign:
            before = self.ended()
            drain(self.world, node, "nw x")
            assert self.ended() == before

    @rule(node=NODES, restart=st.booleans())
    def the_bot_starts_slurmd(self, node: NodeName, restart: bool) -> None:
        verb = WriteVerb.RESTART_SERVICE if restart else WriteVerb.START_SERVICE
        given = {"unit": "slurmd", "effect_id": "e"}
        answer = self.world.write(Write(verb=verb, node=node, arguments=given))
        assert isinstance(answer, CommandResult)

    @rule(killed=st.booleans())
    def the_controller_restarts(self, killed: bool) -> None:
        self.world.plug("controller_restart", {"killed": killed, "away": 2})

    @rule(job=JOBS)
    def a_job_is_requeued_or_not(self, job: int) -> None:
        if job in self.world.state.jobs and self.controller_is_up:
            with contextlib.suppress(Rejected):
                self.world.plug("requeue_job", {"job": job})

    def ended(self) -> list[str]:
        """What has happened to jobs so far, starts left out."""
        return [
            f"{each.what} {each.subject}"
            for each in self.world.state.history
            if each.what.startswith("job ") and each.what != "job started"
        ]

    @invariant()
    def a_foreign_drain_survives_everything_but_a_resume(self) -> None:
        for name, reason in self.foreign.items():
            record = self.world.state.nodes[name]
            assert "DRAIN" in record.flags
            assert record.reason == reason

    @invariant()
    def no_gpu_is_given_twice(self) -> None:
        for record in self.world.state.nodes.values():
            assert sum(record.jobs.values()) <= record.gpus

    @invariant()
    def jobs_and_nodes_agree_on_who_is_where(self) -> None:
        state = self.world.state
        for record in state.nodes.values():
            for number in record.jobs:
                assert record.name in state.jobs[number].nodes
        for each in state.jobs.values():
            if each.state == "RUNNING":
                assert all(each.slurm_id in state.nodes[name].jobs for name in each.nodes)

    @invariant()
    def a_job_that_may_not_be_requeued_never_restarts(self) -> None:
        for each in self.world.state.jobs.values():
            assert each.restarts == 0 or (each.requeue and each.batch)

    @invariant()
    def a_job_ends_only_by_a_known_cause(self) -> None:
        causes = ("Not responding", "unexpectedly rebooted", "by an operator")
        for each in self.world.state.history:
            if each.what.startswith("job ") and each.what != "job started":
                assert any(cause in each.why for cause in causes), each

    @invariant()
    def no_running_job_is_on_a_node_that_is_down(self) -> None:
        for record in self.world.state.nodes.values():
            if record.down:
                assert not record.jobs


TestNight = pytest.mark.filterwarnings("error")(Night.TestCase)
TestNight.settings = settings(
    max_examples=60,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)

STEPS = st.lists(
    st.tuples(st.sampled_from((*HARMLESS, "kill_host", "reboot", "power_on")), NODES, SPANS),
    max_size=8,
)


@settings(max_examples=60, deadline=None)
@given(steps=STEPS, cuts=st.lists(st.integers(1, 599), max_size=6))
def test_a_jump_of_time_gives_the_same_world_as_many_small_ones(
    steps: list[tuple[str, NodeName, timedelta]], cuts: list[int]
) -> None:
    world = small_world()
    for plug, node, by in steps:
        world.plug(plug, arguments(plug, node))
        forward(world, by)
    other = copy.deepcopy(world)
    end = world.state.now + timedelta(seconds=600)
    for cut in sorted(cuts):
        other.tick(end - timedelta(seconds=600 - cut))
    other.tick(end)
    world.tick(end)
    assert other.snapshot(LIMIT) == world.snapshot(LIMIT)
    assert list(other.state.history) == list(world.state.history)


@settings(max_examples=40, deadline=None)
@given(back=st.integers(1, 100_000))
def test_a_clock_that_steps_back_changes_nothing(back: int) -> None:
    world = small_world()
    forward(world, timedelta(seconds=30))
    before = world.snapshot(LIMIT)
    world.tick(world.state.now - timedelta(seconds=back))
    assert world.snapshot(LIMIT) == before
