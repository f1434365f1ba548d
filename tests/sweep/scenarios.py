"""What is played: a small cluster, what happened to it, and which run is asked for. Values only."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from actions.canary.settings import CanaryRules
from actions.spares import NO_SPARES, SpareRules
from config.job_settings import CheckpointFormat, Restartable
from config.json_values import Json
from config.node_names import NodeName
from config.policy import Policy

Plug = Mapping[str, object]

CLUSTER: dict[str, object] = {
    "slurmd_timeout": 900,
    "nodes": [{"names": "gpu-[1-6]", "racks": 3}],
    "partitions": [
        {"name": "train", "nodes": "gpu-[1-4]", "default": True},
        {"name": "short", "nodes": "gpu-[4-6]"},
    ],
    "jobs": [
        {"id": "10", "name": "llama", "partition": "train", "nodes": "gpu-[1-2]"},
        {"id": "11", "name": "next", "partition": "train", "node_count": 6},
        {"id": "12", "name": "held", "user": "bo", "partition": "short", "held": "JobHeldUser"},
    ],
    "plugs": [{"plug": "admin_drain", "node": "gpu-6", "reason": "RMA 4711", "by": "dana"}],
}
"""A running job, a pending one, a held one that can be let go, and a drain that is not ours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A run that a person asks for."""

    runbook: str
    parameters: Mapping[str, Json]


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteWords:
    """What the site has said in its configuration."""

    canary: CanaryRules | None = None
    boot_time: timedelta | None = timedelta(minutes=3)
    restartable: tuple[Restartable, ...] = ()
    spares: SpareRules = NO_SPARES


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One play."""

    name: str
    earlier: tuple[Asked, ...] = ()
    """Runs that were carried out before, without a crash."""
    plugs: tuple[Plug, ...] = ()
    """What happens to the cluster then; `{"seconds": n}` lets time pass."""
    asked: Asked
    policy: Policy = field(default_factory=Policy)
    cluster: Mapping[str, object] = field(default_factory=lambda: CLUSTER)
    site: SiteWords = field(default_factory=SiteWords)
    by_the_clock: bool = False
    """It compares times that slurmctld wrote with its own clock: with a wrong one it may stop."""
    thin: int = 1
    """Of a long run only every so manyth place is disturbed, and acted at by somebody else."""
    thin_again: int = 1
    """Only from every so manyth state the recovery is killed once more: that grows with the square of
    the steps, and most states of a long run lie between two that are skipped.
    """


PROPOSE = Policy.model_validate({"autonomy": {"default": "propose", "rules": []}})


def _drain(*nodes: str) -> Asked:
    return Asked(runbook="drain-node", parameters={"nodes": list(nodes), "reason": "new cable"})


def _dropped(node: str) -> Asked:
    return Asked(runbook="node-dropped", parameters={"node": node})


def _dead_slurmd(node: str, *more: Plug) -> tuple[Plug, ...]:
    return ({"plug": "kill_slurmd", "node": node}, {"seconds": 301}, *more)


THIN = 12
"""Of each of the long runs: seconds instead of minutes, and every kind of step is still met."""
WITH_CANARY = SiteWords(canary=CanaryRules(user="canary", time_limit=timedelta(minutes=5)))
TRAINS = SiteWords(
    restartable=(
        Restartable(names=("llama",), checkpoint="/ckpt/{name}", format=CheckpointFormat.DCP),
    )
)
SPARES = SiteWords(spares=SpareRules(nodes=frozenset({NodeName("gpu-5"), NodeName("gpu-7")})))
GROUND: dict[str, object] = {
    **CLUSTER,
    "nodes": [{"names": "gpu-[1-6]"}],
    "partitions": [{"name": "train", "nodes": "gpu-[1-5]", "default": True}],
    "jobs": [
        {"id": "10", "name": "llama", "partition": "train", "nodes": "gpu-[1-3]",
         "training": {"folder": "/ckpt/llama", "steps_done": 100}},
        {"id": "11", "name": "day", "user": "bo", "partition": "train", "nodes": "gpu-4",
         "time_limit": 86_400},
        *({"id": str(number), "name": "day", "user": "bo", "partition": "train", "node_count": 3,
           "time_limit": 86_400} for number in (12, 13)),
    ],
}  # fmt: skip
"""A training job, one idle node that nobody's pending job fits on, and a queue behind it."""

