"""Clusters that are ready to try: the demo's 80 nodes, and large ones for measurements.

Called by `server`, the sandbox and benchmarks. The scenes are data; `description` makes them.
"""

from datetime import datetime

from actions.simulated.description import describe
from actions.simulated.state import DAWN
from actions.simulated.world import World

HOSTILE_REASON = 'disk full: /scratch 98% "see <#C123>" & ask @dana – דנה'
HOSTILE_NAMES = ("a<!channel>&`id`", "x JobState=COMPLETED NodeList=gpu-99")

_DEMO: dict[str, object] = {
    "cluster": "sim",
    "nodes": [
        {"names": "gpu-[001-064]", "racks": 8},
        {"names": "gpu-[065-080]", "racks": 2, "first_rack": 9},
    ],
    "partitions": [
        {"name": "train", "nodes": "gpu-[001-068]", "default": True},
        {"name": "short", "nodes": "gpu-[065-076]"},
        {"name": "spare", "nodes": "gpu-[077-080]", "hidden": True},
    ],
    "jobs": [
        {"id": "70", "name": "llama-70b", "partition": "train", "nodes": "gpu-[001-064]",
         "comment": "ckpt=/ckpt/llama-70b/latest"},
        {"id": "71", "name": "moe-ablation", "user": "bo", "partition": "short",
         "nodes": "gpu-[066-067]", "requeue": False},
        {"id": "72_0", "slurm_id": 72, "name": "sweep", "user": "chen", "partition": "short",
         "nodes": "gpu-069", "gpus_per_node": 1},
        {"id": "72_1", "slurm_id": 73, "name": "sweep", "user": "chen", "partition": "short",
         "nodes": "gpu-069", "gpus_per_node": 1},
        {"id": "72_[2-9]", "slurm_id": 74, "name": "sweep", "user": "chen", "partition": "short",
         "gpus_per_node": 1},
        {"id": "75", "name": "notebook", "user": "dana", "partition": "short", "nodes": "gpu-070",
         "gpus_per_node": 2, "batch": False},
        {"id": "76", "name": HOSTILE_NAMES[0], "user": "eve", "partition": "short",
         "nodes": "gpu-071"},
        {"id": "77", "name": HOSTILE_NAMES[1], "user": "eve", "partition": "short",
         "nodes": "gpu-072"},
        {"id": "80", "name": "too-big", "user": "bo", "partition": "train", "node_count": 66},
        {"id": "81", "name": "eval", "partition": "short", "after_ok": 70},
        {"id": "82", "name": "held", "user": "chen", "partition": "train", "held": "JobHeldUser"},
    ],
    "plugs": [
        {"plug": "admin_drain", "node": "gpu-073", "reason": HOSTILE_REASON, "by": "dana",
         "ago": 604_800},
        {"plug": "admin_down", "node": "gpu-074", "reason": "RMA 4711", "by": "dana"},
        {"plug": "reserve", "name": "drv580", "nodes": "gpu-[075-076]", "lasts": 604_800},
    ],
}  # fmt: skip
"""A 64-node 512-GPU job, arrays, an interactive and two hostile jobs, an admin's drain of days ago."""


def demo(starts_at: datetime = DAWN) -> World:
    """The cluster of the sandbox; a bot on a real clock needs it to start at that clock's now."""
    return describe({**_DEMO, "starts_at": starts_at})


def scale(nodes: int, jobs: int = 0, starts_at: datetime = DAWN) -> World:
    """A large cluster: racks of 8 nodes, half of them busy, and `jobs` pending jobs besides."""
    width = len(str(nodes))
    last = f"{nodes:0{width}d}"
    whole = f"gpu-[{1:0{width}d}-{last}]"
    running = [
        {
            "id": str(number),
            "name": f"job-{number}",
            "partition": "train",
            "nodes": f"gpu-{number:0{width}d}",
        }
        for number in range(1, nodes // 2 + 1)
    ]
    pending = [
        {
            "id": str(nodes + number),
            "name": f"wait-{number}",
            "partition": "train",
            "node_count": nodes,
            "held": "JobHeldUser",
        }
        for number in range(1, jobs + 1)
    ]
    return describe(
        {
            "cluster": "sim",
            "starts_at": starts_at,
            "nodes": [{"names": whole, "racks": max(1, nodes // 8)}],
            "partitions": [{"name": "train", "nodes": whole, "default": True}],
            "jobs": [*running, *pending],
        }
    )
