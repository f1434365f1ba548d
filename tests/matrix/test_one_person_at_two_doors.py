"""Requester and approver are two people, whichever doors they use; shared accounts are nobody."""

import os

import pytest

from audit_log.records import EventKind
from bot.local_client import talk
from bot.local_wire import Ask
from runbooks.rails import Needed, PlanGate
from tests.matrix.people import UIDS, configuration
from tests.matrix.shells import Shell
from tests.matrix.site import Spot, at_slack, at_the_socket

SELF = "somebody else must approve it"


def waiting(site: Spot) -> str:
    """The newest run, which waits for approval."""
    run = site.runs()[-1]
    assert site.rested(run).value == "awaiting_approval"
    return run


def approvals(site: Spot, run: str) -> int:
    return sum(one.event.run == run for one in site.records(EventKind.APPROVAL_GIVEN))


def as_root(site: Spot, text: str) -> str:
    """What root is told at the socket: the process of the tests itself."""
    ask = Ask(words=tuple(text.split()), key=os.urandom(8).hex(), follow=False)
    reply = next(talk(site.socket, ask))["reply"]
    return "\n".join(reply["lines"])


def test_asked_in_slack_and_approved_at_the_command_line_by_the_same(
    site: Spot, shells: dict[str, Shell]
) -> None:
    assert "started" in at_slack(site, "otto", "drain gpu-001 a")
    run = waiting(site)
    assert SELF in at_the_socket(site, shells["otto"], f"approve {run}")
    assert approvals(site, run) == 0
    assert f"{run} approved" in at_the_socket(site, shells["adm"], f"approve {run}")


def test_asked_at_the_command_line_and_approved_in_slack_by_the_same(
    site: Spot, shells: dict[str, Shell]
) -> None:
    assert "started" in at_the_socket(site, shells["otto"], "drain gpu-002 a")
    run = waiting(site)
    assert SELF in at_slack(site, "otto", f"approve {run}")
    card = site.slack.channel("#ops").expect(f"{run} drain-node")
    site.slack.wait_until(lambda: "Approve" in card.buttons)
    card.click("Approve", by="otto").expect_ephemeral(SELF)
    assert approvals(site, run) == 0
    assert f"{run} approved" in at_slack(site, "adm", f"approve {run}")


def test_asked_standalone_and_approved_by_the_same_at_any_door(
    fresh: tuple[Spot, dict[str, Shell]],
) -> None:
    site, shells = fresh
    site.shut()
    config = site.folder / "alone.yaml"
    data = site.folder / "data"
    config.write_text(configuration(site.folder, data), "utf-8")
    for path in (data, *data.rglob("*")):
        os.chown(path, UIDS["adm"], UIDS["adm"])
    assert "run-1 started" in str(shells["adm"].alone(config, ["drain", "gpu-003", "a"])["text"])
    again = shells["adm"].alone(config, ["approve", "run-1"])
    assert again["code"] == 1
    assert SELF in again["text"]
    site.open()
    assert SELF in at_slack(site, "adm", "approve run-1")
    assert SELF in at_the_socket(site, shells["adm"], "approve run-1")
    assert approvals(site, "run-1") == 0
    assert "run-1 approved" in at_the_socket(site, shells["otto"], "approve run-1")


def test_two_approvals_of_one_person_at_two_doors_count_once(
    site: Spot, shells: dict[str, Shell], monkeypatch: pytest.MonkeyPatch
) -> None:
    two = Needed(gate=PlanGate.APPROVE, persons=2, why="work of 1 job would be lost")
    monkeypatch.setattr("runbooks.engine.needed", lambda *_: two)
    site.boss("drain gpu-004 a")
    run = waiting(site)
    assert "1 more must approve" in at_slack(site, "otto", f"approve {run}")
    assert "needs another person" in at_the_socket(site, shells["otto"], f"approve {run}")
    assert site.state(run) == "awaiting_approval"
    assert f"{run} approved" in at_the_socket(site, shells["adm"], f"approve {run}")


def test_a_shared_account_cannot_approve(site: Spot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bot.os_users._login_uid", lambda _: None)
    site.boss("drain gpu-005 a")
    run = waiting(site)
    assert "root is a shared account" in as_root(site, f"approve {run}")
    glass = as_root(site, f"approve {run} --break-glass fire")
    assert "root is a shared account: it cannot say who broke the glass" in glass
    assert approvals(site, run) == 0


def test_root_through_sudo_is_whoever_logged_in(
    site: Spot, shells: dict[str, Shell], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "started" in at_the_socket(site, shells["otto"], "drain gpu-006 a")
    run = waiting(site)
    monkeypatch.setattr("bot.os_users._login_uid", lambda _: UIDS["otto"])
    assert "you are otto" in as_root(site, "whoami")
    assert SELF in as_root(site, f"approve {run}")
    assert SELF in at_the_socket(site, shells["adm"], f"approve {run}"), "sudo -u adm is no adm"
    assert approvals(site, run) == 0
