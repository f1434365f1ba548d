"""The small cluster of these tests: eight nodes, one two-node job, one that may not be requeued."""

from dataclasses import dataclass
from datetime import timedelta

from actions.cluster import Job, Node
from actions.simulated.client import SimulatedCluster, SimulatedNodes
from actions.simulated.description import describe
from actions.simulated.plugs import Plugs
from actions.simulated.world import World
from actions.simulated.writes import Write, WriteVerb
from config.node_names import NodeName

LIMIT = timedelta(seconds=5)
SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)

N1, N2, N3, N4, N5, N6, N7, N8 = (NodeName(f"gpu-{number}") for number in range(1, 9))
TRAINING, FRAGILE, NOTEBOOK, WAITING = 10, 11, 12, 13

SMALL: dict[str, object] = {
    "nodes": [{"names": "gpu-[1-8]", "racks": 2}],
    "partitions": [
        {"name": "train", "nodes": "gpu-[1-6]", "default": True},
        {"name": "short", "nodes": "gpu-[5-8]"},
    ],
    "jobs": [
        {"id": "10", "name": "llama", "partition": "train", "nodes": "gpu-[1-2]"},
        {"id": "11", "name": "fragile", "partition": "train", "nodes": "gpu-3", "requeue": False},
        {"id": "12", "name": "nb", "partition": "train", "nodes": "gpu-4", "batch": False},
        {"id": "13", "name": "next", "partition": "train", "node_count": 6},
    ],
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A small world behind its socket, time standing still."""

    cluster: SimulatedCluster
    nodes: SimulatedNodes
    plugs: Plugs


def small_world(**changes: object) -> World:
    return describe({**SMALL, **changes})


def forward(world: World, by: timedelta) -> None:
    world.tick(world.state.now + by)


def node(world: World, name: NodeName) -> Node:
    return world.fresh_node(name, LIMIT)


def job(world: World, number: int) -> Job:
    return next(each for each in world.snapshot(LIMIT).jobs if each.slurm_id == number)


def drain(world: World, name: NodeName, reason: str, by: str = "nodewarden") -> None:
    world.write(Write(verb=WriteVerb.DRAIN, node=name, arguments={"reason": reason}, caller=by))


def resume(world: World, name: NodeName) -> None:
    world.write(Write(verb=WriteVerb.RESUME, node=name, arguments={}))


def start(world: World, name: NodeName, unit: str = "slurmd") -> int | None:
    verb = WriteVerb.START_SERVICE
    done = world.write(Write(verb=verb, node=name, arguments={"unit": unit, "effect_id": "e"}))
    assert done is not None
    return done.exit_code


def write(world: World, verb: WriteVerb, node: str = "", /, **arguments: str) -> None:
    """A write of the bot on slurmctld."""
    world.write(Write(verb=verb, node=NodeName(node), arguments=arguments, caller="nodewarden"))


def requeue(world: World, *jobs: str) -> None:
    write(world, WriteVerb.REQUEUE, jobs=",".join(jobs))


def reserve(world: World, name: str, nodes: str, **given: str) -> None:
    """Ours for ann, ten minutes long, over running jobs, unless it is said otherwise."""
    wanted = {"user": "ann", "minutes": "10", "flags": "IGNORE_JOBS", **given}
    write(world, WriteVerb.CREATE_RESERVATION, name=name, nodes=nodes, **wanted)
