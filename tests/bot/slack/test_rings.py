"""What rings: a run that somebody holds and a deadline that is near, once each, whatever restarts."""

import re
from datetime import timedelta

import pytest

from audit_log.errors import StoreFull
from audit_log.records import Event, EventKind
from bot.slack import rings
from bot.slack.stories import Stories
from bot.standin.server import SlackStandIn
from bot.standin.vocabulary import Message
from config.actors import ENGINE
from config.json_values import Json
from runbooks.rails import Needed, PlanGate
from tests.bot.slack.conftest import Site


@pytest.fixture
def asks_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every plan needs one other person, as one does that ends a job."""
    one = Needed(gate=PlanGate.APPROVE, persons=1, why="1 job would end")
    monkeypatch.setattr("runbooks.engine.needed", lambda *_: one)


def ringing(card: Message, words: str = "") -> list[str]:
    return [m.text for m in card.thread() if m.stored.broadcast and words in m.seen]


def told(site: Site, words: str) -> bool:
    return words in str([record.event.data for record in site.records(EventKind.CARD_NOTED)])


def test_a_halted_run_rings_once_for_those_who_may_clear_the_halt(
    slack: SlackStandIn, site: Site
) -> None:
    site.at_the_shell("ann", "halt power work in row 4")
    slack.person("ann").command("#ops", "/ops drain gpu-068 x").ack()
    card = slack.channel("#ops").expect("halted: ")
    ring = card.expect_reply("power work in row 4")
    assert ring.stored.broadcast
    assert f"<@{slack.person('adm').id}>" in ring.text
    assert f"<@{slack.person('bob').id}>" not in ring.text
    site.until(lambda: told(site, "held"))
    site.stop()
    site.start()
    site.at_the_shell("adm", "halt --clear done")
    slack.channel("#ops").expect("Finished")
    assert len(ringing(card)) == 1


def test_a_run_that_a_restore_holds_rings_for_those_who_may_confirm_it(
    slack: SlackStandIn, site: Site
) -> None:
    lost: dict[str, Json] = {"backup_head": 1, "lost_to": 1}
    restored = Event(kind=EventKind.RESTORED, actor=ENGINE.id, data=lost)
    site.bot.parts.ledger.commit(lambda transaction: transaction.append(restored))
    slack.person("ann").command("#ops", "/ops drain gpu-068 x").ack()
    ring = slack.channel("#ops").expect("drain-node gpu-068").expect_reply("audit confirm run-")
    assert f"<@{slack.person('adm').id}>" in ring.text


def test_an_approval_that_is_about_to_expire_rings_once_more_and_only_once(
    slack: SlackStandIn, asks_one: None, cold: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rings, "SOON", timedelta(minutes=15) - timedelta(seconds=2))
    cold.start()
    slack.person("ann").command("#ops", "/ops drain gpu-068 x").ack()
    card = slack.channel("#ops").expect("run-1 drain-node gpu-068")
    ring = card.expect_reply("without a yes the plan expires at")
    assert re.search("Under 2 minutes", ring.seen)
    assert f"<@{slack.person('bob').id}>" in ring.text
    cold.until(lambda: told(cold, "deadline run-1 plan 1"))
    cold.stop()
    cold.start()
    card.click("Deny", by="bob")
    cold.at_the_shell("bob", "deny run-1 no")
    cold.until(lambda: told(cold, "final"))
    assert len(ringing(card, "Under 2 minutes")) == 1
    assert len(ringing(card)) == 2


def test_a_job_that_is_about_to_die_rings_while_the_run_waits_for_a_person(
    slack: SlackStandIn, asks_one: None, cold: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rings, "SOON", timedelta(days=1))
    cold.start()
    cold.plugs.pull("kill_slurmd", node="gpu-001")
    slack.person("ann").command("#ops", "/ops run node-dropped gpu-001").ack()
    card = slack.channel("#ops").expect("run-1 node-dropped gpu-001")
    ring = card.expect_reply(
        re.compile(r"the jobs on gpu-001 die from (\d\d-\d\d )?\d\d:\d\d UTC on")
    )
    assert f"<@{slack.person('bob').id}>" in ring.text
    cold.until(lambda: told(cold, "deadline death gpu-001"))
    assert len(ringing(card, "die from")) == 1
    cold.stop()
    cold.start()
    cold.at_the_shell("bob", "deny run-1 no")
    cold.until(lambda: told(cold, "final"))
    assert len(ringing(card, "die from")) == 1


def test_a_ring_whose_record_was_lost_is_found_and_not_sent_again(
    slack: SlackStandIn, asks_one: None, cold: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rings, "SOON", timedelta(days=1))  # two reasons in one message
    with monkeypatch.context() as dying:

        def dead(self: Stories, *what: object) -> None:
            raise StoreFull("dead")

        dying.setattr(Stories, "record_told", dead)
        cold.start()
        slack.person("ann").command("#ops", "/ops drain gpu-068 x").ack()
        card = slack.channel("#ops").expect("run-1 drain-node gpu-068")
        card.expect_reply("without a yes")
        cold.stop()
    cold.start()
    cold.until(lambda: told(cold, "deadline run-1 plan 1"))
    cold.at_the_shell("bob", "deny run-1 no")
    cold.until(lambda: told(cold, "final"))
    assert len(ringing(card)) == 1
