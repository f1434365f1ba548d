"""Typed text reaches the bot with Slack's mentions, links and escapes."""

import html

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.standin.slash_text import Names, as_sent

NAMES = Names(users={"ann": "U1"}, groups={"hpc-oncall": "S1"}, channels={"ops": "C1"})


@pytest.mark.parametrize(
    ("typed", "sent"),
    [
        ("run node-dropped gpu-03", "run node-dropped gpu-03"),
        ("can @ann node.drain gpu-017", "can <@U1|ann> node.drain gpu-017"),
        ("page @hpc-oncall", "page <!subteam^S1|@hpc-oncall>"),
        ("page @nobody", "page @nobody"),
        ("page @channel", "page <!channel>"),
        ("see #ops", "see <#C1|ops>"),
        ("see #nowhere", "see #nowhere"),
        (
            "drain node-17.example.com",
            "drain <http://node-17.example.com|node-17.example.com>",
        ),
        ("run train.py", "run <http://train.py|train.py>"),
        ("mail a@example.com", "mail <mailto:a@example.com|a@example.com>"),
        ("see https://example.com/?a=1&b=2", "see <https://example.com/?a=1&amp;b=2>"),
        ("a && b < c > d", "a &amp;&amp; b &lt; c &gt; d"),
        ("&lt;", "&amp;lt;"),
        ("<@U1>", "&lt;@U1&gt;"),
        ("drain gpu-[01-04].local  ", "drain gpu-[01-04].local"),
        ("v1.10 1:30 10.0.0.1", "v1.10 1:30 10.0.0.1"),
    ],
)
def test_typed_text_is_sent_as_slack_sends_it(typed: str, sent: str) -> None:
    assert as_sent(typed, NAMES) == sent


@given(st.text(alphabet=st.characters(exclude_characters="@#.:"), max_size=200))
def test_text_without_mentions_and_links_comes_back_by_unescaping(typed: str) -> None:
    sent = as_sent(typed, NAMES)
    assert "<" not in sent
    assert ">" not in sent
    unescaped = sent.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    assert unescaped == typed.strip()


@given(st.text(max_size=200))
def test_every_angle_bracket_of_a_person_is_escaped(typed: str) -> None:
    sent = as_sent(typed, NAMES)
    assert sent.count("<") == sent.count(">")
    assert html.unescape(sent).count("<") >= typed.count("<")
