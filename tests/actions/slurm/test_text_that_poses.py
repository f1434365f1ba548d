"""Text that users and operators write never becomes another field, whatever it holds."""

import json
from datetime import timedelta

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from actions.cluster import NodeBase
from actions.contract import Unreadable
from actions.shell import Command, CommandFinished
from actions.slurm.cli import SlurmCli
from actions.slurm.fields import UnknownForm
from actions.slurm.jobs import ROW_FIELDS, jobs_from_json, jobs_from_rows
from actions.slurm.nodes import nodes_from_text
from actions.slurm.records import config_fields, rows, shown_fields
from actions.slurm.tools import SlurmSettings, Tools
from config.ids import ClusterName
from config.node_names import NodeName
from tests.actions.slurm.conftest import RECORDINGS, ToldRunner, done, no_json

ROW = {
    **dict.fromkeys(ROW_FIELDS, "N/A"),
    "JobID": "12",
    "JobArrayID": "12",
    "ArrayJobID": "12",
    "UserName": "ann",
    "State": "RUNNING",
    "Reason": "None",
    "Partition": "train",
    "NodeList": "gpu-04",
    "NumNodes": "1",
    "NumTasks": "1",
    "BatchFlag": "1",
    "Requeue": "1",
    "RestartCnt": "0",
    "PriorityLong": "7",
    "Cluster": "mini",
    "tres-per-node": "gres:gpu:2",
    "ExcNodes": "",
}
POSING = [
    "x JobState=COMPLETED NodeList=gpu-99",
    "nl\n   JobState=COMPLETED\n\nJobId=999 JobName=y",
    "a<!channel>&`id`",
    "13|x|\n14|PENDING||",
    "דנה \u202e\u2066 smart “quotes”",
    "(null)",
]
NODES = (RECORDINGS / "22.05" / "scontrol-nodes.txt").read_text()
# As 22.05 prints a Reason with newlines: further lines behind ten spaces (measured).
POSING_REASON = (
    "   Reason=bad [root@2026-11-30T18:37:57]\n"
    "             State=IDLE\n"
    '          NodeName=gpu-99 Arch=x "q" דנה\n'
)


@given(st.lists(st.tuples(st.text(), st.text()), max_size=5))
@example([(name, name) for name in POSING])
def test_a_name_in_rows_comes_back_as_it_was_written(texts: list[tuple[str, str]]) -> None:
    mark = "|x0123456789abcdef|"
    answer = "".join(
        "".join(
            {**ROW, "JobID": str(number), "Name": name, "Comment": comment}[field] + mark
            for field in ROW_FIELDS
        )
        + "\n"
        for number, (name, comment) in enumerate(texts)
    )
    found = rows(answer, ROW_FIELDS, mark)
    assert [(row["JobID"], row["Name"], row["Comment"]) for row in found] == [
        (str(number), *texts[number]) for number in range(len(texts))
    ]


@pytest.mark.parametrize("name", POSING)
def test_a_posing_name_changes_no_fact_of_the_job(name: str) -> None:
    (job,) = jobs_from_rows([{**ROW, "Name": name, "ExcNodes": ""}])
    assert (job.name, job.state, job.nodes) == (name, "RUNNING", (NodeName("gpu-04"),))


def test_each_question_about_jobs_has_a_mark_of_its_own(told: ToldRunner) -> None:
    tools = Tools(SlurmSettings(cluster=ClusterName("mini")), told)
    told.tell("squeue", "")
    told.tell("squeue --all --local --states=all --json", no_json())
    tools.jobs()
    tools.jobs_on(NodeName("gpu-04"))
    forms = [word for command in told.asked for word in command.argv if "--Format=" in word]
    assert len(forms) == len(set(forms)) == 2


@pytest.mark.parametrize("cut", [2, 40, 90])
def test_rows_that_break_off_are_no_answer(cut: int) -> None:
    mark = "|x1|"
    answer = "".join(ROW[field] + mark for field in ROW_FIELDS) + "\n"
    with pytest.raises(UnknownForm):
        rows(answer[:-cut], ROW_FIELDS, mark)


def test_a_field_that_squeue_does_not_know_is_no_empty_field(told: ToldRunner) -> None:
    # squeue prints nothing for it, complains on stderr and ends with code 0 (measured on 22.05).
    told.tell("squeue", done("", "squeue: error: Invalid job format specification: Foo"))
    with pytest.raises(Unreadable, match="Invalid job format"):
        Tools(SlurmSettings(cluster=ClusterName("mini")), told).jobs_on(NodeName("gpu-04"))


def test_a_reason_with_newlines_stays_a_reason() -> None:
    before, _, after = NODES.partition("   Reason=Xid 79")
    nodes = nodes_from_text(before + POSING_REASON + after[after.index("\n") + 1 :])
    assert len(nodes) == 12
    node = nodes[NodeName("gpu-01")]
    assert node.state == "MIXED+DRAIN"
    assert node.reason == 'bad\n   State=IDLE\nNodeName=gpu-99 Arch=x "q" דנה'
    assert node.reason_by == "root"


def test_a_key_that_occurs_twice_is_an_error() -> None:
    with pytest.raises(UnknownForm, match="State occurs twice"):
        shown_fields("NodeName=a State=IDLE\n   State=DOWN\n")
    with pytest.raises(UnknownForm, match="ClusterName occurs twice"):
        config_fields("ClusterName = a\nClusterName = b\n")


