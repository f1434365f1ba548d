"""What the Slack door takes as a command, from whom and where, and what it says otherwise."""

import re
import threading

import pytest

from audit_log.records import Event, EventKind
from bot.desk import Request
from bot.replies import Reply
from bot.slack import listeners
from bot.standin.server import SlackStandIn
from config.actors import ENGINE
from config.json_values import Json
from tests.bot.slack.conftest import Site
from tests.patience import DEADLINE


def answer(slack: SlackStandIn, who: str, text: str) -> str:
    return str(slack.person(who).command("#ops", f"/ops {text}").ack().payload.get("text", ""))


def roles(site: Site, name: str) -> frozenset[str]:
    person = site.bot.identities.by_name(name)
    return person.roles if person is not None else frozenset()


def test_a_question_is_answered_to_the_person_alone(slack: SlackStandIn, site: Site) -> None:
    command = slack.person("ann").command("#ops", "/ops node gpu-071")
    assert command.ack().payload == {}
    shown = command.expect_ephemeral("gpu-071 on sim")
    assert "a&lt;!channel&gt;&amp;ʼidʼ" in shown.seen
    assert slack.channel("#ops").messages() == ()


def test_an_answer_that_the_response_url_refuses_comes_as_an_ephemeral(
    slack: SlackStandIn, site: Site
) -> None:
    slack.http_error_next("response_url", 404)
    slack.person("ann").command("#ops", "/ops whoami").ack()
    slack.wait_until(lambda: any("you are ann" in m.text for m in slack.ephemerals_of("ann")))


def test_one_envelope_delivered_twice_is_one_run(slack: SlackStandIn, site: Site) -> None:
    slack.duplicate_next()
    answer(slack, "ann", "drain gpu-068 x")
    slack.channel("#ops").expect("Finished")
    assert site.runs() == ["run-1"]
    slack.wait_until(lambda: slack.deliveries[0].acks == 2)


def test_the_same_words_again_ask_before_a_second_run(slack: SlackStandIn, site: Site) -> None:
    assert "run-1 started" in answer(slack, "ann", "drain gpu-068 x")
    again = slack.person("ann").command("#ops", "/ops drain  gpu-068 x")
    assert "a moment ago" in again.ack().payload["text"]
    assert site.runs() == ["run-1"]
    again.expect_ephemeral("a moment ago").click("Run again", by="ann").expect_ephemeral("run-2")
    assert site.runs() == ["run-1", "run-2"]


def test_other_words_and_other_people_are_not_a_repetition(slack: SlackStandIn, site: Site) -> None:
    assert "run-1 started" in answer(slack, "ann", "drain gpu-068 x")
    assert "run-2 started" in answer(slack, "bob", "drain gpu-068 x")
    assert "run-3 started" in answer(slack, "ann", "drain gpu-068 y")


def test_a_refused_command_may_be_typed_again(slack: SlackStandIn, site: Site) -> None:
    assert "gpu-999" in answer(slack, "ann", "drain gpu-999 x")
    assert "gpu-999" in answer(slack, "ann", "drain gpu-999 x")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("drain “gpu-068 x", "quotation mark is not closed"),
        ("drian gpu-068", "did you mean drain"),
        ("drain @channel x", "broadcast"),
        ("drain gpu-068\u200b x", r"U\+200B|200b"),
        ('run node-dropped @x";touch F;"', "quotation mark|cannot|not"),
        ("drain gpu-[1-30000000] x", "20,?000|too many|30,?000,?000"),
        ("drain -oProxyCommand=x y", "node|option"),
        ("drain * x", r"\*"),
    ],
)
def test_what_cannot_be_read_is_refused_by_name(
    slack: SlackStandIn, site: Site, text: str, told: str
) -> None:
    assert re.search(told, answer(slack, "ann", text))
    assert site.runs() == []


def test_a_person_without_the_right_gets_an_ephemeral_and_one_record(
    slack: SlackStandIn, site: Site
) -> None:
    command = slack.person("vic").command("#ops", "/ops drain gpu-068 x")
    assert re.search("oncall|admin", command.ack().payload["text"])
    assert len(site.records(EventKind.REQUEST_DENIED)) == 1
    assert site.runs() == []


def test_somebody_whom_the_configuration_does_not_know_is_told_what_to_add(
    slack: SlackStandIn, site: Site
) -> None:
    assert "under `people`" in answer(slack, "eve", "drain gpu-068 x").replace("ʼ", "`")
    assert site.runs() == []


def test_guests_the_deactivated_and_other_companies_are_refused(
    slack: SlackStandIn, site: Site
) -> None:
    assert "run-1" in answer(slack, "ann", "drain gpu-068 x")
    slack.person("ann").make_guest()
    slack.wait_until(lambda: all(d.acks for d in slack.deliveries))
    slack.wait_until(lambda: "guest" in answer(slack, "ann", "drain gpu-067 y"))
    stranger = slack.stranger("mallory")
    told = stranger.command("#ops", "/ops drain gpu-068 x").ack().payload["text"]
    assert "T99999999" in told
    assert site.runs() == ["run-1"]


def test_a_channel_that_other_companies_see_is_no_place_for_commands(
    slack: SlackStandIn, site: Site
) -> None:
    slack.channel("#shared").share()
    command = slack.person("ann").command("#shared", "/ops drain gpu-068 x")
    assert "shared with another workspace" in command.ack().payload["text"]
    assert site.runs() == []


