"""Roles and accounts that change between asking, approving and acting; groups while Slack is away."""

import pytest

from audit_log.errors import StoreFailed
from audit_log.records import EventKind
from bot.standin.vocabulary import Command
from tests.matrix.people import STRANGER
from tests.matrix.shells import Shell
from tests.matrix.site import Spot, at_slack, at_the_socket

Fresh = tuple[Spot, dict[str, Shell]]


def give(site: Spot, name: str, roles: str) -> None:
    """Change somebody's roles in the configuration, and start the bot with it."""
    site.shut()
    lines = [line for line in site.settings_text.splitlines() if line.startswith(f"  {name}: ")]
    changed = f"{lines[0].partition(' roles: ')[0]} roles: [{roles}]}}"
    site.settings_text = site.settings_text.replace(lines[0], changed)
    site.open()


def refused_at_the_step(site: Spot, run: str) -> bool:
    """Whether the run failed for want of a right, with one record and no effect."""
    site.until(lambda: site.state(run) in {"failed", "succeeded"})
    denied = [one.event for one in site.records(EventKind.REQUEST_DENIED) if one.event.run == run]
    assert (site.state(run) == "failed") == (len(denied) == 1) == (not site.plugs.effects())
    return site.state(run) == "failed"


def waiting(site: Spot) -> str:
    run = site.runs()[-1]
    assert site.rested(run).value == "awaiting_approval"
    return run


def in_a_group(site: Spot, name: str) -> str:
    """Give somebody the role oncall by a Slack user group; the group's id."""
    group = site.slack.group("night", [name])
    site.shut()
    site.settings_text += f"groups:\n  {group}: {{roles: [oncall]}}\n"
    site.open()
    site.until(lambda: site.bot.identities.groups_known)
    return group


def holds(site: Spot, name: str, role: str) -> bool:
    person = site.bot.identities.by_name(name)
    return person is not None and role in person.roles


def test_a_role_taken_away_in_the_configuration_stops_the_step(fresh: Fresh) -> None:
    site, _ = fresh
    assert "started" in at_slack(site, "otto", "drain gpu-001 a")
    run = waiting(site)
    give(site, "otto", "viewer")
    site.boss(f"approve {run}")
    assert refused_at_the_step(site, run)


def test_a_role_taken_away_in_the_configuration_counts_at_the_click(fresh: Fresh) -> None:
    site, shells = fresh
    site.boss("drain gpu-001 a")
    run = waiting(site)
    give(site, "otto", "viewer")
    assert "run.approve" in at_slack(site, "otto", f"approve {run}")
    assert "run.approve" in at_the_socket(site, shells["otto"], f"approve {run}")
    assert site.state(run) == "awaiting_approval"


def test_a_role_given_after_the_request_helps_no_step(fresh: Fresh) -> None:
    site, shells = fresh
    assert "started" in at_the_socket(site, shells["rita"], "drain gpu-401 a")
    run = waiting(site)
    give(site, "rita", "oncall")
    site.boss(f"approve {run}")
    assert refused_at_the_step(site, run)


def test_whoever_leaves_the_group_is_stopped_at_the_step(fresh: Fresh) -> None:
    site, _ = fresh
    in_a_group(site, "nora")
    assert "started" in at_slack(site, "nora", "drain gpu-001 a")
    run = waiting(site)
    site.slack.group("night", ["vic"])
    site.until(lambda: not holds(site, "nora", "oncall"))
    site.boss(f"approve {run}")
    assert refused_at_the_step(site, run)


def test_a_group_that_slack_has_not_told_since_the_start_takes_nothing_away(fresh: Fresh) -> None:
    site, _ = fresh
    in_a_group(site, "nora")
    assert "started" in at_slack(site, "nora", "drain gpu-001 a")
    run = waiting(site)
    site.shut()
    site.slack.go_down()
    site.open_without_slack()
    assert not holds(site, "nora", "oncall")
    site.boss(f"approve {run}")
    assert not refused_at_the_step(site, run)


def test_a_group_is_remembered_while_slack_is_down(fresh: Fresh) -> None:
    site, shells = fresh
    in_a_group(site, "nora")
    site.slack.go_down()
    assert "started" in at_the_socket(site, shells["nora"], "drain gpu-001 a")
    run = waiting(site)
    site.boss(f"approve {run}")
    assert not refused_at_the_step(site, run)


def test_accounts_that_are_no_members_may_nothing_and_are_recorded_once(fresh: Fresh) -> None:
    site, _ = fresh
    ops = site.slack.channel("#ops").stored
    otto = site.slack.person("otto")
    left = otto.user  # as it was when the command was on its way
    otto.deactivate()
    site.slack.person("adm").make_guest()
    site.slack.wait_until(lambda: all(sent.acks for sent in site.slack.deliveries))
    stranger = site.slack.stranger("mallory").user
    for user, why in (
        (left, "the account is deactivated"),
        (site.slack.person("adm").user, "it is a guest's"),
        (stranger, "you are in workspace T99999999"),
    ):
        before = len(site.denials())
        act = site.slack.interactions.command(user, ops, "/ops halt x")
        told = str(Command(place=site.slack.interactions, interaction=act).ack().payload["text"])
        assert why in told
        found = site.denials()[before:]
        assert [(one.actor, one.data["door"]) for one in found] == [("stranger", "slack")]
        assert why in str(found[0].data["because"])
        assert user.id not in str(found[0].data)
    assert site.bot.parts.halt.reason() is None


def test_a_stranger_is_turned_away_also_when_that_cannot_be_recorded(
    fresh: Fresh, monkeypatch: pytest.MonkeyPatch
) -> None:
    site, shells = fresh

    def full(*_: object) -> None:
        raise StoreFailed("the disk is full")

    monkeypatch.setattr(site.bot.gate, "turn_away", full)
    assert "nobody in the configuration" in at_the_socket(site, shells[STRANGER], "halt x")
    assert "nobody in the configuration" in at_slack(site, STRANGER, "halt x")
    assert site.bot.parts.halt.reason() is None
