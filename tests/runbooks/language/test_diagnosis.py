"""The shipped table: which cause decides, and what must not make it decide otherwise."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actions.node.facts import FACTS
from config.json_values import Json
from config.policy import Autonomy
from runbooks.causes import Causes, load_causes
from runbooks.diagnosis import Diagnosis, as_output, diagnose
from runbooks.facts import FACT_SETS
from runbooks.library_files import SHIPPED
from tests.runbooks.language.facts_of_a_node import (
    HEALTHY,
    drained_by_a_person,
    invalid,
    node,
    slurmd_dead,
)

Facts = dict[str, Json]
_FILE = SHIPPED / "causes/node-dropped/v1.yaml"
CAUSES = load_causes(_FILE.read_text(encoding="utf-8"), "node-dropped/v1.yaml")

SCENES: dict[str, Facts] = {
    "A1": slurmd_dead(),
    "A2": node(
        "DOWN", "NOT_RESPONDING", host_alive=False, reach="time_out", slurmd_state="unknown",
        boot_id="", boot_changed=None, gpus_seen=None, memory_seen_mib=None, cpus_seen=None,
        kernel_tail=None, previous_boot_tail=None,
    ),
    "A3": node(
        "DOWN", reason="Node unexpectedly rebooted", reason_kind="internal", boot_changed=True
    ),
    "A4a": invalid(),
    "A4b": invalid(
        reason="gres/gpu count reported lower than configured (7 < 8)",
        gpus_seen=7,
        kernel_tail="NVRM: Xid (PCI:0000:1b:00): 79, pid=1, GPU has fallen off the bus.",
    ),
    "A4d": invalid(reason="gres/gpu:h100 count too low (0 < 8)"),
    "A5": invalid(gpus_seen=0, kernel_tail="NVRM: API mismatch: the client has the version 550"),
    "A6": invalid(reason="Low RealMemory (reported:1 < 100% of 2)", memory_seen_mib=1_900_000),
    "A7": node(
        "IDLE", "DRAIN", reason="Kill task failed (JobId=7 StepId=0)", reason_kind="internal"
    ),
    "A8": node("IDLE", "DRAIN", reason="Prolog error", reason_kind="internal"),
    "A9": node("IDLE", "DRAIN", reason="NHC: check_fs_mount", reason_kind="foreign"),
    "A10": node(kernel_tail="NVRM: Xid (PCI:0000:1b:00): 94, pid=2"),
    "A11": node("IDLE", "DRAIN", reason="NHC: check_hw_ib: No IB port", reason_kind="foreign"),
    "A12": node("DOWN", "REBOOT_ISSUED", "NOT_RESPONDING", host_alive=False, slurmd_state="unknown"),
    "A13": drained_by_a_person(),
    "A14": node("ALLOCATED", "NOT_RESPONDING"),
    "A15": node("IDLE", "POWERED_DOWN", "CLOUD", host_alive=False, slurmd_state="unknown"),
    "A16": dict(HEALTHY),
    "A17": node("DOWN", "DRAIN", reason="Duplicate jobid", reason_kind="internal"),
    "A18": node(
        "UNKNOWN", "NOT_RESPONDING", reason="NO NETWORK ADDRESS FOUND", reason_kind="internal",
        host_alive=False, slurmd_state="unknown",
    ),
    "A19": node("IDLE", "DRAIN", reason="SlurmdSpoolDir is full", reason_kind="internal"),
    "A20": node("IDLE", "DRAIN", reason="switch_g_job_postfini failed", reason_kind="internal"),
    "A21": node("IDLE", partition_states={"train": "DRAIN", "debug": "UP"}),
}  # fmt: skip


def look(facts: Facts) -> Diagnosis:
    """What the shipped table says."""
    return diagnose(CAUSES, facts)


def decided(facts: Facts) -> str | None:
    """Id of the cause that decides."""
    found = look(facts).decided
    return found.id if found else None


def test_the_table_reads_the_facts_that_observe_gives() -> None:
    assert frozenset(FACTS) == FACT_SETS["node"]
    assert set(HEALTHY) == set(FACTS)


@pytest.mark.parametrize("cause", SCENES)
def test_each_cause_decides_its_own_scene(cause: str) -> None:
    assert decided(SCENES[cause]) == cause


def test_only_a1_may_act_by_itself() -> None:
    acting = {row.id for row in CAUSES.table if row.autonomy is Autonomy.ACT}
    assert acting == {"A1"}
    found = look(slurmd_dead()).decided
    assert found is not None
    assert found.autonomy is Autonomy.ACT


def test_a1_shows_its_evidence_and_the_minute_in_which_jobs_end() -> None:
    found = look(slurmd_dead()).decided
    assert found is not None
    assert found.evidence[:3] == (
        "slurmd is failed since 2026-11-30T02:11:05Z",
        "the host answers (alive)",
        "Slurm says ALLOCATED+NOT_RESPONDING",
    )
    assert any(
        "end between 2026-11-30T02:16:05Z and 2026-11-30T02:17:45Z" in line
        for line in found.evidence
    )


def test_a1_is_seen_before_the_controller_notices() -> None:
    assert decided(node("ALLOCATED", slurmd_state="failed")) == "A1"
    assert decided(node("IDLE", slurmd_state="inactive")) == "A1"


@pytest.mark.parametrize(
    "limit",
    [
        {"dropped_recently": 3},
        {"dropped_recently": None},
        {"kernel_tail": "NVRM: Xid (PCI:0000:1b:00): 94, pid=2"},
        {"reason_kind": None, "flags": ["DRAIN", "NOT_RESPONDING"]},
        {"partition_states": None, "flags": None},
    ],
    ids=["three-dropped", "unknown-number-dropped", "another-match", "owner-unknown", "blind"],
)
def test_a1_does_not_act_by_itself_where_anything_speaks_against_it(limit: Facts) -> None:
    found = look(slurmd_dead(**limit)).decided
    assert found is None or found.autonomy is not Autonomy.ACT


def test_three_nodes_at_once_are_shown_and_never_acted_on() -> None:
    found = look(slurmd_dead(dropped_recently=3))
    assert found.decided is not None
    assert found.decided.autonomy is Autonomy.PROPOSE
    assert "3 nodes dropped within ten minutes" in found.why


def test_a1_acts_although_the_boot_cannot_be_compared() -> None:
    found = look(slurmd_dead(boot_changed=None, clock_offset_ms=None)).decided
    assert found is not None
    assert found.autonomy is Autonomy.ACT


def test_a_blind_job_list_still_tells_the_deadline() -> None:
    found = look(slurmd_dead(jobs=None, job_count=None, jobs_blind="PrivateData=jobs")).decided
    assert found is not None
    assert any("whatever runs on it ends between" in line for line in found.evidence)


def test_a_down_node_is_not_worth_haste() -> None:
    facts = node(
        "DOWN", "NOT_RESPONDING", slurmd_state="failed", reason="Not responding",
        reason_kind="internal",
    )  # fmt: skip
    found = look(facts).decided
    assert found is not None
    assert (found.id, found.autonomy) == ("A1", Autonomy.PROPOSE)


MISLEADING: list[tuple[str, Facts, str]] = [
    ("old Reason on an idle node", node("IDLE", reason="bad fan", reason_kind="foreign"), "A16"),
    (
        "old Kill task failed on an idle node",
        node("IDLE", reason="Kill task failed", reason_kind="internal"),
        "A16",
    ),
    (
        "A1 with an old Not responding",
        slurmd_dead(reason="Not responding", reason_kind="internal", reason_age_s=900_000),
        "A1",
    ),
    (
        "A1 with an old unexpected reboot in the Reason",
        slurmd_dead(reason="Node unexpectedly rebooted", reason_kind="internal"),
        "A1",
    ),
    ("A13 with INVALID_REG", drained_by_a_person("INVALID_REG"), "A13"),
    ("A13 with a GPU missing", drained_by_a_person("INVALID_REG", gpus_seen=7), "A13"),
    ("A13 with slurmd stopped", drained_by_a_person(slurmd_state="inactive"), "A13"),
    (
        "A13 while the host is off",
        drained_by_a_person("NOT_RESPONDING", host_alive=False, slurmd_state="unknown"),
        "A13",
    ),
    (
        "a reboot that kept a foreign Reason",
        node("DOWN", reason="bad fan", reason_kind="foreign", boot_changed=True, holder="other"),
        "A3",
    ),
    (
        "a reboot after which slurmd did not start",
        node("DOWN", "NOT_RESPONDING", slurmd_state="inactive", boot_changed=True),
        "A3",
    ),
    (
        "slurmd dead on a node that a reservation holds",
        slurmd_dead(holder="other", reservation="maint"),
        "A13",
    ),
    ("a node set DOWN by a person", node("DOWN", reason_kind="foreign", holder="other"), "A13"),
    ("a drain without any Reason", node("IDLE", "DRAIN", holder="other"), "A13"),
    ("our own drain, overwritten by Slurm", invalid(holder="us", our_mark=True), "A4a"),
    ("A1 where the boot cannot be compared", slurmd_dead(boot_changed=None), "A1"),
    ("A4b with less memory as well", invalid(gpus_seen=7, memory_seen_mib=1), "A4b"),
    (
        "A1 on a DOWN node with fewer CPUs than configured",
        node("DOWN", "NOT_RESPONDING", slurmd_state="failed", cpus_seen=2),
        "A1",
    ),
    ("A21 with an old Reason", node("IDLE", reservation="maint", reason="x"), "A21"),
    (
        "slurmd stopped by a reboot that is under way",
        node("IDLE", "REBOOT_ISSUED", "NOT_RESPONDING", slurmd_state="inactive"),
        "A12",
    ),
]


@pytest.mark.parametrize(("scene", "facts", "cause"), MISLEADING, ids=[m[0] for m in MISLEADING])
def test_misleading_extra_evidence_does_not_flip_the_decision(
    scene: str, facts: Facts, cause: str
) -> None:
    assert decided(facts) == cause


def test_hands_off_names_owner_age_and_reason() -> None:
    found = look(drained_by_a_person()).decided
    assert found is not None
    assert found.evidence[0] == "IDLE+DRAIN by ann, 1 d 1 h ago: bad PSU fan, ticket 88"
    assert found.autonomy is Autonomy.OBSERVE


def test_all_that_matches_is_shown_the_most_specific_first() -> None:
    found = look(drained_by_a_person("INVALID_REG", gpus_seen=7, slurmd_state="inactive"))
    assert [match.id for match in found.matches] == ["A13", "A4b", "A1"]
    assert found.why == "A13 is more specific than A4b, A1"
    assert [other["id"] for other in as_output(found)["others"]] == ["A4b", "A1"]  # type: ignore[union-attr, index, call-overload]


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"unknown_flags": ["FROBBED"]}, "FROBBED"),
        ({"unknown_flags": None}, "flags that this version does not know"),
        ({"reach": "not_asked", "reach_evidence": "no route to slurmctld"}, "no route"),
        ({"base": "OTHER", "state": "OTHER"}, "OTHER"),
    ],
)
def test_what_the_bot_cannot_know_is_decided_by_a_person(changed: Facts, says: str) -> None:
    found = look({**slurmd_dead(), **changed})
    assert found.decided is None
    assert says in found.why


def test_no_match_means_a_person() -> None:
    found = look(node("FUTURE", slurmd_state="unknown"))
    assert found.decided is None
    assert as_output(found)["id"] is None
    assert "a person decides" in found.why


def test_where_facts_were_not_read_a_person_gets_what_may_be_so() -> None:
    facts = node("ALLOCATED", "NOT_RESPONDING", slurmd_state=None, reach="auth_failed")
    found = look(facts)
    assert found.decided is None
    assert set(found.not_ruled_out) >= {"A1", "A14"}
    assert "because facts were not read; it may be A1" in found.why
    evidence = as_output(found)["evidence"]
    assert isinstance(evidence, list)
    assert "A1?: the host answers (auth_failed)" in evidence


def test_a_tie_means_a_person_and_all_the_evidence() -> None:
    found = diagnose(_table(5, 5), {**HEALTHY})
    assert found.decided is None
    assert "B1 and B2 match equally well" in found.why
    assert as_output(found)["evidence"] == ["B1: base ALLOCATED", "B2: base ALLOCATED"]
    assert _id(diagnose(_table(5, 6), {**HEALTHY})) == "B2"


@pytest.mark.parametrize("fact", sorted(HEALTHY))
def test_a_fact_that_was_not_read_never_makes_another_cause_act(fact: str) -> None:
    for scene in SCENES.values():
        full, less = look(scene), look({**scene, fact: None})
        known = {match.id for match in full.matches}
        assert {match.id for match in less.matches} <= known
        if less.decided is not None and less.decided.autonomy is Autonomy.ACT:
            assert full.decided is not None
            assert full.decided.id == less.decided.id


def test_no_facts_at_all_decide_nothing() -> None:
    assert look({}).decided is None
    assert look({}).matches == ()


@given(
    st.sampled_from(sorted(HEALTHY)),
    st.none() | st.booleans() | st.integers() | st.text() | st.lists(st.text(), max_size=3),
    st.sampled_from(sorted(SCENES)),
)
def test_a_fact_of_any_kind_never_breaks_the_diagnosis(fact: str, value: Json, scene: str) -> None:
    output = as_output(look({**SCENES[scene], fact: value}))
    assert output["autonomy"] in {"observe", "propose", "act"}


@given(st.text(max_size=400))
def test_hostile_text_stays_text_in_the_evidence_and_is_cut(reason: str) -> None:
    found = look(drained_by_a_person(reason="{{ base }} {% x %}" + reason)).decided
    assert found is not None
    assert "{{ base }} {% x %}" in found.evidence[0]
    assert all(len(line) <= 300 for line in found.evidence)


def test_a_sentence_of_evidence_is_cut_wherever_its_text_comes_from() -> None:
    facts: Facts = {**HEALTHY, "base": "ALLOCATED" + "x" * 5000}
    table = load_causes(_table(1, 2).text.replace("base ==", "base !="), "t.yaml")
    found = diagnose(table, facts).decided
    assert found is not None
    assert [len(line) for line in found.evidence] == [300]


def _table(first: int, second: int) -> Causes:
    rows = "".join(
        f"  - {{id: B{number}, title: t, confidence: low, specificity: {specificity}, "
        'signature: [{if: base == "ALLOCATED", evidence: "base {{ base }}"}], '
        "first_action: a, verify: v, escalate_when: e}\n"
        for number, specificity in ((1, first), (2, second))
    )
    return load_causes(f"causes: t\nversion: 1\ntitle: t\nfacts: node\ntable:\n{rows}", "t.yaml")


def _id(found: Diagnosis) -> str | None:
    return found.decided.id if found.decided else None
