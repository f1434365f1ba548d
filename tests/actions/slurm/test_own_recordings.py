"""States that the scene of the other recordings does not have, asked by users who are not root."""

from datetime import timedelta
from typing import Any

import pytest

from actions.cluster import Job, Node
from actions.contract import Unreadable
from actions.slurm.sight import blindness
from actions.slurm.tools import SlurmSettings, Tools
from config.ids import ClusterName
from config.node_names import NodeName
from tests.actions.slurm.played import Played
from tests.actions.slurm.test_recordings import EXPECTED, names

OWN: Any = EXPECTED["own"]
GPU_04, GPU_09 = NodeName("gpu-04"), NodeName("gpu-09")


def tools(name: str) -> tuple[Tools, Played]:
    """In text, which all of these releases have; the crowd's jobs were asked for in JSON."""
    played = Played(f"22.05-{name}")
    settings = SlurmSettings(cluster=ClusterName("mini"), own_user=played.user)
    return Tools(settings, played, () if name == "crowd" else ("jobs",)), played


def rows(kind: str) -> list[dict[str, Any]]:
    columns = OWN[f"{kind}_columns"]
    return [dict(zip(columns, row, strict=True)) for row in OWN[f"{kind}s"]]


def told(value: Node | Job, columns: list[str]) -> dict[str, Any]:
    return {column: getattr(value, column) for column in columns}


def test_every_node_is_as_the_answers_say() -> None:
    wanted = [{**row, "partitions": frozenset(row["partitions"])} for row in rows("node")]
    found = tools("crowd")[0].nodes()
    assert [told(node, OWN["node_columns"]) for node in found.values()] == wanted
    assert not any(node.unknown_flags for node in found.values())


@pytest.mark.parametrize("name", ["crowd", "stranger"], ids=["json", "rows"])
def test_every_job_is_as_the_answers_say_in_both_forms(name: str) -> None:
    wanted = {row["id"]: {**row, "nodes": names(row["nodes"])} for row in rows("job")}
    found = {str(job.id): told(job, OWN["job_columns"]) for job in tools(name)[0].jobs()}
    assert found == wanted


def test_both_forms_agree_in_what_moves_too() -> None:
    def moving(name: str) -> dict[int, tuple[object, ...]]:
        return {
            job.slurm_id: (job.submitted_at, job.started_at, job.time_limit, job.priority, job.qos)
            for job in tools(name)[0].jobs()
        }

    assert moving("crowd") == moving("stranger")


def test_hidden_partitions_and_their_jobs_are_listed_for_a_user_without_rights() -> None:
    found = tools("stranger")[0]
    hidden = [one.name for one in found.partitions() if one.hidden]
    assert hidden == OWN["hidden_partitions"]
    assert [job.slurm_id for job in found.jobs() if GPU_09 in job.nodes] == [6]


def test_reservations_are_as_the_answers_say() -> None:
    found, played = tools("crowd")
    assert [
        {"name": one.name, "nodes": one.nodes, "flags": one.flags, "users": one.users}
        for one in found.reservations(played.at)
    ] == [
        {
            "name": one["name"],
            "nodes": names(one["nodes"]),
            "flags": frozenset(one["flags"]),
            "users": tuple(one["users"]),
        }
        for one in OWN["reservations"]
    ]


def test_a_suspended_job_is_on_its_node_though_the_node_is_idle() -> None:
    found, _ = tools("crowd")
    node = found.nodes()[GPU_04]
    assert (node.base, node.cpus_allocated, node.busy) == ("IDLE", 0, True)  # its GPUs are held
    (job,) = found.jobs_on(GPU_04)
    assert (job.state, job.holds_nodes) == ("SUSPENDED", True)


def test_an_empty_list_of_jobs_is_not_believed_where_jobs_are_private() -> None:
    found, played = tools("private")
    private_data = found.controller().private_data
    nodes, jobs = found.nodes(), found.jobs()
    assert jobs == ()
    assert "jobs" in private_data
    blind = blindness(nodes.values(), jobs, private_data, played.user, played.at)
    busy = {node.name for node in nodes.values() if node.busy}
    assert busy >= {NodeName("gpu-01"), NodeName("gpu-11"), GPU_09}
    assert len(blind) == len(busy) + 1
    assert "PrivateData=jobs is set and no other user's job is visible" in blind[-1]


def test_right_after_a_start_nodes_are_unknown_and_a_suspended_job_is_the_only_trace() -> None:
    found, _ = tools("private")  # the controller had started four seconds before
    states = {node.state for node in found.nodes().values() if not node.busy}
    assert any(state.startswith("UNKNOWN") for state in states)


def test_the_controller_that_answers_is_named_before_and_after_a_take_over() -> None:
    before, after = (tools(name)[0].controller().controller for name in ("before", "backup"))
    assert (before.in_control, before.backup) == ("ctl-1", False)
    assert (after.in_control, after.backup) == ("backup", True)


def test_the_start_of_a_backup_is_no_sign_of_its_take_over() -> None:
    """It is the start of its stand-by, here 16 s before the answer, whenever it took over."""
    found, played = tools("backup")
    booted = found.controller().controller.booted_at
    assert booted is not None
    assert played.at - booted == timedelta(seconds=16)
    assert any(node.base == "UNKNOWN" for node in found.nodes().values())


def test_a_controller_that_is_down_gives_no_answer() -> None:
    with pytest.raises(Unreadable, match="Unable to contact slurm controller"):
        tools("down")[0].controller()
