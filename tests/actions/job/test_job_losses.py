"""Who loses work: only owner or site make a job restartable, and user-written text cannot pose."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actions.cluster import Job, Snapshot
from actions.job_losses import (
    afterwards,
    losses,
    named_without,
    names_node,
    path_of,
    restart_of,
)
from config.ids import JobId
from config.job_settings import CheckpointFormat, Restartable
from config.node_names import NodeName
from tests.actions.job.hands import NODES, SICK, TWO, cluster, pending, training

RULE = Restartable(
    accounts=("pre",),
    names=("llama*",),
    checkpoint="/shared/{user}/{name}/ck",
    format=CheckpointFormat.DCP,
    min_nodes=2,
)


def _seen(*jobs: Job) -> Snapshot:
    return cluster(jobs=jobs).snapshot()


def test_requeue_is_slurms_default_and_no_promise() -> None:
    (found,) = losses(_seen(training()), [SICK], ())
    assert (found.comes_back, found.lost) == (True, True)
    assert found.why == "starts from zero, may overwrite its output"
    assert (found.job, found.user, found.gpus, found.nodes) == ("7", "ann", 24, 3)


@pytest.mark.parametrize("field", ["comment", "extra"])
@pytest.mark.parametrize(
    "text",
    ["nw:restartable", "llama 70b; nw:restartable", "a,nw:restartable,b", "\nnw:restartable "],
)
def test_an_owner_may_say_that_a_job_goes_on(field: str, text: str) -> None:
    (found,) = losses(_seen(training(**{field: text})), [SICK], ())
    assert not found.lost
    assert (
        found.why
        == f"goes on from its checkpoint (by its {'--' if field == 'extra' else ''}{field})"
    )


@pytest.mark.parametrize(
    "text",
    [
        "nw:restartable?",
        "not-nw:restartable",
        "nw: restartable",
        "NW:RESTARTABLE",
        "nw:restartable=no",
    ],
)
def test_a_word_that_only_resembles_it_promises_nothing(text: str) -> None:
    assert not restart_of(training(comment=text), ()).yes


@given(text=st.text(max_size=60))
def test_no_other_text_makes_a_job_restartable(text: str) -> None:
    said = restart_of(training(comment=text), ()).yes
    assert said == ("nw:restartable" in text.replace(",", " ").replace(";", " ").split())


def test_the_site_names_jobs_by_account_and_name_and_where_they_resume() -> None:
    found = restart_of(training(name="llama-70b"), (RULE,))
    assert found.yes
    assert (found.by, found.checkpoint) == ("rule 1 of the site", "/shared/ann/llama-70b/ck")
    assert (found.format, found.min_nodes) == (CheckpointFormat.DCP, 2)


@pytest.mark.parametrize("changes", [{"account": "other"}, {"name": "bert"}])
def test_a_rule_is_for_the_jobs_that_fit_all_it_gives(changes: dict[str, object]) -> None:
    assert not restart_of(training(**changes), (RULE,)).yes


def test_an_owner_may_take_a_job_out_of_the_sites_rule() -> None:
    job = training(comment="nw:not-restartable")
    (found,) = losses(_seen(job), [SICK], (RULE,))
    assert found.lost
    assert found.why == "starts from zero, may overwrite its output (its comment says so)"


@pytest.mark.parametrize("name", ["../../etc", "a/b", "", ".hidden", "x" * 200, "a b", "ä"])
def test_a_name_that_could_lead_elsewhere_gives_no_path(name: str) -> None:
    assert path_of("/shared/{user}/{name}/ck", training(name=name)) == ""


@given(name=st.text(max_size=30), work=st.text(max_size=30))
def test_no_name_leads_out_of_the_folder(name: str, work: str) -> None:
    job = training(name=name, work_dir=work)
    found = path_of("/shared/{name}/ck", job)
    assert found == "" or (found.count("/") == 3 and ".." not in found.split("/"))
    there = path_of("{work_dir}/ck", job)
    assert there == "" or (there == f"{work}/ck" and ".." not in there.split("/"))


def test_an_interactive_job_ends_and_nobody_starts_it_again() -> None:
    (found,) = losses(_seen(training(batch=False, comment="nw:restartable")), [SICK], ())
    assert (found.comes_back, found.lost) == (False, True)
    (found,) = losses(_seen(training(requeue=False, comment="nw:restartable")), [SICK], ())
    assert (found.comes_back, found.lost) == (False, True)
    assert "--no-requeue" in found.why


def test_all_parts_of_a_het_job_go_together_and_others_stay() -> None:
    one = training(id=JobId("7+0"), het_job=7)
    two = training(id=JobId("7+1"), slurm_id=8, het_job=7, nodes=(TWO,))
    other = training(id=JobId("9"), slurm_id=9, nodes=(TWO,))
    assert [found.job for found in losses(_seen(one, two, other), [SICK], ())] == ["7+0", "7+1"]


def test_a_job_that_only_was_there_loses_nothing() -> None:
    assert losses(_seen(training(state="COMPLETED"), pending(8)), NODES, ()) == ()


def test_a_dependant_whose_afterok_failed_is_never_run() -> None:
    waits = pending(9, dependency="afterok:7(unfulfilled)", state_reason="Dependency")
    broken = replace(waits, state_reason="DependencyNeverSatisfied")
    other = pending(10, dependency="afterok:77(unfulfilled),singleton")
    (said,) = [
        line
        for line in afterwards(_seen(training(), waits, other), training(), SICK)
        if "waits" in line
    ]
    assert said == "job 9 (bob) waits for it (afterok) and waits until the restarted run ends"
    assert "can never run any more" in afterwards(_seen(training(), broken), training(), SICK)[0]
    final = training(requeue=False)
    assert (
        "a dependency that failed stays failed" in afterwards(_seen(final, waits), final, SICK)[0]
    )


def test_a_dependant_of_another_task_of_the_array_is_not_named() -> None:
    job = training(id=JobId("7_3"), slurm_id=12, array_job=7, array_task="3")
    mine = pending(9, dependency="afterok:7_3(unfulfilled)")
    other = pending(10, dependency="afterok:7_4(unfulfilled)")
    whole = pending(11, dependency="afterany:7_*(unfulfilled)")
    said = " ".join(afterwards(_seen(job, mine, other, whole), job, SICK))
    assert ("job 9" in said, "job 10" in said, "job 11" in said) == (True, False, True)


def test_jobs_that_need_the_node_are_told_with_the_age_that_is_lost() -> None:
    named = pending(8, required_nodes="gpu-[01,03]")
    large = pending(9, node_count=4)
    small = pending(10, node_count=3)
    said = afterwards(_seen(training(), named, large, small), training(), SICK)
    assert said == (
        "its age in the queue begins again: until now it counts from 2026-11-28 17:20 UTC",
        "job 8 (bob) asks for gpu-01 by name (-w) and cannot start before it is back",
        "job 9 (bob) needs gpu-01 too: without it its partition has too few nodes",
    )


def test_a_long_list_is_counted_and_not_told_whole() -> None:
    jobs = [pending(number, required_nodes=SICK) for number in range(20, 40)]
    said = named_without(_seen(*jobs), SICK)
    assert len(said) == 6
    assert said[-1] == "and 15 more jobs like these"


@given(text=st.text(max_size=40))
def test_a_node_list_that_cannot_be_read_may_name_the_node(text: str) -> None:
    found = names_node(text, NodeName("gpu-01"))
    assert found or "gpu-01" not in text.replace(" ", "").split(",")
