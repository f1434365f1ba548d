"""What is played: a small cluster, what happened to it, and which run is asked for. Values only."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from config.json_values import Json
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


PROPOSE = Policy.model_validate({"autonomy": {"default": "propose", "rules": []}})


def _drain(*nodes: str) -> Asked:
    return Asked(runbook="drain-node", parameters={"nodes": list(nodes), "reason": "new cable"})


def _dropped(node: str) -> Asked:
    return Asked(runbook="node-dropped", parameters={"node": node})


def _dead_slurmd(node: str, *more: Plug) -> tuple[Plug, ...]:
    return ({"plug": "kill_slurmd", "node": node}, {"seconds": 301}, *more)


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
        Scenario(name="dropped-A1", plugs=_dead_slurmd("gpu-2"), asked=_dropped("gpu-2")),
        Scenario(
            name="dropped-A1-down",
            plugs=_dead_slurmd("gpu-3", {"seconds": 901}),
            asked=_dropped("gpu-3"),
        ),
        Scenario(
            name="dropped-A4a-ours",
            earlier=(_drain("gpu-3"),),
            plugs=({"seconds": 60}, {"plug": "late_driver", "node": "gpu-3"}),
            asked=_dropped("gpu-3"),
        ),
        Scenario(
            name="dropped-A4b",
            plugs=({"plug": "lose_gpus", "node": "gpu-2", "present": 7},),
            asked=_dropped("gpu-2"),
        ),
    )
}
