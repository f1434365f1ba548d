"""One job, asked for by the name that people give it, in rows and in JSON."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actions.contract import Refusal, UnknownJob, Unreadable
from actions.slurm.cli import SlurmCli
from actions.slurm.job_reading import waiting_tasks
from config.ids import JobId
from tests.actions.slurm.conftest import CONFIG, done
from tests.actions.slurm.rows import RowsRunner, client, runner
from tests.actions.slurm.test_text_that_poses import ROW

__all__ = ["client", "runner"]

TASKS = [
    {**ROW, "JobID": "3", "JobArrayID": "3_[2-4%2]", "ArrayJobID": "3", "ArrayTaskID": "2-4%2"},
    {**ROW, "JobID": "6", "JobArrayID": "3_0", "ArrayJobID": "3", "ArrayTaskID": "0"},
]
PARTS = [
    {**ROW, "JobID": "9", "JobArrayID": "9+0", "HetJobID": "9"},
    {**ROW, "JobID": "10", "JobArrayID": "9+1", "HetJobID": "9"},
]
SHOWN = "JobId=12 JobName=x\n   UserId=ann(1)\n   Comment=c\n{extra}   StdErr=/dev/null\n\n"


def test_a_task_and_a_part_are_found_by_their_own_names(
    client: SlurmCli, runner: RowsRunner
) -> None:
    # Asked for a part, squeue shows all parts (measured).
    runner.jobs = TASKS
    assert client.fresh_job(JobId("3_0")).slurm_id == 6
    runner.jobs = PARTS
    assert client.fresh_job(JobId("9+1")).slurm_id == 10


def test_a_task_that_waits_in_a_record_of_many_has_its_own_name(
    client: SlurmCli, runner: RowsRunner
) -> None:
    runner.jobs = TASKS
    found = client.fresh_job(JobId("3_4"))
    assert (found.id, found.array_task, found.slurm_id) == ("3_4", "4", 3)


@pytest.mark.parametrize("name", ["3", "9", "3_9", "6", "9+7"])
def test_a_number_that_stands_for_several_jobs_is_no_job(
    name: str, client: SlurmCli, runner: RowsRunner
) -> None:
    runner.jobs = [*TASKS, *PARTS]
    with pytest.raises(UnknownJob, match="is no single job: name one of 3_"):
        client.fresh_job(JobId(name))


def test_a_job_that_slurm_does_not_know_is_unknown(client: SlurmCli, runner: RowsRunner) -> None:
    runner.jobs = []
    with pytest.raises(UnknownJob, match="no job 12"):
        client.fresh_job(JobId("12"))
    runner.tell("--format=", done(stderr="slurm_load_jobs error: Invalid job id specified", code=1))
    with pytest.raises(UnknownJob, match="no job 12"):
        client.fresh_job(JobId("12"))


def test_a_job_that_may_be_hidden_is_not_called_unknown(
    client: SlurmCli, runner: RowsRunner
) -> None:
    runner.jobs = []
    runner.tell("show config", CONFIG.replace("= none", "= jobs"))
    with pytest.raises(Refusal, match="PrivateData=jobs"):
        client.fresh_job(JobId("12"))


def test_a_silent_controller_makes_no_job_unknown(client: SlurmCli, runner: RowsRunner) -> None:
    runner.tell(
        "--format=",
        done(stderr="slurm_load_jobs error: Unable to contact slurm controller", code=1),
    )
    with pytest.raises(Unreadable, match="Unable to contact"):
        client.fresh_job(JobId("12"))


def test_extra_is_asked_of_releases_that_have_it(client: SlurmCli, runner: RowsRunner) -> None:
    runner.jobs = [ROW]
    assert client.fresh_job(JobId("12")).extra == ""
    runner.tell("--version", "slurm 23.11.1\n")
    runner.tell("show job 12", SHOWN.format(extra="   Extra=restart=yes a b\n"))
    runner.tell("show job 12 --json", done(stderr="unrecognized option '--json'", code=1))
    assert client.fresh_job(JobId("12")).extra == "restart=yes a b"
    runner.tell("show job 12", SHOWN.format(extra="   Extra=no\n   Extra=restart=yes\n"))
    runner.tell("show job 12 --json", done(stderr="unrecognized option '--json'", code=1))
    with pytest.raises(Unreadable, match="poses as another"):
        client.fresh_job(JobId("12"))


def test_in_json_one_question_tells_all(client: SlurmCli, runner: RowsRunner) -> None:
    record = {
        "job_id": 12,
        "job_state": ["RUNNING"],
        "user_name": "ann",
        "extra": "ckpt",
        "shared": ["none"],
        "batch_host": "gpu-04",
        "eligible_time": {"number": 1796057681},
    }
    runner.tell("show job 12 --json", json.dumps({"jobs": [record]}))
    found = client.fresh_job(JobId("12"))
    assert (found.extra, found.shared, found.batch_host) == ("ckpt", False, "gpu-04")
    assert found.eligible_at is not None
    assert len(runner.asked) == 1


@given(st.sets(st.integers(0, 200), min_size=1, max_size=8))
def test_every_waiting_task_is_in_the_list(tasks: set[int]) -> None:
    written = ",".join(map(str, sorted(tasks)))
    assert waiting_tasks(f"{written}%3") == tasks


def test_ranges_and_steps_of_waiting_tasks() -> None:
    assert waiting_tasks("2-4,7-11:2%2") == {2, 3, 4, 7, 9, 11}
    assert waiting_tasks("1-3,...") == {1, 2, 3}
