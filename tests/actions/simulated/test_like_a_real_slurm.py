"""The simulated cluster and a real Slurm go through the same script and must tell the same."""

import re
from collections.abc import Callable, Iterator, Sequence

import pytest

from actions.contract import Rejected
from actions.simulated.description import describe
from actions.simulated.world import World
from actions.simulated.writes import WriteVerb
from bot.testbed import SlurmTestbed, TestbedError, TestbedOptions
from config.ids import JobId
from tests.actions.simulated.small import (
    LIMIT,
    N1,
    SECOND,
    drain,
    forward,
    node,
    requeue,
    reserve,
    resume,
    write,
)
from tests.testbed.fixture import fresh_folder

pytestmark = [
    pytest.mark.slurm,
    pytest.mark.skipif(bool(SlurmTestbed.missing()), reason=SlurmTestbed.missing()),
]

TIMEOUT_S = 10
SLEEPER = "#!/bin/sh\nexec sleep 600\n"
REASON = re.compile(r"^\s+Reason=(.*?)(?: \[[^\]\n]*\])?$", re.MULTILINE)
STATE = re.compile(r"\bState=(\S+)")


class Twins:
    """One node in both worlds."""

    def __init__(self, real: SlurmTestbed, name: str, mode: int) -> None:
        self.real, self.name = real, name
        self.world: World = describe(
            {
                "nodes": [{"names": "gpu-1"}],
                "partitions": [{"name": "train", "nodes": "gpu-1"}],
                "slurmd_timeout": TIMEOUT_S,
                "return_to_service": mode,
            }
        )

    def drain(self, reason: str) -> None:
        self._both(("State=DRAIN", f"Reason={reason}"), lambda: drain(self.world, N1, reason))

    def resume(self) -> None:
        self._both(("State=RESUME",), lambda: resume(self.world, N1))

    def reboot(self) -> None:
        write(self.world, WriteVerb.REBOOT, N1)
        self.real.run("scontrol", "reboot", self.name)

    def shrink(self, gpus: int) -> None:
        self.world.plug("shrink_gpus", {"node": N1, "present": gpus})
        self.real.shrink_gres(self.name, gpus)

    def kill(self) -> None:
        self.world.plug("kill_slurmd", {"node": N1})
        self.real.kill_slurmd(self.name)

    def start(self) -> None:
        self.world.plug("start_slurmd", {"node": N1})
        self.real.start_slurmd(self.name)

    def agree(self, state: str, reason: str, after: int = 2) -> None:
        """Both come to this state with this Reason."""
        forward(self.world, after * SECOND)
        simulated = node(self.world, N1)
        assert (simulated.state, simulated.reason) == (state, reason)
        self.real.wait_for(
            lambda: self._seen() == (state, reason), f"{self.name} {state} {reason!r}"
        )

    def _seen(self) -> tuple[str, str]:
        text = self.real.run("scontrol", "show", "node", self.name)
        state, reason = STATE.search(text), REASON.search(text)
        base, *flags = (state[1] if state else "").split("+")
        return "+".join([base, *sorted(flags)]), reason[1] if reason else ""

    def _both(self, update: tuple[str, ...], act: object) -> None:
        """The same update in both worlds; a refusal must be the same too."""
        assert callable(act)
        real = simulated = ""
        try:
            self.real.run("scontrol", "update", f"NodeName={self.name}", *update)
        except TestbedError as error:
            real = str(error)
        try:
            act()
        except Rejected as error:
            simulated = str(error)
        assert bool(real) is bool(simulated), (real, simulated)
        assert simulated in real


@pytest.fixture(scope="module")
def slurm() -> Iterator[SlurmTestbed]:
    options = TestbedOptions(slurmd_timeout=TIMEOUT_S, return_to_service=1)
    with fresh_folder() as folder, SlurmTestbed(folder, 4, options=options) as testbed:
        yield testbed


def test_drain_and_resume(slurm: SlurmTestbed) -> None:
    twins = Twins(slurm, slurm.nodes[0], 1)
    twins.resume()  # refused by both: nothing to resume
    twins.agree("IDLE", "")
    twins.drain("")  # refused by both: no Reason
    twins.drain("first one")
    twins.drain("second one")
    twins.agree("IDLE+DRAIN", "second one")
    twins.resume()
    twins.agree("IDLE", "")


