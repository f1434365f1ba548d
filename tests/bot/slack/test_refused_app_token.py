"""What Slack said of the app-level token counts until it says something else."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from audit_log.ledger import Ledger
from bot.slack.access import Access
from bot.slack.connection import Connection, Watch
from bot.slack.web import Web


class Silent:
    """A client that never gets an answer."""

    def __init__(self) -> None:
        self.refused = ""
        self.greeted = asyncio.Event()

    async def connect(self) -> None:
        await asyncio.Event().wait()

    async def hang_up(self) -> None:
        pass


def test_a_new_try_does_not_forget_the_refusal_of_the_last() -> None:
    async def scene() -> None:
        made: list[Any] = []

        def make() -> Any:
            made.append(SimpleNamespace(client=Silent()))
            return made[-1]

        connection = Connection(make, Watch(greeting=0.001))
        await connection._greeting_line()
        made[0].client.refused = "invalid_auth"
        await connection._greeting_line()
        assert len(made) == 2
        assert connection.refused == "invalid_auth"
        await connection.close()

    asyncio.run(scene())


@pytest.mark.parametrize(("word", "told"), [("", ""), ("internal_error", None)])
def test_trouble_of_slacks_own_says_nothing_of_the_token(word: str, told: str | None) -> None:
    class Answers:
        async def call(self, _method: str, _arguments: object) -> dict[str, object]:
            return {}

    access = Access(cast(Web, Answers()), cast(Ledger, None), lambda: word, 1.0)
    assert asyncio.run(access._refusal()) == told
