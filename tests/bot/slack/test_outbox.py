"""Urgent letters first, one at a time in a lane, never faster than Slack allows, newest state only."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.slack.outbox import Outbox
from bot.slack.rates import RATES, Bucket, Priority, Rate
from bot.slack.web import Answer, Arguments, Limited, Said
from tests.patience import DEADLINE


class Post:
    """Slack's side: notes what arrives, holds a call until it is let go, or refuses it."""

    def __init__(self) -> None:
        self.arrived: list[tuple[str, Any]] = []
        self.refusals: list[Exception] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.inside = 0
        self.most_inside = 0

    async def call(self, method: str, arguments: Arguments) -> Answer:
        self.inside += 1
        self.most_inside = max(self.most_inside, self.inside)
        await self.gate.wait()
        self.inside -= 1
        if self.refusals:
            raise self.refusals.pop(0)
        self.arrived.append((method, arguments["n"]))
        return {"ok": True}


def letter(number: object) -> Callable[[], Awaitable[Arguments]]:
    async def compose() -> Arguments:
        return {"n": number}

    return compose


def play(scene: Callable[[Post, Outbox], Awaitable[None]]) -> Post:
    async def run() -> Post:
        post = Post()
        box = Outbox(post.call)
        await asyncio.wait_for(scene(post, box), DEADLINE)
        await box.close()
        return post

    return asyncio.run(run())


def test_the_most_urgent_letter_goes_first() -> None:
    async def scene(post: Post, box: Outbox) -> None:
        post.gate.clear()
        order = [Priority.PROGRESS, Priority.PROGRESS, Priority.FAILURE, Priority.APPROVAL]
        sent = [asyncio.create_task(box.send("chat.update", letter(p.name), p)) for p in order]
        await asyncio.sleep(0)
        post.gate.set()
        await asyncio.gather(*sent)

    names = [name for _, name in play(scene).arrived]
    assert names == ["APPROVAL", "FAILURE", "PROGRESS", "PROGRESS"]


def test_one_call_at_a_time_in_a_lane() -> None:
    async def scene(post: Post, box: Outbox) -> None:
        sent = [box.send("chat.update", letter(n), Priority.FINAL) for n in range(5)]
        await asyncio.gather(*sent)

    post = play(scene)
    assert post.most_inside == 1
    assert [number for _, number in post.arrived] == [0, 1, 2, 3, 4]


def test_a_letter_is_composed_when_its_turn_comes() -> None:
    state = {"n": "old"}

    async def compose() -> Arguments:
        return dict(state)

    async def scene(post: Post, box: Outbox) -> None:
        post.gate.clear()
        first = asyncio.create_task(box.send("chat.update", letter("first"), Priority.FINAL))
        await asyncio.sleep(0)
        second = asyncio.create_task(box.send("chat.update", compose, Priority.FINAL))
        await asyncio.sleep(0)
        state["n"] = "new"
        post.gate.set()
        await asyncio.gather(first, second)

    assert play(scene).arrived[-1] == ("chat.update", "new")


def test_a_throttled_lane_waits_and_the_others_go_on() -> None:
    async def scene(post: Post, box: Outbox) -> None:
        post.refusals.append(Limited(0.3))
        slow = asyncio.create_task(box.send("chat.update", letter("slow"), Priority.FINAL))
        await asyncio.sleep(0.05)
        await box.send("chat.postMessage", letter("fast"), Priority.PROGRESS, "C1")
        await slow

    assert [name for _, name in play(scene).arrived] == ["fast", "slow"]


def test_channels_do_not_wait_for_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(RATES, "chat.postMessage", Rate(per_minute=1, burst=1))

    async def scene(post: Post, box: Outbox) -> None:
        await box.send("chat.postMessage", letter(1), Priority.FINAL, "C1")
        blocked = asyncio.create_task(box.send("chat.postMessage", letter(2), Priority.FINAL, "C1"))
        await box.send("chat.postMessage", letter(3), Priority.FINAL, "C2")
        blocked.cancel()

    assert [number for _, number in play(scene).arrived] == [1, 3]


def test_a_refusal_reaches_whoever_waits_and_the_lane_goes_on() -> None:
    async def scene(post: Post, box: Outbox) -> None:
        post.refusals.append(Said("is_archived"))
        with pytest.raises(Said):
            await box.send("chat.update", letter(1), Priority.FINAL)
        await box.send("chat.update", letter(2), Priority.FINAL)

    assert play(scene).arrived == [("chat.update", 2)]


def test_a_letter_that_cannot_be_composed_holds_nobody_up() -> None:
    async def broken() -> Arguments:
        raise ValueError("no")

    async def scene(post: Post, box: Outbox) -> None:
        with pytest.raises(ValueError, match="no"):
            await box.send("chat.update", broken, Priority.FINAL)
        await box.send("chat.update", letter(2), Priority.FINAL)

    assert play(scene).arrived == [("chat.update", 2)]


@given(st.lists(st.tuples(st.floats(0, 10), st.sampled_from(list(Priority))), max_size=300))
def test_no_minute_holds_more_calls_than_the_rate(asked: list[tuple[float, Priority]]) -> None:
    rate = RATES["chat.update"]
    bucket = Bucket(rate, 0.0)
    now = 0.0
    times: list[float] = []
    for pause, priority in asked:
        now += pause
        if bucket.wait(priority, now) == 0:
            bucket.take(now)
            times.append(now)
    for start in times:
        window = [moment for moment in times if start <= moment < start + 60]
        assert len(window) <= rate.per_minute + rate.burst


def test_progress_leaves_a_reserve_for_what_is_urgent() -> None:
    rate = Rate(per_minute=60, burst=10, reserve=4)
    bucket = Bucket(rate, 0.0)
    taken = 0
    while bucket.wait(Priority.PROGRESS, 0.0) == 0:
        bucket.take(0.0)
        taken += 1
    assert taken == 6
    assert bucket.wait(Priority.APPROVAL, 0.0) == 0


@given(st.floats(0.1, 500), st.sampled_from(list(Priority)))
def test_nothing_goes_before_the_pause_that_slack_named(seconds: float, priority: Priority) -> None:
    bucket = Bucket(Rate(per_minute=60, burst=5), 0.0)
    bucket.close(seconds, 0.0)
    assert bucket.wait(priority, 0.0) >= seconds
    assert bucket.wait(priority, seconds) == 0
