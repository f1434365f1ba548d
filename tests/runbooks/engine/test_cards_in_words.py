"""The six lines that a person reads first, on a phone above all."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actions.catalogue import contracts
from config.ids import ActorId, ClusterName, RunId, StepId
from config.node_names import NodeName
from runbooks.card_lines import MOST_LINES
from runbooks.diagnosis import as_output, diagnose
from runbooks.explain import card
from runbooks.frames import EMPTY_PLAN
from runbooks.library_files import SHIPPED, load_library
from runbooks.machine import RunState
from runbooks.run import Run, StepRecord, StepState
from runbooks.told import Told
from runbooks.wording import WIDTH, clocked
from tests.runbooks.language.facts_of_a_node import node, slurmd_dead

NOW = datetime(2026, 11, 30, 3, 7, tzinfo=UTC)
RUN = Run(
    id=RunId("run-7"),
    runbook="node-dropped",
    version=1,
    title="Node dropped from the queue",
    definition="",
    cluster=ClusterName("train"),
    parameters={"node": "gpu-017"},
    requested_by=ActorId("p-ann"),
    roles=(),
    door="slack",
    reason="",
    requested_at=NOW,
    state=RunState.SUCCEEDED,
    why="did service.start gpu-017",
    ended_at=NOW,
    steps={
        "start": StepRecord(
            step=StepId("start"),
            node=NodeName("gpu-017"),
            state=StepState.DONE,
            action="service.start@1",
            attempt=1,
        )
    },
)


def facts(restarts: int = 0, **more: Any) -> dict[str, Any]:
    job = {"id": "4711", "user": "ann", "name": "llama-70b", "gpus": 512, "restarts": restarts}
    return {"base": "ALLOCATED", "flags": [], "state": "ALLOCATED", "jobs": [job], **more}


def last(run: Run, **outputs: dict[str, Any]) -> str:
    told = Told(plan=EMPTY_PLAN, outputs=outputs, name=str, now=NOW)
    return card(run, told).lines[-1]


def test_a_job_that_is_still_there_without_a_restart_is_said_to_go_on() -> None:
    assert "job 4711 (Restarts 0) goes on" in last(RUN, facts=facts(), after=facts())


def test_a_job_that_was_started_again_is_not_said_to_go_on() -> None:
    assert "goes on" not in last(RUN, facts=facts(), after=facts(restarts=1))


def test_without_a_second_look_nothing_is_said_of_the_job() -> None:
    assert "goes on" not in last(RUN, facts=facts())


def test_whoever_types_an_answer_to_a_question_gives_a_reason_of_their_own() -> None:
    unknown = {"start": replace(RUN.steps["start"], state=StepState.UNKNOWN)}
    run = replace(RUN, state=RunState.NEEDS_PERSON, why="?", steps=unknown, ended_at=None)
    shown = card(run, Told(plan=EMPTY_PLAN, outputs={}, name=str, now=NOW))
    assert "--done clicked" in shown.buttons[0].command
    assert shown.buttons[0].typed.endswith(' --done "reason"')
    assert shown.buttons[-1].typed == shown.buttons[-1].command == "abort run-7"


def test_what_is_to_be_done_takes_the_lines_that_the_others_leave() -> None:
    why = "drain on gpu-017: " + "somebody wrote over it at the same moment, look at it. " * 9
    run = replace(RUN, state=RunState.NEEDS_PERSON, why=why, steps={}, ended_at=None)
    shown = card(run, Told(plan=EMPTY_PLAN, outputs={}, name=str, now=NOW)).lines
    assert len(shown) <= MOST_LINES
    assert all(len(line) <= WIDTH for line in shown)
    assert "look at it" in " ".join(shown)
    assert shown[-2].endswith("…")
    assert shown[-1] == "NEEDS A PERSON; changed nothing; asked by p-ann"


CAUSES = load_library([SHIPPED], contracts()).definition("node-dropped").causes["node-dropped"]
JOB = {"id": "4711", "user": "ann", "name": "llama-70b", "gpus": 512, "restarts": 0}


def needs_person(found: dict[str, Any]) -> tuple[str, ...]:
    """The card of the shipped runbook that leaves this node to a person."""
    cause = as_output(diagnose(CAUSES, found))
    known = f"{cause['id']} {cause['title']}" if cause["id"] else "no cause decides"
    why = f"gpu-017: {known}; the bot has changed nothing ({cause['why']})"
    if cause["first_action"]:
        why += f". First: {cause['first_action']}"
    run = replace(RUN, state=RunState.NEEDS_PERSON, why=why, steps={}, ended_at=None)
    outputs = {"facts": {**found, "jobs": [JOB]}, "cause": cause}
    told = Told(plan=EMPTY_PLAN, outputs=outputs, name=str, page="page p1", now=NOW)
    return card(run, told).lines


LEFT_TO_A_PERSON = {
    "A3": node("DOWN", reason="Node unexpectedly rebooted", reason_kind="internal"),
    "A6": node("IDLE", "DRAIN", "INVALID_REG", reason="Low RealMemory", memory_seen_mib=1000),
    "A7": node("ALLOCATED", "DRAIN", reason="Kill task failed", reason_kind="internal"),
    "A18": node("DOWN", "NOT_RESPONDING", reason="NO NETWORK ADDRESS FOUND", host_alive=False),
}


@pytest.mark.parametrize("cause", LEFT_TO_A_PERSON)
def test_the_first_line_carries_node_cause_and_what_to_do(cause: str) -> None:
    lines = needs_person(LEFT_TO_A_PERSON[cause])
    known, _, todo = lines[0].partition(" → ")
    assert known.startswith(f"gpu-017: {cause} ")
    row = next(row for row in CAUSES.table if row.id == cause)
    assert todo.rstrip("…").strip()
    assert row.first_action.startswith(todo.rstrip("…").strip())
    assert row.first_action in " ".join(lines).replace("…", "")


@pytest.mark.parametrize("cause", LEFT_TO_A_PERSON)
def test_no_line_says_again_what_another_says(cause: str) -> None:
    found = LEFT_TO_A_PERSON[cause]
    text = "\n".join(needs_person(found)[1:])
    assert text.count(str(found["reason"])) <= 1
    assert text.count(str(found["state"])) <= 1
    assert next(row for row in CAUSES.table if row.id == cause).title not in text
    assert "matches" not in text


@pytest.mark.parametrize("cause", LEFT_TO_A_PERSON)
def test_the_last_line_alone_says_how_it_stands(cause: str) -> None:
    stands = needs_person(LEFT_TO_A_PERSON[cause])[-1]
    assert stands == "NEEDS A PERSON (page p1); changed nothing; asked by p-ann"


def test_where_no_cause_decides_the_card_says_so_first() -> None:
    lines = needs_person(node("IDLE", "DRAIN", "NEW", unknown_flags=["NEW"]))
    assert lines[0].startswith("gpu-017: the node carries flags that this version does not know")
    assert "NEEDS A PERSON (page p1)" in " ".join(lines)


def test_times_are_read_on_the_clock_with_the_zone_once_a_line() -> None:
    told = "ends between 2026-11-30T03:16:05Z and 2026-11-30T03:18Z, Reason of 2026-11-28T09:00Z"
    shown = "ends between 03:16 and 03:18, Reason of 11-28 09:00 UTC"
    assert clocked(told, NOW.date()) == shown
    shown = "\n".join(needs_person(slurmd_dead(jobs_blind="")))
    assert "2026-" not in shown


def test_a_job_list_that_cannot_be_believed_is_not_called_empty() -> None:
    found = facts(jobs_blind="PrivateData hides them", job_count=None)
    found["jobs"] = None
    lines = card(RUN, Told(plan=EMPTY_PLAN, outputs={"facts": found}, name=str, now=NOW)).lines
    assert "Its jobs are not known: PrivateData hides them" in lines
    assert "No job is on it" not in lines


def drained(**outputs: dict[str, Any]) -> tuple[str, ...]:
    """The finished card of a drain of two nodes."""
    steps = {
        f"drain@{name}": replace(RUN.steps["start"], node=NodeName(name), action="node.drain@1")
        for name in ("gpu-017", "gpu-018")
    }
    parameters: dict[str, Any] = {"nodes": ["gpu-017", "gpu-018"], "reason": "new cable"}
    why = "did node.drain gpu-[017-018]"
    run = replace(
        RUN, title="Take nodes out of service", parameters=parameters, steps=steps, why=why
    )
    return card(run, Told(plan=EMPTY_PLAN, outputs=outputs, name=str, now=NOW)).lines


def stays(job: str, ends: str) -> dict[str, Any]:
    """The output of a drain of a node that this job is on."""
    entry = {"id": job, "user": "ann", "name": "llama", "gpus": 8, "ends": ends}
    return {"jobs_stay": [entry], "jobs_blind": ""}


def test_a_drain_names_the_jobs_that_go_on_until_when_and_who_asked() -> None:
    lines = drained(a=stays("7", "2026-11-30T05:00Z"), b=stays("8", "2026-12-01T06:30Z"))
    assert lines == (
        "gpu-[017-018]: Take nodes out of service (new cable) → did node.drain…",
        "Job 8 llama (ann, 8 GPUs) goes on until 12-01 06:30 UTC",
        "Job 7 llama (ann, 8 GPUs) goes on until 05:00 UTC",
        "did node.drain gpu-[017-018]",
        "Finished 03:07 UTC; asked by p-ann",
    )


def test_a_reason_of_a_person_that_a_drain_replaced_is_said() -> None:
    kept = {**stays("7", ""), "reason_before": "watch the fan", "reason_before_by": "dana"}
    assert "drain@a replaced the Reason 'watch the fan' of dana" in " ".join(
        drained(**{"drain@a": kept})
    )
    slurms = {**stays("7", ""), "reason_before": "Not responding", "reason_before_by": "slurm"}
    assert "replaced" not in " ".join(drained(a=slurms))
    assert "without an end" in " ".join(drained(a=slurms))


@given(st.text(max_size=400), st.text(max_size=200), st.sampled_from(RunState))
def test_a_card_never_grows_past_a_phone(why: str, reason: str, state: RunState) -> None:
    found = {**facts(), "reason": reason, "reason_kind": "foreign"}
    outputs = {"facts": found, "cause": as_output(diagnose(CAUSES, node(reason=reason)))}
    run = replace(RUN, state=state, why=why)
    shown = card(run, Told(plan=EMPTY_PLAN, outputs=outputs, name=str, now=NOW)).lines
    assert 1 <= len(shown) <= MOST_LINES
    assert all(len(line) <= WIDTH for line in shown)