SEVEN: dict[str, object] = {
    **GROUND,
    "nodes": [{"names": "gpu-[1-7]"}],
    "partitions": [{"name": "train", "nodes": "gpu-[1-5,7]", "default": True}],
    "jobs": [
        {"id": "10", "name": "llama", "partition": "train", "nodes": "gpu-2",
         "training": {"folder": "/ckpt/llama", "steps_done": 100}},
        *({"id": str(number), "name": "day", "user": "bo", "partition": "train", "nodes": node,
           "time_limit": 86_400} for number, node in ((11, "gpu-1"), (12, "gpu-3"), (13, "gpu-4"))),
    ],
}  # fmt: skip
"""No idle node but the two that are kept as spares."""

SCENARIOS = {
    scenario.name: scenario
    for scenario in (
        Scenario(name="drain-node", asked=_drain("gpu-2", "gpu-3", "gpu-5")),
        Scenario(name="drain-approved", asked=_drain("gpu-3"), policy=PROPOSE),
        Scenario(
            name="return-node",
            earlier=(_drain("gpu-3"),),
            plugs=({"seconds": 60},),
            asked=Asked(runbook="return-node", parameters={"node": "gpu-3"}),
        ),
        Scenario(
            name="dropped-A1", thin_again=4, plugs=_dead_slurmd("gpu-2"), asked=_dropped("gpu-2")
        ),
        Scenario(
            name="dropped-A1-down",
            by_the_clock=True,
            thin_again=4,
            plugs=_dead_slurmd("gpu-3", {"seconds": 901}),
            asked=_dropped("gpu-3"),
        ),
        Scenario(
            name="dropped-A4a-ours",
            thin_again=4,
            earlier=(_drain("gpu-3"),),
            plugs=({"seconds": 60}, {"plug": "late_driver", "node": "gpu-3"}),
            asked=_dropped("gpu-3"),
        ),
        Scenario(
            name="dropped-A4b",
            thin_again=4,
            plugs=({"plug": "lose_gpus", "node": "gpu-2", "present": 7},),
            asked=_dropped("gpu-2"),
        ),
        Scenario(
            name="reboot-node",
            asked=Asked(
                runbook="reboot-node", parameters={"node": "gpu-3", "reason": "new kernel"}
            ),
            by_the_clock=True,
            thin=THIN,
            thin_again=THIN,
        ),
        Scenario(
            name="return-canary",
            earlier=(_drain("gpu-3"),),
            plugs=({"seconds": 60},),
            asked=Asked(runbook="return-node", parameters={"node": "gpu-3"}),
            site=WITH_CANARY,
            by_the_clock=True,
            thin=THIN,
            thin_again=THIN,
        ),
        Scenario(
            name="return-spoiled",
            earlier=(_drain("gpu-3"),),
            plugs=({"seconds": 60}, {"plug": "fail_canary", "node": "gpu-3"}),
            asked=Asked(runbook="return-node", parameters={"node": "gpu-3"}),
            site=WITH_CANARY,
            by_the_clock=True,
            thin=THIN,
            thin_again=THIN,
        ),
        Scenario(
            name="requeue-job",
            plugs=({"plug": "freeze_node", "node": "gpu-2"}, {"seconds": 10}),
            asked=Asked(runbook="requeue-job", parameters={"job": "10", "node": "gpu-2"}),
            cluster=GROUND,
            site=TRAINS,
            by_the_clock=True,
            thin=THIN,
            thin_again=THIN,
        ),
        Scenario(
            name="replace-node",
            earlier=(
                Asked(
                    runbook="hold-spares",
                    parameters={"nodes": ["gpu-5", "gpu-7"], "user": "nwspare"},
                ),
            ),
            plugs=({"plug": "cut_link", "node": "gpu-2"}, {"seconds": 1801}),
            asked=Asked(runbook="replace-node", parameters={"node": "gpu-2", "reason": "board"}),
            cluster=SEVEN,
            site=SPARES,
            by_the_clock=True,
            thin=THIN,
            thin_again=THIN,
        ),
    )
}
