"""A revoked token or a removed app: one page, a line in `status` and `doctor`, and everything goes on."""

from dataclasses import replace

from audit_log.records import EventKind
from bot.standin.server import SlackStandIn
from tests.bot.slack.conftest import PATIENT, Site

QUICK = replace(PATIENT, greeting=0.5, tokens=0.05, longest_pause=0.3)


def pages(site: Site) -> list[bool]:
    """Each page about Slack that was meant to go out: whether it says that all is over."""
    found = (record.event.data for record in site.records(EventKind.PAGE_INTENDED))
    return [bool(data.get("resolved")) for data in found if str(data["key"]).endswith("/slack")]


def accepted(site: Site) -> int:
    found = (record.event.data for record in site.records(EventKind.PAGE_ACCEPTED))
    return len([data for data in found if str(data["key"]).endswith("/slack")])


def said(site: Site, verb: str) -> str:
    return "\n".join(site.at_the_shell("ann", verb).lines)


def test_a_revoked_token_is_paged_once_said_and_outlived(slack: SlackStandIn, cold: Site) -> None:
    cold.watch = QUICK
    cold.start()
    slack.revoke_tokens()
    cold.until(lambda: accepted(cold) == 1)
    for verb in ("status", "doctor"):
        assert "Slack refuses slack.bot_token (token_revoked)" in said(cold, verb)
    assert cold.at_the_shell("ann", "drain gpu-067 y").run == "run-1"
    cold.until(lambda: cold.state("run-1") == "succeeded")
    cold.stop()
    cold.start(connected=False)
    asked = len(slack.calls("auth.test"))
    slack.wait_until(lambda: len(slack.calls("auth.test")) > asked + 3)
    assert pages(cold) == [False]
    cold.stop()
    slack.grant_tokens()
    cold.start()
    cold.until(lambda: accepted(cold) == 2)
    assert pages(cold) == [False, True]
    assert "refuses" not in said(cold, "status")
    slack.channel("#ops").expect("Finished")
    assert slack.person("ann").command("#ops", "/ops halt x").ack().payload


def test_a_token_that_works_again_is_noticed_without_a_restart(
    slack: SlackStandIn, cold: Site
) -> None:
    cold.watch = QUICK
    cold.start()
    slack.revoke_tokens()
    slack.close_sockets()
    cold.until(lambda: pages(cold) == [False])
    slack.grant_tokens()
    cold.until(lambda: pages(cold) == [False, True])
    slack.wait_for_bot()
    cold.until(lambda: cold.door.connected)
    assert "refuses" not in said(cold, "doctor")
    assert slack.person("ann").command("#ops", "/ops halt x").ack().payload


def test_a_refused_app_level_token_is_named(slack: SlackStandIn, cold: Site) -> None:
    cold.watch = QUICK
    cold.start()
    slack.fail_next("apps.connections.open", "invalid_auth", times=100_000)
    slack.close_sockets()
    cold.until(lambda: pages(cold) == [False])
    assert "Slack refuses slack.app_token (invalid_auth)" in said(cold, "status")
    slack.faults.clear()
    cold.until(lambda: pages(cold) == [False, True])
    cold.until(lambda: cold.door.connected)
