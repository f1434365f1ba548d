"""Slack is asked about people before they speak, once for all who speak at once, and never believed
for longer than it may be."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast

import pytest

from bot.identities import Identities
from bot.slack import visitors
from bot.slack.asks import Ask
from bot.slack.visitors import TurnedAway, Visitors
from bot.slack.web import Said, Unsent, Web
from config.actors import Actor, ActorKind, Identity
from config.ids import ActorId
from tests.patience import DEADLINE

TEAM = "T1"
ANN = Actor(id=ActorId("p-1"), kind=ActorKind.PERSON, name="ann", roles=frozenset({"oncall"}))
ASK = Ask(team=TEAM, user="U1", channel="C1", text="status", key="1")
BOTH = [("conversations.info", "C1"), ("users.info", "U1")]


class Directory:
    """One person, everywhere."""

    def everybody(self) -> tuple[Actor, ...]:
        return (ANN,)

    def slack_user(self, _actor: ActorId) -> str:
        return "U1"

    def at_door(self, _identity: Identity) -> Actor:
        return ANN


class Slack:
    """Answers once the gate is open; notes what it is asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []
        self.account: dict[str, Any] = {"team_id": TEAM}
        self.trouble: Said | Unsent | None = None
        self.gate = asyncio.Event()
        self.gate.set()

    async def get(self, method: str, arguments: Mapping[str, str]) -> Mapping[str, Any]:
        self.asked.append((method, next(iter(arguments.values()))))
        account = dict(self.account)
        await self.gate.wait()
        if self.trouble is not None:
            raise self.trouble
        return {"user": account} if method == "users.info" else {"channel": {}}


def play(scene: Callable[[Slack, Visitors], Awaitable[None]]) -> None:
    async def run() -> None:
        slack = Slack()
        known = Visitors(cast(Web, slack), cast(Identities, Directory()), TEAM, ["C1"])
        await asyncio.wait_for(scene(slack, known), DEADLINE)

    asyncio.run(run())


async def keep(known: Visitors) -> "asyncio.Task[None]":
    """Its own work, begun."""
    task = asyncio.create_task(known.run())
    await asyncio.sleep(0)
    return task


async def idle() -> None:
    """Everything that can go on has gone on."""
    for _ in range(20):
        await asyncio.sleep(0)


def test_whoever_is_expected_is_known_before_the_first_command() -> None:
    async def scene(slack: Slack, known: Visitors) -> None:
        task = await keep(known)
        await idle()
        assert sorted(slack.asked) == BOTH
        slack.gate.clear()  # an answer that was asked for now would never come
        assert await known.admit(ASK) is ANN
        assert sorted(slack.asked) == BOTH
        task.cancel()

    play(scene)


def test_commands_that_come_together_ask_once_and_both_things_at_once() -> None:
    async def scene(slack: Slack, known: Visitors) -> None:
        slack.gate.clear()
        waiting = [asyncio.create_task(known.admit(ASK)) for _ in range(5)]
        await idle()
        assert sorted(slack.asked) == BOTH
        slack.gate.set()
        assert await asyncio.gather(*waiting) == [ANN] * 5

    play(scene)


def test_what_grows_old_is_asked_again_before_anybody_waits_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scene(slack: Slack, known: Visitors) -> None:
        await known.admit(ASK)
        await known.renew()
        assert len(slack.asked) == 2
        monkeypatch.setattr(visitors, "RENEWED", 0.0)
        await known.renew()
        assert sorted(slack.asked[2:]) == BOTH

    play(scene)


def test_what_is_too_old_is_not_believed_while_slack_can_be_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scene(slack: Slack, known: Visitors) -> None:
        await known.admit(ASK)
        monkeypatch.setattr(visitors, "FRESH", 0.0)
        slack.account = {"team_id": TEAM, "deleted": True}
        with pytest.raises(TurnedAway, match="deactivated"):
            await known.admit(ASK)

    play(scene)


def test_while_slack_is_down_the_last_answer_counts_and_without_one_nobody_is_let_in(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scene(slack: Slack, known: Visitors) -> None:
        slack.trouble = Unsent("no connection")
        with pytest.raises(TurnedAway, match="who you are"):
            await known.admit(ASK)
        slack.trouble = None
        await known.admit(ASK)
        slack.trouble = Unsent("no connection")
        monkeypatch.setattr(visitors, "FRESH", 0.0)
        assert await known.admit(ASK) is ANN

    play(scene)


def test_somebody_whom_slack_no_longer_knows_is_not_let_in_by_an_older_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scene(slack: Slack, known: Visitors) -> None:
        await known.admit(ASK)
        monkeypatch.setattr(visitors, "FRESH", 0.0)
        slack.trouble = Said("user_not_found")
        with pytest.raises(TurnedAway, match="user_not_found"):
            await known.admit(ASK)

    play(scene)


def test_an_answer_that_was_on_its_way_when_the_account_changed_is_not_kept() -> None:
    async def scene(slack: Slack, known: Visitors) -> None:
        slack.gate.clear()
        before = asyncio.create_task(known.admit(ASK))
        await idle()
        slack.account = {"team_id": TEAM, "is_restricted": True}
        known.forget("U1")
        slack.gate.set()
        await asyncio.gather(before, return_exceptions=True)
        with pytest.raises(TurnedAway, match="guest"):
            await known.admit(ASK)

    play(scene)
