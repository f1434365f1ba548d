"""The shipped policy is careful, and any change of it changes what a plan is bound to."""

import pytest

from config.policy import (
    Approvals,
    AskedBy,
    Autonomy,
    AutonomyRule,
    AutonomySettings,
    Limits,
    Policy,
)


@pytest.mark.parametrize(
    ("runbook", "cause", "person", "level"),
    [
        ("node-dropped", "A1", False, Autonomy.ACT),
        ("node-dropped", "A1", True, Autonomy.ACT),
        ("node-dropped", "A3", True, Autonomy.PROPOSE),
        ("node-dropped", None, True, Autonomy.PROPOSE),
        ("drain-node", None, True, Autonomy.ACT),
        ("drain-node", None, False, Autonomy.PROPOSE),
        ("return-node", None, True, Autonomy.ACT),
        ("return-node", None, False, Autonomy.PROPOSE),
        ("anything-else", "A1", True, Autonomy.PROPOSE),
    ],
)
def test_only_what_is_shipped_as_act_acts(
    runbook: str, cause: str | None, person: bool, level: Autonomy
) -> None:
    assert AutonomySettings().level(runbook, cause, asked_by_person=person) is level


def test_a_rule_for_a_cause_beats_one_for_all_and_the_careful_one_wins() -> None:
    settings = AutonomySettings(
        rules=(
            AutonomyRule(runbook="r", level=Autonomy.OBSERVE),
            AutonomyRule(runbook="r", cause="A1", level=Autonomy.ACT),
            AutonomyRule(runbook="r", cause="A1", asked_by=AskedBy.PERSON, level=Autonomy.PROPOSE),
        )
    )
    assert settings.level("r", "A1", asked_by_person=False) is Autonomy.ACT
    assert settings.level("r", "A1", asked_by_person=True) is Autonomy.PROPOSE
    assert settings.level("r", "A2", asked_by_person=True) is Autonomy.OBSERVE


def test_equal_policies_have_one_digest_and_any_change_another() -> None:
    shipped = Policy()
    assert shipped.digest() == Policy().digest()
    changed = [
        Policy(limits=Limits(gpus_two_persons=65)),
        Policy(approvals=Approvals(replans=4)),
        Policy(autonomy=AutonomySettings(default=Autonomy.OBSERVE)),
        Policy(autonomy=AutonomySettings(rules=())),
    ]
    assert len({shipped.digest(), *(policy.digest() for policy in changed)}) == 5
