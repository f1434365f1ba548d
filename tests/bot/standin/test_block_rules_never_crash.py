"""Whatever a bot sends as blocks is stored or refused, and the buckets keep their promise."""

import contextlib
import json

from hypothesis import given
from hypothesis import strategies as st

from bot.standin import block_rules
from bot.standin.rates import Buckets, Rate
from bot.standin.records import SlackError

KEYS = st.sampled_from(
    "type text fields elements accessory element block_id action_id value url style confirm"
    " options label title blocks submit".split()
)
WORDS = st.sampled_from(
    "section header actions context input markdown divider button static_select plain_text"
    " mrkdwn modal home".split()
)
LEAVES = st.none() | st.booleans() | st.integers() | WORDS | st.text(max_size=5)
JSON = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=6),
    max_leaves=25,
)
BLOCKS = st.lists(st.dictionaries(KEYS, JSON, max_size=6), max_size=5)


@given(JSON | BLOCKS)
def test_any_blocks_are_accepted_or_refused(blocks: object) -> None:
    with contextlib.suppress(SlackError):
        block_rules.check_message(blocks)


@given(JSON | st.fixed_dictionaries({"type": st.just("modal"), "blocks": BLOCKS}))
def test_any_view_is_accepted_or_refused(view: object) -> None:
    with contextlib.suppress(SlackError):
        block_rules.check_view(view, len(json.dumps(view)))


@given(
    st.lists(st.floats(min_value=0, max_value=5), max_size=60),
    st.integers(min_value=1, max_value=10),
)
def test_no_more_calls_pass_than_the_rate_allows(gaps: list[float], burst: int) -> None:
    buckets, rate = Buckets(), Rate(per_minute=60, burst=burst)
    now, passed = 0.0, 0
    for gap in gaps:
        now += gap
        passed += buckets.take("key", rate, now) is None
    assert passed <= burst + now + 1e-6


@given(st.lists(st.floats(min_value=0, max_value=2), max_size=40))
def test_whoever_waits_as_told_is_let_through(gaps: list[float]) -> None:
    buckets, rate, now = Buckets(), Rate(per_minute=20, burst=3), 0.0
    for gap in gaps:
        now += gap
        wait = buckets.take("key", rate, now)
        if wait is not None:
            now += wait
            assert buckets.take("key", rate, now) is None
