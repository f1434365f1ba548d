"""One contract for both back ends: the same scene is read to the same values.

The library itself needs Slurm 25.11's own library on the machine. Where it is not importable, a
player of its recorded values stands in its place, and the last test says so.
"""

import importlib.util
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from actions.cluster import Job, Node, Snapshot
from actions.shell import Runner
from actions.slurm.cli import SlurmCli
from actions.slurm.tools import SlurmSettings
from bot.testbed import SlurmTestbed
from config.ids import ClusterName
from config.node_names import NodeName
from tests.actions.slurm import library
from tests.actions.slurm.conftest import RECORDINGS, HandClock
from tests.actions.slurm.replay import install
from tests.actions.slurm.test_recordings import expected, jobs_of, nodes_of

WHEN_RECORDED = datetime(2026, 11, 30, 17, 30, tzinfo=UTC)
SCENES = ("25.11", "25.11-mass-drop")
Client = Callable[..., SlurmCli]


@pytest.fixture
def over_scene(tmp_path: Path, clock: HandClock, monkeypatch: pytest.MonkeyPatch) -> Client:
    """A client of a recorded scene with this back end."""

    def make(scene: str, backend: str, **player: str) -> SlurmCli:
        tools = install(tmp_path / "tools", RECORDINGS / scene)
        if backend != "cli":
            found = library.install(tmp_path / "library", RECORDINGS / scene, **player)
            monkeypatch.setattr(sys, "path", [str(found), *sys.path])
        settings = SlurmSettings(
            cluster=ClusterName("mini"), path=f"{tools}:/usr/bin:/bin", backend=backend
        )
        return SlurmCli(settings, Runner(), clock, clock.pass_by)

    return make


def by_id(snapshot: Snapshot) -> dict[str, Job]:
    return {str(job.id): job for job in snapshot.jobs}


def without_usage(node: Node) -> Node:
    """pyslurm does not know which GPUs are in use where the cluster does not count them."""
    return replace(node, gpus_used=None)


@pytest.mark.parametrize("scene", SCENES)
def test_both_back_ends_give_equal_values(scene: str, over_scene: Client, clock: HandClock) -> None:
    clock.wall = WHEN_RECORDED
    told, read = over_scene(scene, "cli").snapshot(), over_scene(scene, "pyslurm").snapshot()
    assert {name: without_usage(node) for name, node in told.nodes.items()} == read.nodes
    assert by_id(told) == by_id(read)
    assert told.reservations == read.reservations
    assert told.controller == read.controller
    assert told.blind == read.blind == ()
    # Only pyslurm and 26.05 tell which partition is the default one and what it preempts.
    unsaid = [replace(one, default=False, preempt_mode="") for one in read.partitions]
    assert told.partitions == tuple(unsaid)
    assert [one.name for one in read.partitions if one.default] == ["train"]


@pytest.mark.parametrize("backend", ["cli", "pyslurm", "auto"])
@pytest.mark.parametrize("scene", SCENES)
def test_each_back_end_reads_what_the_text_outputs_say(
    scene: str, backend: str, over_scene: Client
) -> None:
    client = over_scene(scene, backend)
    snapshot = client.snapshot()
    assert nodes_of(snapshot) == expected(scene, "node")
    assert jobs_of(snapshot) == expected(scene, "job")
    assert client.remarks() == ()


@pytest.mark.parametrize("backend", ["cli", "pyslurm"])
def test_each_back_end_sees_what_one_fresh_look_sees(backend: str, over_scene: Client) -> None:
    client = over_scene("25.11", backend)
    for name in ("gpu-01", "gpu-06", "gpu-08", "gpu-11"):
        node = client.fresh_node(NodeName(name))
        assert without_usage(client.snapshot().nodes[NodeName(name)]) == without_usage(node)


def test_task_0_of_an_array_and_the_tasks_that_wait_have_their_names(over_scene: Client) -> None:
    waits = {"array_task_id": None, "array_tasks_waiting": "3-9", "array_tasks_parallel": 2}
    change = {"jobs": {"2": {**waits, "state": "PENDING"}}}
    jobs = by_id(over_scene("25.11", "pyslurm", changes=json.dumps(change)).snapshot())
    assert {"2_0", "2_1", "2_2", "2_[3-9%2]"} <= jobs.keys()
    assert jobs["2_[3-9%2]"].array_task == "3-9%2"


def test_counted_gpus_are_told_for_jobs_and_nodes(over_scene: Client) -> None:
    change = {
        "nodes": {"gpu-01": {"allocated_tres": {"cpu": 1, "gres/gpu": 8, "gres/gpu:h100": 8}}},
        "jobs": {
            "1": {"allocated_tres": {"count": {"gpu": 16, "gpu:h100": 16}}, "gres_per_node": {}},
            "3": {"requested_tres": {"count": {"gpu": 48}}, "gres_per_node": {}},
        },
    }
    snapshot = over_scene("25.11", "pyslurm", changes=json.dumps(change)).snapshot()
    assert snapshot.nodes[NodeName("gpu-01")].gpus_used == 8
    assert (by_id(snapshot)["1"].gpus, by_id(snapshot)["3"].gpus) == (16, 48)


def test_bytes_that_are_not_utf_8_survive_in_a_name(over_scene: Client) -> None:
    change = {"jobs": {"1": {"name": "bytes:6cff6c"}}}
    snapshot = over_scene("25.11", "pyslurm", changes=json.dumps(change)).snapshot()
    assert by_id(snapshot)["1"].name == r"l\xffl"


def test_jobs_of_a_federation_carry_their_origin(over_scene: Client) -> None:
    change = {"federation_origin": "west", "federation_siblings_active": ["west", "mini"]}
    changes = json.dumps({"jobs": {"1": change}})
    job = by_id(over_scene("25.11", "pyslurm", changes=changes).snapshot())["1"]
    assert job.federation_siblings == ("west", "mini")
    assert job.elsewhere(ClusterName("mini"))
    assert not job.elsewhere(ClusterName("west"))


def test_a_node_that_cannot_be_read_is_shown_and_the_others_too(over_scene: Client) -> None:
    changes = json.dumps({"nodes": {"gpu-04": {"boot_time": "yesterday"}}})
    snapshot = over_scene("25.11", "pyslurm", changes=changes).snapshot()
    assert snapshot.nodes[NodeName("gpu-04")].unknown_flags == {"UNREADABLE"}
    assert len(snapshot.nodes) == 12


NO_LIBRARY = importlib.util.find_spec("pyslurm") is None


@pytest.mark.slurm
@pytest.mark.skipif(
    NO_LIBRARY, reason="pyslurm is not installed: its recorded values stood in its place above"
)
def test_the_library_itself_reads_what_the_tools_read(
    request: pytest.FixtureRequest, clock: HandClock
) -> None:
    testbed: SlurmTestbed = request.getfixturevalue("slurm_testbed")
    settings = SlurmSettings(
        cluster=ClusterName(testbed.options.cluster),
        slurm_conf=str(testbed.slurm_conf),
        own_user=testbed.bot_user,
    )
    told, read = (
        SlurmCli(replace(settings, backend=backend), Runner(), clock, clock.pass_by).snapshot()
        for backend in ("cli", "pyslurm")
    )
    assert {name: without_usage(node) for name, node in told.nodes.items()} == {
        name: without_usage(node) for name, node in read.nodes.items()
    }
    assert by_id(told) == by_id(read)
