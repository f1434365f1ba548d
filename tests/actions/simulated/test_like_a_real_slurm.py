"""The simulated cluster and a real Slurm go through the same script and must tell the same."""

import re
from collections.abc import Iterator

import pytest

from actions.contract import Rejected
from actions.simulated.description import describe
from actions.simulated.world import World
from bot.testbed import SlurmTestbed, TestbedError, TestbedOptions
from tests.actions.simulated.small import N1, SECOND, drain, forward, node, resume
from tests.testbed.fixture import fresh_folder

pytestmark = [
    pytest.mark.slurm,
    pytest.mark.skipif(bool(SlurmTestbed.missing()), reason=SlurmTestbed.missing()),
]

TIMEOUT_S = 10
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
