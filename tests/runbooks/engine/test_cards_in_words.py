"""The six lines that a person reads first."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from config.ids import ActorId, ClusterName, RunId, StepId
from config.node_names import NodeName
from runbooks.explain import MOST_LINES, WIDTH, Told, card
from runbooks.frames import EMPTY_PLAN
from runbooks.machine import RunState
from runbooks.run import Run, StepRecord, StepState

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


def test_what_is_to_be_done_takes_the_lines_that_the_others_leave() -> None:
    why = (
        "a GPU is gone (7 of 8). "
        + "First: drain it, save the event log and AER, then reboot. " * 9
    )
    run = replace(RUN, state=RunState.NEEDS_PERSON, why=why, steps={}, ended_at=None)
    shown = card(run, Told(plan=EMPTY_PLAN, outputs={}, name=str, now=NOW)).lines
    assert len(shown) == MOST_LINES
    assert all(len(line) <= WIDTH for line in shown)
    assert "First: drain it" in " ".join(shown)
    assert shown[-1].endswith("…")