def test_in_a_direct_message_the_bot_answers_and_can_be_stopped(
    slack: SlackStandIn, site: Site
) -> None:
    ann = slack.person("ann")
    ann.tell_bot("whoami")
    ann.direct.expect("you are ann")
    ann.tell_bot("drain gpu-068 x")
    ann.direct.expect("where others see it")
    assert site.runs() == []
    assert "halted" in ann.command_to_bot('/ops halt "smoke"').ack().payload["text"]


def test_a_mention_is_read_like_a_command(slack: SlackStandIn, site: Site) -> None:
    slack.person("ann").say("#ops", "@ops-bot drain gpu-068 “RMA 4711”")
    slack.channel("#ops").expect("Finished")
    assert site.runs() == ["run-1"]
    slack.wait_until(lambda: any("run-1" in m.text for m in slack.ephemerals_of("ann")))


def test_an_event_that_slack_sends_again_is_one_run(slack: SlackStandIn, site: Site) -> None:
    slack.duplicate_next()
    slack.person("ann").say("#ops", "@ops-bot drain gpu-068 x")
    slack.channel("#ops").expect("Finished")
    assert site.runs() == ["run-1"]


def test_quotes_code_edits_and_bots_are_no_commands(slack: SlackStandIn, site: Site) -> None:
    ann = slack.person("ann")
    ann.say("#ops", "> @ops-bot drain gpu-068 x")
    ann.say("#ops", "```@ops-bot drain gpu-068 x```")
    base = {"type": "app_mention", "user": ann.id, "channel": slack.channel("#ops").id}
    text = f"<@{slack.world.users['U0000000B'].id}> drain gpu-068 x"
    for extra in ({"subtype": "message_changed"}, {"bot_id": "B9"}, {"edited": {"ts": "1"}}):
        slack.interactions.event(ann.user, {**base, "text": text, "ts": "1.1", **extra})
    slack.interactions.event(ann.user, {"type": "app_rate_limited", "minute_rate_limited": 1})
    ann.say("#ops", "@ops-bot whoami")
    slack.wait_until(lambda: any("you are ann" in m.text for m in slack.ephemerals_of("ann")))
    slack.wait_until(lambda: all(d.acks for d in slack.deliveries))
    assert len(slack.ephemerals_of("ann")) == 1
    assert site.runs() == []


def test_another_slash_command_says_which_one_is_right(slack: SlackStandIn, site: Site) -> None:
    command = slack.person("ann").command("#ops", "/deploy now")
    assert "/ops" in command.ack().payload["text"]


def test_an_error_in_our_own_code_is_acknowledged_and_told_with_a_number(
    slack: SlackStandIn, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(site.bot.desk, "submit", lambda _: 1 / 0)
    slack.person("ann").command("#ops", "/ops drain gpu-068 x").ack()
    slack.wait_until(
        lambda: any(re.search("error [0-9a-f]{8}", m.text) for m in slack.ephemerals_of("ann"))
    )
    assert slack.unacked == 0


def test_roles_come_through_user_groups_as_slack_tells_them(
    slack: SlackStandIn, cold: Site
) -> None:
    group = slack.group("oncall", ["vic"])
    cold.settings_text += f"groups:\n  {group}: {{roles: [oncall]}}\n"
    cold.start()
    cold.until(lambda: cold.bot.identities.groups_known)
    assert "run-1 started" in answer(slack, "vic", "drain gpu-068 x")
    slack.group("oncall", ["bob"])
    cold.until(lambda: "oncall" not in roles(cold, "vic"))
    assert "oncall" in answer(slack, "vic", "drain gpu-067 x")
    assert cold.runs() == ["run-1"]


def test_a_slow_commit_is_acknowledged_in_time_and_answered_afterwards(
    slack: SlackStandIn, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listeners, "ACK_PATIENCE", 0.1)
    submit, disk = site.bot.desk.submit, threading.Event()

    def slowly(request: Request) -> Reply:
        assert disk.wait(DEADLINE)
        return submit(request)

    monkeypatch.setattr(site.bot.desk, "submit", slowly)
    command = slack.person("ann").command("#ops", "/ops drain gpu-068 x")
    assert "not recorded yet" in command.ack().payload["text"]
    disk.set()
    command.expect_ephemeral("run-1 started")
    assert site.runs() == ["run-1"]


def test_what_a_verb_of_questions_changes_is_committed_before_the_acknowledgement(
    slack: SlackStandIn, site: Site
) -> None:
    told: dict[str, Json] = {"backup_head": 1, "lost_to": 1}
    restored = Event(kind=EventKind.RESTORED, actor=ENGINE.id, data=told)
    site.bot.parts.ledger.commit(lambda transaction: transaction.append(restored))
    assert "every run may act again" in answer(slack, "adm", 'audit confirm all "looked at it"')
    assert "anchored " in answer(slack, "adm", "audit anchor")
    assert answer(slack, "adm", "audit verify") == ""


def test_help_names_every_word_that_audit_takes(slack: SlackStandIn, site: Site) -> None:
    command = slack.person("adm").command("#ops", "/ops help audit")
    shown = command.expect_ephemeral("audit verify").seen
    assert "audit anchor" in shown
    assert "audit confirm RUN|all" in shown
