"""Whatever text comes in, Slack's sizes hold and nothing in it is a mention, a link or a format."""

import json
import re
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.slack import blocks
from bot.slack.blocks import Block, Content
from bot.standin import block_rules
from config.ids import RunId
from runbooks.explain import Button, Card
from runbooks.machine import RunState
from tests.bot.slack.example_cards import GOLDEN, as_json, examples

NASTY = st.one_of(
    st.characters(),
    st.sampled_from("&<>`*_~:\n\r\t\0\u202e\u200b\u2066\ud800"),
    st.sampled_from(["<!channel>", "<@U1>", "&amp;", "&lt;", "```", "<http://e.vil|ok>"]),
)
TEXT = st.lists(NASTY, max_size=400).map("".join)
LONG = st.one_of(TEXT, st.builds(lambda text, times: text * times, TEXT, st.integers(1, 60)))
BUTTONS = st.lists(
    st.builds(Button, label=TEXT.filter(bool), command=LONG, confirm=TEXT), max_size=5
)
ENTITY = re.compile(r"&(?:amp|lt|gt);")
UNSEEN = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


def texts(value: object) -> list[str]:
    if isinstance(value, list):
        return [text for entry in value for text in texts(entry)]
    if isinstance(value, dict):
        own = [value["text"]] if isinstance(value.get("text"), str) else []
        return own + [text for entry in value.values() for text in texts(entry)]
    return []


def inert(text: str, *, fences: int = 0) -> None:
    assert "<" not in text
    assert ">" not in text
    assert "&" not in ENTITY.sub("", text)
    assert not UNSEEN.search(text)
    assert text.count("`") == fences


def fits(content: Content) -> None:
    sent: list[Block] = json.loads(json.dumps(list(content.blocks)))
    block_rules.check_message(sent)
    assert sum(map(len, texts(sent))) <= 10_000
    assert 0 < len(content.text) < 3000
    inert(content.text)
    for block in sent:
        if block["type"] == "section":
            assert len(block["text"]["text"]) <= blocks.MOST_SECTION
            assert block["text"]["verbatim"] is True


@pytest.mark.parametrize("name", sorted(examples()))
def test_each_state_looks_as_its_golden_file(name: str) -> None:
    content = examples()[name]
    assert as_json(content) == (GOLDEN / f"{name}.json").read_text("utf-8")
    assert f"{content.text}\n" == (GOLDEN / f"{name}.txt").read_text("utf-8")


def test_no_golden_file_is_left_over() -> None:
    assert {path.stem for path in GOLDEN.iterdir()} == set(examples())


@given(st.lists(LONG, max_size=6), LONG, BUTTONS, TEXT)
def test_no_card_is_too_large_or_means_more_than_it_shows(
    lines: list[str], title: str, buttons: list[Button], note: str
) -> None:
    card = Card(
        run=RunId("run-7"),
        revision=3,
        state=RunState.RUNNING,
        title=title or "x",
        lines=tuple(lines),
        steps=(),
        buttons=tuple(buttons),
        rings=True,
    )
    if card.text or title:
        content = blocks.card(card, note)
        fits(content)
        for block in content.blocks:
            if block["type"] == "header":
                inert(block["text"]["text"])
            elif block["type"] == "section":
                inert(block["text"]["text"], fences=6)
    ring = blocks.ring(card, "<@U1>")
    block_rules.check_message(list(ring.blocks))
    assert ring.text.startswith("<@U1> ")
    assert len(ring.text) < 3000
    inert(ring.text.removeprefix("<@U1> "))


@given(st.lists(LONG, max_size=60), TEXT)
def test_no_answer_is_too_large_or_means_more_than_it_shows(lines: list[str], echo: str) -> None:
    fits(blocks.answer(lines, echo))
    fits(blocks.details(lines))


@given(TEXT, st.integers(2, 300))
def test_a_cut_never_goes_through_an_entity(text: str, most: int) -> None:
    whole, part = blocks.escaped(text), blocks.escaped(text, most)
    assert len(part) <= most
    inert(part)
    assert part == whole or whole.startswith(part.removesuffix("…"))


@given(st.text(alphabet=string.ascii_letters + string.punctuation + " "), st.integers(0, 40))
def test_each_character_is_shown_as_it_would_be_alone(text: str, most: int) -> None:
    whole = "".join(blocks.escaped(character) for character in text)
    assert blocks.escaped(text) == whole
    cut = blocks.escaped(text, most)
    assert cut == whole if len(whole) <= most else len(cut) <= max(1, most)


@given(st.text(alphabet=string.printable))
def test_what_is_shown_reads_as_it_was(text: str) -> None:
    shown = blocks.escaped(text).replace("ʼ", "`")
    for entity, character in (("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&")):
        shown = shown.replace(entity, character)
    plain = [c for c in text if c.isprintable()]
    assert [c for c in shown if c in plain][: len(plain)] or not plain


def test_lines_that_do_not_fit_are_counted_and_none_is_cut() -> None:
    content = blocks.answer([f"{number:03d} {'x' * 96}" for number in range(200)])
    shown = "\n".join(texts(list(content.blocks)))
    lines = re.findall(r"^\d{3} x+$", shown, re.MULTILINE)
    assert {len(line) for line in lines} == {100}
    assert f"… {200 - len(lines)} more lines" in shown


def test_an_edit_has_other_block_ids_than_the_version_before() -> None:
    ids = {block["block_id"] for block in examples()["running"].blocks}
    assert all(name.endswith(".5") for name in ids)
    assert len(ids) == 4


def test_a_button_whose_command_is_too_long_is_left_out_and_the_rest_stays() -> None:
    buttons = [Button(label="A", command="x" * 2001), Button(label="B", command="y")]
    (row,) = blocks.answer(["x"], buttons=buttons).blocks[1:]
    assert [element["text"]["text"] for element in row["elements"]] == ["B"]


def test_a_form_fits_and_carries_the_command() -> None:
    view = blocks.reason_form("deny run-7 --plan " + "a" * 64, "C1")
    block_rules.check_view(view, len(json.dumps(view)))
    assert json.loads(view["private_metadata"])["command"].startswith("deny run-7")
