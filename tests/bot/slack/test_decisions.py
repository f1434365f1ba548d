"""Who may decide in Slack, with buttons and words: the clicking person, once, by state."""

import re
import threading
from typing import Any

import pytest

from audit_log.records import EventKind
from bot.desk import Request
from bot.replies import Reply
from bot.slack import listeners
from bot.standin.server import SlackStandIn
from bot.standin.vocabulary import Message
from runbooks.rails import Needed, PlanGate
from tests.bot.slack.conftest import Site
from tests.patience import DEADLINE


@pytest.fixture
def asks_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every plan needs one other person, as one does that ends a job."""
    one = Needed(gate=PlanGate.APPROVE, persons=1, why="1 job would end")
    monkeypatch.setattr("runbooks.engine.needed", lambda *_: one)


@pytest.fixture
def waiting(slack: SlackStandIn, asks_one: None, site: Site) -> Message:
    """The card of ann's drain, which waits for somebody else."""
    slack.person("ann").command("#ops", '/ops drain gpu-068 "RMA 4711"').ack()
    card = slack.channel("#ops").expect("run-1 drain-node gpu-068")
    slack.wait_until(lambda: card.buttons == ("Approve", "Deny"))
    return card


def approvals(site: Site) -> int:
    return len(site.records(EventKind.APPROVAL_GIVEN))


def test_another_person_approves_and_the_card_says_so(
    slack: SlackStandIn, site: Site, waiting: Message
) -> None:
    click = waiting.click("Approve", by="bob")
    click.expect_ephemeral("run-1 approved")
    waiting.expect_update(re.compile("Finished"))
    assert waiting.buttons == ()
    assert approvals(site) == 1
    assert slack.unacked == 0


def test_a_click_whose_commit_is_slow_is_told_so_and_answered_afterwards(
    slack: SlackStandIn, site: Site, waiting: Message, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listeners, "ACK_PATIENCE", 0.1)
    submit, disk = site.bot.desk.submit, threading.Event()

    def slowly(request: Request) -> Reply:
        assert disk.wait(DEADLINE)
        return submit(request)

    monkeypatch.setattr(site.bot.desk, "submit", slowly)
    click = waiting.click("Approve", by="bob")
    click.expect_ephemeral("not recorded yet; the answer follows")
    assert approvals(site) == 0
    disk.set()
    click.expect_ephemeral("run-1 approved")
    assert approvals(site) == 1


def test_a_plan_that_waits_rings_with_a_mention_of_who_may_approve(
    slack: SlackStandIn, site: Site, waiting: Message
) -> None:
    ring = waiting.expect_reply(f"<@{slack.person('bob').id}>")
    assert ring.stored.broadcast
    assert slack.person("ann").id not in ring.text
    assert slack.person("vic").id not in ring.text


def test_the_requester_is_refused_at_every_door(
    slack: SlackStandIn, site: Site, waiting: Message
) -> None:
    waiting.click("Approve", by="ann").expect_ephemeral("somebody else must approve it")
    typed = slack.person("ann").command("#ops", "/ops approve run-1")
    assert "somebody else must approve it" in typed.ack().payload["text"]
    assert "somebody else must approve it" in site.at_the_shell("ann", "approve run-1").lines[0]
    assert approvals(site) == 0
    assert waiting.buttons == ("Approve", "Deny")


def test_a_click_without_the_right_is_answered_and_recorded_once(
    slack: SlackStandIn, site: Site, waiting: Message
) -> None:
    before = len(site.records(EventKind.REQUEST_DENIED))
    click = waiting.click("Approve", by="vic")
    click.expect_ephemeral(re.compile("oncall|admin"))
    assert len(click.ephemerals()) == 1
    assert len(site.records(EventKind.REQUEST_DENIED)) == before + 1
    assert approvals(site) == 0
    assert waiting.buttons == ("Approve", "Deny")


def test_a_double_click_is_one_decision(slack: SlackStandIn, site: Site, waiting: Message) -> None:
    clicks = [waiting.click("Approve", by="bob") for _ in range(2)]
    for click in clicks:
        click.ack()
        click.expect_ephemeral()
    told = sorted(click.ephemerals()[0].text for click in clicks)
    assert sum("run-1 approved" in text for text in told) == 1
    assert approvals(site) == 1


