"""Whatever stands in a page: what its receivers get is bounded, printable and the same each time."""

import json
import re
import unicodedata

from hypothesis import example, given
from hypothesis import strategies as st

from actions.hands import Page
from actions.page import messages
from tests.actions.page.receivers import NOW, PAGE

TEXT = st.text(st.characters(), max_size=1_500)  # lone surrogates included
PAGES = st.builds(
    Page,
    key=TEXT,
    summary=TEXT,
    details=st.dictionaries(TEXT, TEXT, max_size=40),
    severity=st.sampled_from(["critical", "warning"]),
    resolved=st.booleans(),
)
LABEL_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


@given(page=PAGES)
def test_every_body_is_json_that_alertmanager_can_read(page: Page) -> None:
    (alert,) = messages.alerts(page, NOW)
    for body in (alert, messages.webhook(page, NOW)):
        text = json.dumps(body, ensure_ascii=False)
        assert json.loads(text.encode("utf-8")) == body
        assert len(text) < 64 * 1024
    assert all(LABEL_NAME.fullmatch(name) for name in messages.annotations(page))
    assert all(messages.labels(page).values()) or not page.key


@given(text=TEXT)
def test_no_invisible_character_and_no_angle_bracket_is_left(text: str) -> None:
    shown = messages.plain(text, 1_000)
    assert len(shown) <= 1_000
    assert not {"<", ">"} & set(shown)
    assert not {unicodedata.category(each) for each in shown} & {"Cc", "Cf", "Cs", "Zl", "Zp"}


@given(text=st.text("abc XYZ,.-_/:[]()éß§דנה", max_size=200))
def test_ordinary_text_in_any_script_is_left_as_it_is(text: str) -> None:
    assert messages.plain(text, 200) == text


@given(page=PAGES, summary=TEXT, details=st.dictionaries(TEXT, TEXT, max_size=3))
def test_repeats_with_other_words_are_the_same_alert(
    page: Page, summary: str, details: dict[str, str]
) -> None:
    repeat = Page(key=page.key, summary=summary, details=details, severity=page.severity)
    assert messages.labels(repeat) == messages.labels(page)


@given(one=TEXT, other=TEXT)
@example(one="<", other="‹")
@example(one="a" * 300, other="a" * 299 + "b")
def test_two_keys_never_become_one_alert(one: str, other: str) -> None:
    first = messages.stable_key(Page(key=one, summary=""))
    second = messages.stable_key(Page(key=other, summary=""))
    assert (first == second) is (one == other)
    assert len(first) <= messages.LONGEST_KEY


@given(page=PAGES)
def test_a_mention_fits_into_a_message_and_mentions_nobody(page: Page) -> None:
    text = messages.mention(page)
    assert len(text) <= messages.LONGEST_MENTION
    assert "<" not in text


def test_details_with_names_that_become_equal_are_both_kept() -> None:
    page = Page(key="k", summary="s", details={"a b": "1", "a-b": "2", "summary": "3", "9": "4"})
    assert messages.annotations(page) == {
        "a_b": "1",
        "a_b_2": "2",
        "summary_2": "3",
        "_9": "4",
        "summary": "s",
    }


def test_too_many_details_are_counted() -> None:
    page = Page(key="k", summary="s", details={f"d{number}": "x" for number in range(30)})
    shown = messages.annotations(page)
    assert len(shown) == messages.MOST_DETAILS + 2
    assert shown["left_out"] == "6 further details"


def test_a_firing_alert_does_not_end_by_itself_within_the_hour() -> None:
    (alert,) = messages.alerts(PAGE, NOW)
    assert alert["endsAt"] == "2026-03-03T02:00:00+00:00"