def test_a_node_whose_record_poses_is_seen_but_never_acted_on(
    over_told: SlurmCli, told: ToldRunner
) -> None:
    forged = NODES.replace("State=MIXED+DRAIN", "State=MIXED+DRAIN\n   State=IDLE", 1)
    nodes = nodes_from_text(forged)
    assert nodes[NodeName("gpu-01")].base is NodeBase.OTHER
    assert nodes[NodeName("gpu-01")].unknown_flags == {"UNREADABLE"}
    assert nodes[NodeName("gpu-02")].base is NodeBase.MIXED
    told.tell("show node gpu-01", forged.split("\n\n")[0])
    told.tell("show node gpu-01 --json", done(stderr="unrecognized option '--json'", code=1))
    with pytest.raises(Unreadable, match="occurs twice"):
        over_told.fresh_node(NodeName("gpu-01"))


def test_a_node_that_occurs_twice_makes_the_whole_answer_unreadable() -> None:
    with pytest.raises(UnknownForm, match="gpu-01 occurs twice"):
        nodes_from_text(NODES + NODES.split("\n\n")[0])


def test_a_job_that_occurs_twice_makes_the_whole_answer_unreadable() -> None:
    with pytest.raises(UnknownForm, match="12 occurs twice"):
        jobs_from_rows([ROW, ROW])


def test_unknown_words_survive_and_are_visible() -> None:
    text = NODES.replace("State=MIXED+DRAIN", "State=MIXED+DRAIN+SOMETHING_NEW", 1)
    text = text.replace("State=MIXED ", "State=BRANDNEW ", 1)
    nodes = nodes_from_text(text)
    assert nodes[NodeName("gpu-01")].unknown_flags == {"SOMETHING_NEW"}
    assert nodes[NodeName("gpu-02")].base is NodeBase.OTHER
    assert nodes[NodeName("gpu-02")].unknown_flags == {"BRANDNEW"}
    (job,) = jobs_from_rows([{**ROW, "State": "LEVITATING"}])
    assert job.state == "LEVITATING"
    assert job.holds_nodes


def test_names_that_are_not_utf8_do_not_make_json_unreadable(told: ToldRunner) -> None:
    # The runner hands a byte 0xff on as the four characters \xff, which is no escape of JSON.
    record = {"job_id": 12, "job_state": ["RUNNING"], "user_name": "ann", "name": "NAME"}
    answer = json.dumps({"jobs": [record]}).replace("NAME", "a\\xff\\\\xff\\u05d3")
    told.tell("squeue", answer)
    (job,) = Tools(SlurmSettings(cluster=ClusterName("mini")), told).jobs()
    assert job.name == "a\\xff\\xffד"


def test_completing_wins_over_the_base_word_in_every_form() -> None:
    record = {"job_id": 12, "job_state": ["CANCELLED", "COMPLETING"], "nodes": "gpu-04"}
    (new,) = jobs_from_json([record])
    (old,) = jobs_from_json([{**record, "job_state": "COMPLETING"}])
    assert new.state == old.state == "COMPLETING"
    assert new.state_flags == {"CANCELLED"}
    assert new.holds_nodes


@pytest.mark.parametrize(
    ("record", "written"),
    [
        ({}, "12"),
        ({"array_job_id": 9, "array_task_id": 0}, "9_0"),
        ({"array_job_id": 9, "array_task_id": None, "array_task_string": "4-9%2"}, "9_[4-9%2]"),
        ({"het_job_id": {"set": True, "number": 11}, "het_job_offset": {"number": 1}}, "11+1"),
    ],
)
def test_arrays_and_het_jobs_are_named_as_people_name_them(
    record: dict[str, object], written: str
) -> None:
    (job,) = jobs_from_json([{"job_id": 12, "job_state": "PENDING", **record}])
    assert job.id == written


def test_a_limit_of_minutes_is_the_same_in_json_and_rows() -> None:
    limits = [("UNLIMITED", {"set": True, "infinite": True, "number": 0}), ("1-02:03:00", 1563)]
    for text, minutes in limits:
        (row,) = jobs_from_rows([{**ROW, "TimeLimit": text}])
        (record,) = jobs_from_json([{"job_id": 1, "job_state": "PENDING", "time_limit": minutes}])
        assert row.time_limit == record.time_limit
    (day,) = jobs_from_rows([{**ROW, "TimeLimit": "1-02:03:00"}])
    assert day.time_limit == timedelta(minutes=1563)


@pytest.mark.parametrize(
    ("release", "written", "alone"),
    [("22.05.8", "NO", True), ("22.05.8", "OK", False), ("26.05.1", "NO", False)],
)
def test_a_job_is_alone_on_its_nodes_where_the_release_says_so(
    release: str, written: str, alone: bool, told: ToldRunner
) -> None:
    # Since 26.05 every job without --oversubscribe says NO.
    told.tell("--version", f"slurm {release}\n")
    tools = Tools(SlurmSettings(cluster=ClusterName("mini")), RowPrinter(told, written))
    (job,) = tools.jobs_on(NodeName("gpu-04"))
    assert job.shared is not alone


class RowPrinter:
    """Prints one job in the form it is asked for."""

    def __init__(self, told: ToldRunner, oversubscribe: str) -> None:
        self._told = told
        self._row = {**ROW, "OverSubscribe": oversubscribe}

    def run(self, command: Command) -> CommandFinished:
        form = next((word for word in command.argv if word.startswith("--Format=")), None)
        if form is None:
            return done("") if "squeue" in command.argv else self._told.run(command)
        mark = form.split(",")[0].partition(":")[2]
        return done("".join(self._row[name] + mark for name in ROW_FIELDS) + "\n")