def test_fewer_gpus(slurm: SlurmTestbed) -> None:
    twins = Twins(slurm, slurm.nodes[1], 1)
    lower = "gres/gpu count reported lower than configured (7 < 8)"
    twins.shrink(7)
    twins.agree("IDLE+DRAIN+INVALID_REG", lower)
    twins.resume()  # refused by both
    twins.agree("IDLE+DRAIN+INVALID_REG", lower)
    twins.shrink(8)
    twins.agree("IDLE+DRAIN", lower)
    twins.drain("a person's")
    twins.shrink(7)
    twins.agree("IDLE+DRAIN+INVALID_REG", "a person's")
    twins.shrink(8)
    twins.agree("IDLE+DRAIN", "a person's")
    twins.resume()
    twins.agree("IDLE", "")


def test_a_dead_slurmd_on_a_free_and_on_a_drained_node(slurm: SlurmTestbed) -> None:
    free, drained = Twins(slurm, slurm.nodes[2], 1), Twins(slurm, slurm.nodes[3], 1)
    drained.drain("older")
    free.kill()
    drained.kill()
    free.agree("DOWN+NOT_RESPONDING", "Not responding", after=2 * TIMEOUT_S)
    drained.agree("DOWN+DRAIN+NOT_RESPONDING", "older", after=2 * TIMEOUT_S)
    drained.resume()
    drained.agree("IDLE+NOT_RESPONDING", "")
    free.drain("nw x")
    free.start()
    free.agree("DOWN+DRAIN", "nw x")
    free.resume()
    free.agree("IDLE", "")
    free.kill()
    free.agree("DOWN+NOT_RESPONDING", "Not responding", after=2 * TIMEOUT_S)
    drained.agree("DOWN+NOT_RESPONDING", "Not responding", after=2 * TIMEOUT_S)
    free.start()
    drained.start()
    free.agree("IDLE", "")
    drained.agree("IDLE", "")


def test_a_reboot_leaves_a_drain_and_lifts_nothing_else(slurm: SlurmTestbed) -> None:
    twins = Twins(slurm, slurm.nodes[0], 1)
    twins.drain("nw A3 [run-1/x]")
    twins.agree("IDLE+DRAIN", "nw A3 [run-1/x]")
    twins.reboot()
    twins.agree("IDLE+DRAIN", "nw A3 [run-1/x] : reboot issued", after=200)
    twins.resume()
    twins.agree("IDLE", "")


class JobTwins:
    """One job on one node of two in both worlds, and a node that is free."""

    def __init__(self, real: SlurmTestbed, nodes: Sequence[str], *options: str) -> None:
        self.real = real
        self.names = dict(zip(("gpu-1", "gpu-2"), nodes, strict=True))
        self.number = real.submit(SLEEPER, "-N1", f"-w{nodes[0]}", "-ptrain", *options)
        real.wait_for_job(self.number, "RUNNING")
        self.user = self._real_fields()["UserId"].partition("(")[0]
        self.world: World = describe(
            {
                "nodes": [{"names": "gpu-[1-2]"}],
                "partitions": [{"name": "train", "nodes": "gpu-[1-2]"}],
                "jobs": [
                    {
                        "id": str(self.number),
                        "name": "a",
                        "user": self.user,
                        "partition": "train",
                        "nodes": "gpu-1",
                        "required_nodes": "gpu-1",
                        "requeue": "--no-requeue" not in options,
                        "priority": int(self._real_fields()["Priority"]),
                    }
                ],
            }
        )

    def reserve(self, name: str, *nodes: str) -> None:
        given = ("StartTime=now", "Duration=10", f"Users={self.user}", "Flags=ignore_jobs")
        self.both(
            (
                "create",
                "reservation",
                f"ReservationName={name}",
                f"Nodes={self._of(nodes)}",
                *given,
            ),
            lambda: reserve(self.world, name, ",".join(nodes), user=self.user),
        )

    def unreserve(self, name: str) -> None:
        self.both(
            ("delete", f"ReservationName={name}"),
            lambda: write(self.world, WriteVerb.DELETE_RESERVATION, name=name),
        )

    def change(self, word: str, key: str, value: str) -> None:
        there = self._of([value]) if value in self.names else value
        self.both(
            ("update", f"JobId={self.number}", f"{word}={there}"),
            lambda: write(self.world, WriteVerb.CHANGE_JOB, job=str(self.number), **{key: value}),
        )

    def requeue(self) -> None:
        self.both(
            ("requeue", "Incomplete", str(self.number)),
            lambda: requeue(self.world, str(self.number)),
        )

    def both(self, words: tuple[str, ...], act: Callable[[], None]) -> None:
        """The same in both worlds; a refusal must be the same too."""
        real = simulated = ""
        try:
            self.real.run("scontrol", *words)
        except TestbedError as error:
            real = str(error)
        try:
            act()
        except Rejected as error:
            simulated = str(error)
        assert bool(real) is bool(simulated), (real, simulated)
        assert simulated in real

    def agree(self, **wanted: str) -> None:
        """Both tell the same of the job."""
        forward(self.world, 2 * SECOND)
        seen = self.world.fresh_job(JobId(str(self.number)), LIMIT)
        told = {
            "JobState": seen.state,
            "Restarts": str(seen.restarts),
            "Priority": str(seen.priority),
            "ExcNodeList": self._of([seen.excluded_nodes]) if seen.excluded_nodes else "(null)",
            "Reservation": seen.reservation,
            "NodeList": self._of(seen.nodes),
        }
        assert wanted.items() <= told.items()
        self.real.wait_for(lambda: self._shown(told) == told, f"job {self.number} {told}")

    def _shown(self, told: dict[str, str]) -> dict[str, str]:
        fields = self._real_fields()
        return {
            key: fields.get(key, "").replace("(null)", "") or told[key]
            if key == "NodeList"
            else fields.get(key, "")
            for key in told
        }

    def _real_fields(self) -> dict[str, str]:
        text = self.real.run("scontrol", "-o", "show", "job", str(self.number))
        return dict(re.findall(r"(\w+)=(\S*)", text))

    def _of(self, nodes: Sequence[str]) -> str:
        return ",".join(self.names[name] for name in nodes)


