"""Whatever is requeued, reserved, frozen, cut off and forgotten in whatever order."""

import contextlib
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from actions.contract import Rejected, Unreadable
from actions.simulated.training_rules import TWO_WRITERS
from actions.simulated.world import World
from actions.simulated.writes import WriteVerb
from config.node_names import NodeName
from tests.actions.simulated.small import forward, requeue, reserve, small_world, write

NODES = st.sampled_from([f"gpu-{number}" for number in range(1, 9)])
JOBS = st.sampled_from([10, 11, 12, 13])
NAMES = st.sampled_from(["nw-1", "nw-2"])
SPANS = st.integers(1, 900).map(lambda seconds: timedelta(seconds=seconds))
REFUSED = (Rejected, Unreadable)


def trained() -> World:
    world = small_world()
    world.plug("train_job", {"job": 10, "folder": "/ckpt/llama"})
    return world


class Ground(RuleBasedStateMachine):
    """Reservations, requeues and reboots over eight nodes."""

    def __init__(self) -> None:
        super().__init__()
        self.world = trained()
        self.cut = False

    @rule(by=SPANS)
    def time_passes(self, by: timedelta) -> None:
        forward(self.world, by)

    @rule(job=JOBS)
    def a_job_is_requeued(self, job: int) -> None:
        with contextlib.suppress(*REFUSED):
            requeue(self.world, str(job))

    @rule(name=NAMES, nodes=st.sets(NODES, min_size=1, max_size=4), flex=st.booleans())
    def nodes_are_reserved(self, name: str, nodes: set[str], flex: bool) -> None:
        flags = "IGNORE_JOBS,FLEX" if flex else "IGNORE_JOBS"
        with contextlib.suppress(*REFUSED):
            reserve(self.world, name, ",".join(sorted(nodes)), flags=flags)

    @rule(name=NAMES)
    def a_reservation_is_deleted(self, name: str) -> None:
        pointed = {job.reservation for job in self.world.state.jobs.values() if not job.ended_at}
        try:
            write(self.world, WriteVerb.DELETE_RESERVATION, name=name)
        except REFUSED:
            return
        assert name not in pointed

    @rule(job=JOBS, name=NAMES)
    def a_job_is_pointed(self, job: int, name: str) -> None:
        with contextlib.suppress(*REFUSED):
            write(self.world, WriteVerb.CHANGE_JOB, job=str(job), reservation=name)

    @rule(node=NODES)
    def a_node_is_rebooted(self, node: str) -> None:
        with contextlib.suppress(*REFUSED):
            write(self.world, WriteVerb.REBOOT, node)

    @rule(node=NODES, frozen=st.booleans())
    def a_file_system_hangs_or_not(self, node: str, frozen: bool) -> None:
        self.world.plug("freeze_node", {"node": node, "frozen": frozen})

    @rule(node=NODES)
    def a_link_is_cut(self, node: str) -> None:
        self.cut = True
        self.world.plug("cut_link", {"node": node})

    @rule(node=NODES)
    def a_link_is_back(self, node: str) -> None:
        self.world.plug("restore_link", {"node": node})

    @rule()
    def the_controller_is_killed(self) -> None:
        self.world.plug("controller_restart", {"away": 2})

    @invariant()
    def nobody_runs_on_what_is_reserved_for_another(self) -> None:
        state = self.world.state
        for job in state.jobs.values():
            if job.state != "RUNNING" or job.started_at != state.now:
                continue  # reserved over running work: that goes on
            for found in state.reservations.values():
                if found.active(state.now) and set(found.nodes) & set(job.nodes):
                    assert found.name == job.reservation or found.starts_at == state.now

    @invariant()
    def a_job_points_to_what_there_is(self) -> None:
        state = self.world.state
        if state.controller.up:
            for job in state.jobs.values():
                assert job.ended_at or job.reservation in {"", *state.reservations}

    @invariant()
    def checkpoints_are_multiples_and_none_lies_ahead(self) -> None:
        training = self.world.state.trainings[10]
        furthest = max((made.step for made in training.checkpoints), default=0)
        assert all(made.step % training.checkpoint_every == 0 for made in training.checkpoints)
        assert all(made.at <= self.world.state.now for made in training.checkpoints)
        assert training.resumes_at(self.world.state.now) <= furthest

    @invariant()
    def only_a_cut_link_leaves_two_writers(self) -> None:
        written = [each for each in self.world.state.history if each.what == TWO_WRITERS]
        assert self.cut or not written

    @invariant()
    def ranks_are_where_a_host_has_power(self) -> None:
        for host in self.world.state.hosts.values():
            assert host.powered or not host.ranks
            assert NodeName(host.name) in self.world.state.nodes


TestGround = pytest.mark.filterwarnings("error")(Ground.TestCase)
TestGround.settings = settings(
    max_examples=40,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
