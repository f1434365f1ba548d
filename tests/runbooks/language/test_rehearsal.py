"""A runbook is played against a described cluster and tells what it would do."""

import pytest

from config.json_values import Json
from runbooks.problems import Problems
from runbooks.rehearsal import Described, read_description, rehearse
from runbooks.values import ParameterError
from tests.runbooks.language.facts_of_a_node import node, slurmd_dead
from tests.runbooks.language.test_shipped_library import LIBRARY, REGISTRY


def _told(name: str, facts: dict[str, Json], **parameters: Json) -> list[str]:
    answers: dict[str, dict[str, Json]] = {
        "node.observe": facts,
        "canary.plan": {"enabled": False},
    }
    described = Described(parameters=parameters, answers=answers)
    return [
        f"{line.step} {line.verb} {line.text}"
        for line in rehearse(LIBRARY.definition(name), described, REGISTRY)
        if line.verb != "skipped"
    ]


def test_a_dead_slurmd_is_started() -> None:
    assert _told("node-dropped", slurmd_dead(), node="gpu-017") == [
        "facts looks node.observe(node=gpu-017)",
        "cause looks A1 slurmd is dead, the host is alive; only A1 matches",
        "evidence looks evidence.save(node=gpu-017)",
        "start acts service.start(node=gpu-017, unit=slurmd)",
        "heard looks node.await(node=gpu-017, condition=responding)",
        "after looks node.observe(node=gpu-017)",
    ]


def test_a_called_runbook_is_played_too() -> None:
    down = node("DOWN", "NOT_RESPONDING", slurmd_state="failed", reason_kind="internal")
    assert _told("node-dropped", down, node="gpu-017")[-5:-1] == [
        "back calls return-node v1",
        "back/facts looks node.observe(node=gpu-017)",
        "back/canary looks canary.plan(node=gpu-017)",
        "back/resume acts node.return(node=gpu-017, boot_id=)",
    ]


def test_a_step_that_needs_a_person_ends_the_playing() -> None:
    told = _told("node-dropped", node("DOWN", reach="time_out", host_alive=False), node="gpu-017")
    assert told[-1].startswith("person person gpu-017: ")


def test_a_node_in_other_hands_is_only_told_of() -> None:
    told = _told("node-dropped", node("IDLE", "DRAIN", holder="other"), node="gpu-017")
    assert any("tell(say=hands off" in line for line in told)


def test_each_target_of_a_loop_is_told_by_itself() -> None:
    assert _told("drain-node", {}, nodes=["gpu-1", "gpu-2"], reason="fan") == [
        "drain/gpu-1 acts node.drain(node=gpu-1, reason=fan)",
        "drain/gpu-2 acts node.drain(node=gpu-2, reason=fan)",
    ]


def test_an_answer_that_is_not_described_is_said_to_be_missing() -> None:
    described = Described(parameters={"node": "gpu-017"})
    last = rehearse(LIBRARY.definition("node-dropped"), described, REGISTRY)[-1]
    assert (last.step, last.verb) == ("person", "person")
    with pytest.raises(ParameterError, match="node: is missing"):
        rehearse(LIBRARY.definition("node-dropped"), Described(), REGISTRY)


def test_a_description_is_read_from_a_file_or_refused_with_its_place() -> None:
    text = "parameters: {node: gpu-1}\nanswers:\n  node.observe: {base: IDLE, gpus_seen: 7}\n"
    assert read_description(text, "x.yaml") == Described(
        parameters={"node": "gpu-1"}, answers={"node.observe": {"base": "IDLE", "gpus_seen": 7}}
    )
    with pytest.raises(Problems, match=r"x\.yaml:2:1: answer: unknown key; did you mean answers"):
        read_description("parameters: {}\nanswer: {}\n", "x.yaml")
    with pytest.raises(Problems, match="expected a mapping, not text"):
        read_description("answers: {node.observe: x}\n", "x.yaml")
