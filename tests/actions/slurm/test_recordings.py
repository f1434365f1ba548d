"""Every recorded release is read as a person reads its text outputs."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from actions.cluster import Job, Node, Snapshot
from actions.slurm.cli import SlurmCli
from config.node_names import NodeName, expand_unchecked
from tests.actions.slurm.conftest import RECORDINGS

EXPECTED: Any = YAML(typ="safe", pure=True).load(RECORDINGS / "expected.yaml")
RELEASES = sorted(EXPECTED["releases"])
Client = Callable[..., SlurmCli]


def moment(text: str) -> datetime | None:
    return None if text == "none" else datetime.fromisoformat(text).replace(tzinfo=UTC)


def span(text: str) -> timedelta:
    days, _, rest = text.rpartition("-")
    hours, minutes, seconds = (int(part) for part in rest.split(":"))
    return timedelta(days=int(days or 0), hours=hours, minutes=minutes, seconds=seconds)


def names(text: str) -> tuple[NodeName, ...]:
    return expand_unchecked(text).names if text else ()


def expected(release: str, kind: str) -> dict[str, dict[str, Any]]:
    columns = EXPECTED[f"{kind}_columns"]
    rows = [
        dict(zip(columns, row, strict=True)) for row in EXPECTED["releases"][release][f"{kind}s"]
    ]
    return {row[columns[0]]: {key: converted(key, row[key]) for key in row} for row in rows}


def converted(key: str, value: Any) -> Any:
    if key.endswith(("_at", "_time")):
        return moment(value)
    if isinstance(value, list):
        return frozenset(value)
    if key == "nodes":
        return names(value)
    return span(value) if key == "time_limit" else value


def told(value: Node | Job, columns: list[str]) -> dict[str, Any]:
    return {column: getattr(value, column) for column in columns}


def nodes_of(snapshot: Snapshot) -> dict[str, dict[str, Any]]:
    return {n: told(node, EXPECTED["node_columns"]) for n, node in snapshot.nodes.items()}


def jobs_of(snapshot: Snapshot) -> dict[str, dict[str, Any]]:
    return {str(job.id): told(job, EXPECTED["job_columns"]) for job in snapshot.jobs}


@pytest.mark.parametrize("with_json", [True, False], ids=["json", "text"])
@pytest.mark.parametrize("release", RELEASES)
def test_every_node_and_job_is_as_the_text_outputs_say(
    release: str, with_json: bool, over_recording: Client
) -> None:
    snapshot = over_recording(release, with_json=with_json).snapshot()
    assert nodes_of(snapshot) == expected(release, "node")
    assert jobs_of(snapshot) == expected(release, "job")


@pytest.mark.parametrize("with_json", [True, False], ids=["json", "text"])
@pytest.mark.parametrize("release", RELEASES)
def test_controller_partitions_and_reservations_are_as_the_text_outputs_say(
    release: str, with_json: bool, over_recording: Client
) -> None:
    snapshot = over_recording(release, with_json=with_json).snapshot()
    wanted = EXPECTED["releases"][release]
    controller = dict(wanted["controller"])
    assert snapshot.controller.booted_at == moment(controller.pop("booted_at"))
    assert snapshot.controller.slurmd_timeout == timedelta(
        seconds=controller.pop("slurmd_timeout_s")
    )
    assert snapshot.controller.resume_timeout == timedelta(
        seconds=controller.pop("resume_timeout_s")
    )
    assert {key: getattr(snapshot.controller, key) for key in controller} == controller
    assert [(p.name, p.state, p.nodes, p.total_nodes) for p in snapshot.partitions] == [
        (p["name"], p["state"], names(p["nodes"]), p["total_nodes"]) for p in wanted["partitions"]
    ]
    assert {p.priority_tier for p in snapshot.partitions} == {1}
    # Text tells it of each release, JSON since 26.05.
    told = {"CLUSTER_GLOBAL"} if with_json and release == "26.05" else {"OFF"}
    told = {""} if with_json and release in {"24.11", "25.11", "25.11-mass-drop"} else told
    assert {p.preempt_mode for p in snapshot.partitions} == told
    (reservation,) = snapshot.reservations
    (want,) = wanted["reservations"]
    assert reservation.name == want["name"]
    assert reservation.nodes == names(want["nodes"])
    assert (reservation.starts_at, reservation.ends_at) == (
        moment(want["starts_at"]),
        moment(want["ends_at"]),
    )
    assert reservation.flags == frozenset(want["flags"])
    assert reservation.users == tuple(want["users"])


@pytest.mark.parametrize("release", RELEASES)
def test_json_and_text_agree_in_every_field(
    release: str, over_recording: Client, tmp_path: Path
) -> None:
    from_json = over_recording(release).snapshot()
    from_text = over_recording(release, with_json=False).snapshot()
    for name, node in from_json.nodes.items():
        assert fields(node, "gpus_used") == fields(from_text.nodes[name], "gpus_used")
    assert [fields(job) for job in by_id(from_json)] == [fields(job) for job in by_id(from_text)]
    assert from_json.blind == from_text.blind == ()


def by_id(snapshot: Snapshot) -> list[Job]:
    return sorted(snapshot.jobs, key=lambda job: job.slurm_id)


def fields(value: Node | Job, *without: str) -> Mapping[str, object]:
    return {key: getattr(value, key) for key in value.__slots__ if key not in without}


@pytest.mark.parametrize("release", RELEASES)
def test_one_fresh_node_equals_the_same_node_of_the_snapshot(
    release: str, over_recording: Client
) -> None:
    client = over_recording(release)
    for name in ("gpu-01", "gpu-08", "gpu-11"):
        assert client.fresh_node(NodeName(name)) == client.snapshot().nodes[NodeName(name)]


@pytest.mark.parametrize("release", RELEASES)
def test_fresh_jobs_of_a_node_are_those_that_hold_it(release: str, over_recording: Client) -> None:
    client = over_recording(release)
    jobs = {job.id for job in client.fresh_jobs(NodeName("gpu-03"))}
    assert jobs == {job.id for job in client.snapshot().jobs_on(NodeName("gpu-03"))}


def test_releases_differ_only_where_it_is_written_down() -> None:
    may = EXPECTED["may_differ"]
    for kind in ("node", "job"):
        seen: dict[str, dict[str, Any]] = {}
        for release in RELEASES:
            found = expected(release, kind)
            only = set(may["only_in"].get(release, ())) if kind == "job" else set()
            for name in found.keys() - only:
                for key, value in found[name].items():
                    if key not in may[f"{kind}s"]:
                        assert seen.setdefault(name, {}).setdefault(key, value) == value, (
                            name,
                            key,
                        )
