"""The runbooks and causes that ship: clean, released, and doing in each scene what they say."""

import pytest

from actions.catalogue import contracts
from config.json_values import Json
from config.policy import Autonomy
from runbooks.builtin import BUILTINS
from runbooks.definition import Definition, pin
from runbooks.diagnosis import as_output, diagnose
from runbooks.expressions import evaluate, truth
from runbooks.library_files import SHIPPED, lint, load_library
from runbooks.model import OnFailure, Runbook
from runbooks.values import ParameterError, misfits, settle
from tests.runbooks.language.facts_of_a_node import node, slurmd_dead
from tests.runbooks.language.test_diagnosis import CAUSES, SCENES

REGISTRY = contracts()
LIBRARY = load_library([SHIPPED], REGISTRY)
NODE_DROPPED = LIBRARY.newest["node-dropped"]


OUTPUTS: dict[str, Json] = {
    "node.await": {"boot_id": "another boot", "gave_up": False},
    "canary.plan": {"enabled": False},
    "canary.await": {"passed": True},
    "power.observe": {"power": "unknown", "event_log": ""},
}
"""What steps give that no fact of these tests is about."""


def walk(runbook: Runbook, parameters: dict[str, Json], facts: dict[str, Json]) -> list[str]:
    """Ids of the steps that would run on these facts, each with arguments that fit."""
    steps: dict[str, Json] = {}
    ran: list[str] = []
    for step in runbook.steps:
        names: dict[str, Json] = {**settle(runbook, parameters), "steps": steps, "item": "gpu-017"}
        if step.when is not None and not truth(step.when, names):
            continue
        arguments = evaluate(step.arguments, names)
        assert isinstance(arguments, dict)
        output: Json = OUTPUTS.get(str(step.do), {})
        if step.do is not None:
            spec = BUILTINS.get(step.do) or REGISTRY[step.do]
            assert misfits(spec.parameters, arguments) == ()
        if step.do == "node.observe":
            output = facts
        elif step.do == "diagnose":
            output = as_output(diagnose(CAUSES, facts))
        steps[step.id] = {"output": output}
        ran.append(str(step.id))
    return ran


def acts(facts: dict[str, Json]) -> list[str]:
    """What node-dropped would do after it has looked."""
    return walk(NODE_DROPPED, {"node": "gpu-017"}, facts)[3:]


def test_everything_that_ships_is_clean_and_released() -> None:
    assert lint([SHIPPED], REGISTRY) == ()
    assert {place.path for place in (*LIBRARY.runbooks, *LIBRARY.causes)} == LIBRARY.released
    assert {"drain-node", "node-dropped", "reboot-node", "return-node"} <= LIBRARY.newest.keys()
    assert sorted(LIBRARY.newest_causes) == ["node-dropped"]


def test_a_look_comes_before_everything_else() -> None:
    looks = walk(NODE_DROPPED, {"node": "gpu-017"}, slurmd_dead())[:3]
    assert looks == ["facts", "cause", "evidence"]


def test_a1_starts_slurmd_and_waits_until_it_is_heard() -> None:
    assert acts({**slurmd_dead(), "job_count": 0}) == ["start", "heard"]
    assert acts({**slurmd_dead(), "job_count": 1}) == ["start", "heard", "after"]


def test_a1_on_a_down_node_is_drained_before_and_returned_after() -> None:
    down = node("DOWN", "NOT_RESPONDING", slurmd_state="failed", reason_kind="internal")
    assert acts({**down, "job_count": 0}) == ["hold", "start", "heard", "back"]


def test_a4a_restarts_slurmd_and_leaves_a_drain_that_is_not_ours() -> None:
    assert acts(SCENES["A4a"]) == ["restart", "registered", "owner"]
    assert acts({**SCENES["A4a"], "holder": "us"}) == ["restart", "registered", "returned"]


def test_a4b_takes_the_node_out_and_asks_a_person() -> None:
    assert acts(SCENES["A4b"]) == ["gpu"]
    assert acts(node("MIXED", gpus_seen=7)) == ["drain", "gpu"]


HANDS = {"A2", "A12", "A14", "A15", "A20"}
"""Causes with steps of their own, tested one by one."""
TOLD = {"A13", "A16", "A21"}