def test_a_job_that_is_requeued_into_a_reservation(slurm: SlurmTestbed) -> None:
    twins = JobTwins(slurm, slurm.nodes[:2])
    twins.reserve("nw-1", "gpu-1", "gpu-2")
    twins.reserve("nw-1", "gpu-2")  # refused by both: the name
    twins.reserve("nw-2", "gpu-2")  # refused by both: the node
    twins.change("Priority", "priority", "77")
    twins.change("ExcNodeList", "excluded_nodes", "gpu-2")  # refused by both: it runs
    twins.change("ReservationName", "reservation", "nw-9")  # refused by both
    twins.requeue()
    twins.agree(JobState="PENDING", Restarts="1", Priority="77")
    twins.requeue()  # nothing to requeue, and no error
    twins.change("ReservationName", "reservation", "nw-1")
    twins.change("ExcNodeList", "excluded_nodes", "gpu-2")
    twins.agree(JobState="PENDING", Restarts="1", Reservation="nw-1")
    twins.unreserve("nw-1")  # refused by both: the job points to it
    twins.change("ReservationName", "reservation", "")
    twins.unreserve("nw-1")
    twins.unreserve("nw-1")  # refused by both: there is none
    twins.agree(Reservation="", Priority="77")
    slurm.cancel(twins.number)


def test_a_job_that_may_not_be_requeued(slurm: SlurmTestbed) -> None:
    twins = JobTwins(slurm, slurm.nodes[:2], "--no-requeue")
    twins.requeue()  # refused by both
    twins.agree(JobState="RUNNING", Restarts="0")
    slurm.cancel(twins.number)


def test_a_partition_list_with_an_unknown_node_is_half_applied(slurm: SlurmTestbed) -> None:
    world: World = describe(
        {
            "nodes": [{"names": "gpu-[1-4]"}],
            "partitions": [{"name": "train", "nodes": "gpu-[1-2]"}],
        }
    )
    before = slurm.partition("train")["Nodes"]
    real = f"{slurm.nodes[0]},gpu-99,{slurm.nodes[3]}"
    with pytest.raises(TestbedError, match="Invalid node name specified"):
        slurm.run("scontrol", "update", "PartitionName=train", f"Nodes={real}")
    with pytest.raises(Rejected, match="Invalid node name specified"):
        write(world, WriteVerb.SET_PARTITION_NODES, partition="train", nodes="gpu-1,gpu-99,gpu-4")
    (seen,) = world.snapshot(LIMIT).partitions
    shown = slurm.partition("train")
    assert (shown["Nodes"], shown["TotalNodes"]) == (before, str(seen.total_nodes))
    assert seen.nodes == ("gpu-1", "gpu-2")
    in_it = [name for name in world.state.nodes if node(world, name).partitions]
    assert in_it == ["gpu-1", "gpu-4"]
    for index, name in enumerate(slurm.nodes):
        listed = slurm.node(name)["Partitions"].split(",")
        assert ("train" in listed) is (f"gpu-{index + 1}" in in_it)
    slurm.run("scontrol", "reconfigure")
    world.plug("reconfigure", {})
    assert slurm.partition("train")["TotalNodes"] == str(
        world.snapshot(LIMIT).partitions[0].total_nodes
    )
