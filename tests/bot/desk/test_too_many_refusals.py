"""Somebody whose requests are refused again and again is told so, and can still do what works."""

from pathlib import Path

from audit_log.records import EventKind
from audit_log.refusal_limit import MOST
from bot.replies import ReplyKind
from tests.bot.whole import whole


def test_a_crowd_of_refusals_is_answered_with_too_many_and_recorded_once(tmp_path: Path) -> None:
    with whole(tmp_path) as site:
        for number in range(MOST):
            assert len(site.says("ann", f"drain gpu-9{number:02d} x").lines) == 1
        reply = site.says("ann", "drain gpu-999 x")
        assert reply.kind is ReplyKind.REFUSED
        assert reply.lines[-1].startswith("too many: ")
        denied = site.says("ann", "halt --clear x")
        assert denied.kind is ReplyKind.DENIED
        assert denied.lines[-1].startswith("too many: ")
        assert site.says("ann", "drain gpu-066 fan").kind is ReplyKind.STARTED
        assert site.says("ann", "halt smoke").kind is ReplyKind.DONE
        assert len(site.says("bob", "drain gpu-999 x").lines) == 1
        site.bot.gate.close()
        kinds = {EventKind.REQUEST_REFUSED, EventKind.REQUEST_DENIED}
        ledger = site.bot.parts.ledger
        told = [record.event for record in ledger.records() if record.event.kind in kinds]
        assert len(told) == MOST + 2
        assert told[-1].data["of"] == {"denied halt.clear": 1, "refused drain": 1}
        assert "2 refusals beyond" in site.told("adm", "audit since=1h")


def test_a_refused_confirmation_after_a_restore_is_recorded(tmp_path: Path) -> None:
    with whole(tmp_path) as site:
        assert site.says("adm", "audit confirm all checked").kind is ReplyKind.REFUSED
        ledger = site.bot.parts.ledger
        told = [r.event for r in ledger.records() if r.event.kind is EventKind.REQUEST_REFUSED]
        assert [event.data["why"] for event in told] == ["no restore waits for a confirmation"]
