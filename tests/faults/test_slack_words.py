"""The same hostility through Slack: answered by name, never a live mention or link, nothing begun."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from actions.simulated.scenes import HOSTILE_NAMES, HOSTILE_REASON, demo
from actions.simulated.server import SimulationServer
from actions.simulated.stage import Stage
from bot.standin.server import SlackStandIn
from config.system_clock import SystemClock
from tests.bot.lenient import LENIENT, unhurried
from tests.bot.slack.conftest import PEOPLE, Site, settings
from tests.faults.answers import told
from tests.faults.test_hostile_names import NAMES

SHAPES = {
    "4,001 characters": "drain gpu-068 " + "x" * 3987,
    "8,000 characters": "drain gpu-068 " + "x" * 7986,
    "an unbalanced quote": 'drain gpu-068 "RMA 4711',
    "an unbalanced smart quote": "drain gpu-068 “RMA 4711",
    "an apostrophe": "drain gpu-068 don't",
    "zero-width characters": "dra\u200bin gpu-\u200b068 x",
    "a link to a node": "drain <http://evil|gpu-001> x",
    "a link with a node's name": "drain <http://evil.example/gpu-001|gpu-001> x",
    "a mail address": "drain <mailto:x@evil.example|gpu-001> x",
    "everybody": "drain gpu-001 @channel",
    "everybody, spelled out": "drain <!everyone|gpu-001> x",
    "a channel for a node": "drain <#C1|gpu-001> x",
    "a user for a node": "drain <@U1> x",
    "an open bracket": "drain <gpu-001 x",
    "entities": "drain gpu&lt;001 x",
    "nothing but a quote": '"',
    "a right-to-left override": "drain gpu-\u202e860 x",
    "a null byte": "drain gpu-\x00001 x",
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """One bot for all questions that change nothing."""
    folder: Path = tmp_path_factory.mktemp("s")
    with ExitStack() as stack:
        stack.enter_context(unhurried())
        slack = stack.enter_context(SlackStandIn(SystemClock(), strictness=LENIENT))
        for name in PEOPLE:
            slack.person(name)
        slack.channel("#ops")
        stage = Stage(demo(SystemClock().now().wall), SystemClock())
        stack.enter_context(SimulationServer(stage, folder / "sim.sock"))
        opened = Site(folder, slack)
        opened.settings_text = settings(folder, slack)
        stack.callback(opened.end)
        opened.start()
        yield opened


def said(site: Site, text: str) -> str:
    """What the person sees in answer, who alone sees it."""
    payload = site.slack.person("ann").command("#ops", f"/ops {text}").ack().payload
    return str(payload.get("text", ""))


def dead(text: str) -> bool:
    """No mention, link or broadcast is alive in what was sent."""
    return "<" not in text and ">" not in text


@pytest.mark.parametrize("what", [what for what in NAMES if what != "smart quotes"])
def test_a_name_that_is_none_is_refused(site: Site, what: str) -> None:
    name = NAMES[what]
    answer = said(site, f"drain {name} x" if name.strip() else f'drain "{name}" x')
    assert dead(answer)
    assert site.runs() == []
    told(f"Slack drain: {what}", answer)


@pytest.mark.parametrize("what", SHAPES)
def test_what_slack_and_phones_make_of_words_is_refused_by_name(site: Site, what: str) -> None:
    answer = said(site, SHAPES[what])
    assert dead(answer)
    if what == "everybody":
        assert "broadcast" in answer
    assert site.runs() == []
    told(f"Slack: {what}", answer)


@pytest.mark.parametrize(
    "raw",
    [
        "drain <http://evil|gpu-001> x",
        "drain <https://evil.example/|gpu-001> x",
        "drain <mailto:a@evil|gpu-001> x",
        "drain <!subteam^S1|gpu-001> x",
        "drain <!here> x",
        "drain <gpu-001",
        "drain <<gpu-001>> x",
        "drain <|gpu-001> x",
    ],
)
def test_a_link_that_leads_elsewhere_than_it_reads_is_refused(site: Site, raw: str) -> None:
    """As Slack delivers it; at the keyboard such a text is escaped."""
    slack = site.slack
    bot = f"<@{slack.world.users['U0000000B'].id}>"
    ann = slack.person("ann")
    base = {"type": "app_mention", "user": ann.id, "channel": slack.channel("#ops").id}
    before = len(slack.ephemerals_of("ann"))
    event = {**base, "text": f"{bot} {raw}", "ts": f"{before + 1}.1"}
    slack.interactions.event(ann.user, event)
    slack.wait_until(lambda: len(slack.ephemerals_of("ann")) > before, 10)
    answer = slack.ephemerals_of("ann")[-1].text
    assert dead(answer)
    assert site.runs() == []
    told(f"Slack: {raw}", answer)


def test_smart_quotes_are_read_as_quotes(site: Site) -> None:
    answer = said(site, "plan drain-node “gpu-068” “reason=RMA 4711”")
    assert answer == "", "the answer comes later, because it asks the cluster"
    site.slack.wait_until(
        lambda: any("RMA 4711" in m.text for m in site.slack.ephemerals_of("ann")), 10
    )
    assert site.runs() == []


@pytest.mark.parametrize(
    ("node", "text"),
    [("gpu-071", HOSTILE_NAMES[0]), ("gpu-072", HOSTILE_NAMES[1]), ("gpu-073", HOSTILE_REASON)],
)
def test_a_hostile_job_or_reason_is_shown_and_is_dead(site: Site, node: str, text: str) -> None:
    assert said(site, f"node {node}") == ""
    begin = f"{node} on sim"
    site.slack.wait_until(lambda: begin in str(site.slack.ephemerals_of("ann")), 10)
    (shown,) = [m for m in site.slack.ephemerals_of("ann") if begin in m.seen]
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    assert escaped.replace("`", "ʼ") in shown.seen
    assert "<!" not in shown.seen
    assert "<#" not in shown.seen