def test_one_click_delivered_twice_is_answered_once(
    slack: SlackStandIn, site: Site, waiting: Message
) -> None:
    slack.duplicate_next()
    click = waiting.click("Approve", by="bob")
    click.expect_ephemeral("run-1 approved")
    waiting.expect_update("Finished")
    assert len(click.ephemerals()) == 1
    assert approvals(site) == 1


def test_deny_asks_why_and_the_reason_is_kept(
    slack: SlackStandIn, site: Site, waiting: Message
) -> None:
    waiting.click("Deny", by="bob").ack()
    form = slack.person("bob").view()
    values: dict[str, Any] = {
        "reason": {"text": {"type": "plain_text_input", "value": "wait“ for 05:00"}}
    }
    form.submit(values).ack()
    waiting.expect_update("Cancelled")
    record = site.records(EventKind.APPROVAL_DENIED)[0]
    assert record.event.data["reason"] == f'{record.event.actor}: wait" for 05:00'
    assert site.state("run-1") == "cancelled"


def test_a_form_that_comes_too_late_says_so_in_the_form(
    slack: SlackStandIn, site: Site, waiting: Message
) -> None:
    waiting.click("Deny", by="bob").ack()
    form = slack.person("bob").view()
    site.at_the_shell("bob", "deny run-1 no")
    values = {"reason": {"text": {"type": "plain_text_input", "value": "no"}}}
    errors = form.submit(values).ack().payload["errors"]
    assert "nothing to approve" in errors["reason"]


def test_a_form_that_cannot_open_is_offered_again(
    slack: SlackStandIn, site: Site, waiting: Message
) -> None:
    slack.fail_next("views.open", "expired_trigger_id")
    again = waiting.click("Deny", by="bob").expect_ephemeral("click again")
    again.click("Say why", by="bob").ack()
    assert "deny run-1" in slack.person("bob").view().seen


def test_a_stale_button_is_refused_by_state_and_the_card_is_shown_anew(
    slack: SlackStandIn, site: Site, waiting: Message
) -> None:
    old = next(n for n, version in enumerate(waiting.revisions) if "Approve" in str(version))
    site.at_the_shell("bob", "deny run-1 no")
    waiting.expect_update("Cancelled")
    versions = len(waiting.revisions)
    waiting.click("Approve", by="bob", revision=old).expect_ephemeral("nothing to approve")
    slack.wait_until(lambda: len(waiting.revisions) > versions)
    assert waiting.buttons == ()
    assert approvals(site) == 0


def test_a_button_that_nobody_knows_is_out_of_date(
    slack: SlackStandIn, site: Site, waiting: Message
) -> None:
    control = {"type": "button", "action_id": "from.last.year", "value": "x", "block_id": "b"}
    user = slack.person("bob").user
    act = slack.interactions.click(user, waiting.stored, control)
    slack.wait_until(lambda: act.ack is not None)
    slack.wait_until(lambda: any("out of date" in m.text for m in slack.ephemerals_of("bob")))


def test_first_click_after_a_restart_works_and_no_second_card_appears(
    slack: SlackStandIn, site: Site, waiting: Message
) -> None:
    slack.wait_until(lambda: any(reply.stored.broadcast for reply in waiting.thread()))
    rung = len(waiting.thread())
    site.stop()
    site.start()
    waiting.click("Approve", by="bob").expect_ephemeral("run-1 approved")
    waiting.expect_update("Finished")
    posts = [c for c in slack.calls("chat.postMessage") if "thread_ts" not in c.arguments]
    assert len(posts) == 1
    rings = [m for m in waiting.thread() if m.stored.broadcast]
    assert len(rings) == 1, f"{rung} replies before the restart"


def test_words_in_the_thread_of_a_card_mean_its_run(
    slack: SlackStandIn, site: Site, waiting: Message
) -> None:
    slack.person("bob").say("#ops", "@ops-bot abort wrong node", thread=waiting)
    waiting.expect_update("Cancelled")
    assert site.state("run-1") == "cancelled"