def test_a2_fences_and_revives_only_one_host_that_is_shown_to_be_dead(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scene = {**SCENES["A2"], "host_verdict": "dead", "dropped_recently": 1}
    assert acts(scene) == ["power", "unfenced"]
    monkeypatch.setitem(OUTPUTS, "power.observe", {"power": "on", "event_log": ""})
    assert acts(scene) == ["power", "revive"]
    assert acts({**scene, "host_verdict": "silent"}) == ["power", "unfenced"]
    assert acts({**scene, "dropped_recently": 3}) == ["power", "unfenced"]


def test_a12_is_drained_again_where_slurm_took_the_drain_away() -> None:
    assert acts(SCENES["A12"]) == ["power", "keep-out", "console"]


def test_a14_starts_a_dead_munge_and_nothing_else() -> None:
    assert acts(SCENES["A14"]) == ["unheard"]
    assert acts({**SCENES["A14"], "munge_state": "failed"}) == ["munge", "understood"]


def test_a15_wakes_nobody_for_a_node_that_sleeps() -> None:
    assert acts(SCENES["A15"]) == ["told"]


def test_a20_restarts_a_node_only_where_the_drain_is_ours() -> None:
    assert acts(SCENES["A20"]) == ["plugin"]
    assert acts({**SCENES["A20"], "holder": "us"}) == ["clear"]


@pytest.mark.parametrize("cause", sorted(SCENES.keys() - {"A1", "A4a", "A4b"} - TOLD - HANDS))
def test_every_other_cause_changes_nothing_and_asks_a_person(cause: str) -> None:
    assert acts(SCENES[cause]) == ["person"]


@pytest.mark.parametrize("cause", sorted(TOLD))
def test_a_node_in_other_hands_or_with_nothing_wrong_is_told_of_and_wakes_nobody(
    cause: str,
) -> None:
    assert acts(SCENES[cause]) == ["told"]


@pytest.mark.parametrize("fact", ["unknown_flags", "base", "flags", "reach", "slurmd_state"])
def test_a_node_that_cannot_be_judged_is_left_to_a_person(fact: str) -> None:
    assert acts({**slurmd_dead(), fact: None}) == ["person"]


def test_no_shipped_cause_acts_unless_it_has_an_action() -> None:
    for row in CAUSES.table:
        if row.autonomy is Autonomy.ACT:
            assert acts(SCENES[row.id]) != ["person"]


def test_reboot_node_waits_for_an_empty_node_and_gives_back_only_what_it_took() -> None:
    book = LIBRARY.newest["reboot-node"]
    given: dict[str, Json] = {"node": "gpu-017", "reason": "leak"}
    ran = ["facts", "evidence", "drain", "empty", "reboot", "rebooted", "registered"]
    assert walk(book, given, node()) == [*ran, "back"]
    assert walk(book, given, node(drained_by="another_run")) == [*ran, "stays"]
    assert book.on_failure is OnFailure.ESCALATE


def test_only_the_drain_and_the_return_change_a_node_in_the_other_two() -> None:
    drain, back = LIBRARY.newest["drain-node"], LIBRARY.newest["return-node"]
    given: dict[str, Json] = {"nodes": ["gpu-017"], "reason": "fan"}
    assert walk(drain, given, {}) == ["drain"]
    assert walk(back, {"node": "gpu-017"}, node()) == ["facts", "canary", "resume"]
    assert back.on_failure is OnFailure.ESCALATE


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({}, "node: is missing"),
        ({"node": "*"}, "cannot be in a node name"),
        ({"node": ["gpu-1"]}, "expected a node name, not a list"),
        ({"node": "gpu-1", "force": True}, "force: node-dropped has no such parameter"),
    ],
)
def test_a_request_that_does_not_fit_is_refused(given: dict[str, Json], says: str) -> None:
    with pytest.raises(ParameterError) as refused:
        settle(NODE_DROPPED, given)
    assert says in str(refused.value)


@pytest.mark.parametrize("name", ["drain-node", "node-dropped", "return-node"])
def test_each_shipped_runbook_can_be_pinned_and_read_again(name: str) -> None:
    made = pin(LIBRARY.newest[name], LIBRARY.newest, LIBRARY.newest_causes, REGISTRY)
    assert Definition.from_json(made.to_json()) == made
    assert made.missing_contracts(REGISTRY) == ()
