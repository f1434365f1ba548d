"""A mention that changes something is committed before Slack is told that it was taken."""

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from bot.standin.server import SlackStandIn
from tests.bot.slack.conftest import Site
from tests.patience import DEADLINE

SOON = 2.0
"""Seconds after which the workspace sends an event again; Slack's three would do as well."""


@contextmanager
def served(site: Site, slack: SlackStandIn) -> Iterator[subprocess.Popen[bytes]]:
    """The bot as a process of its own, connected; killed at the end."""
    config = site.folder / "config.yaml"
    config.write_text(site.settings_text)
    names = {"BOT": slack.bot_token, "APP": slack.app_token, "PYTHONPATH": os.getcwd()}
    argv = [sys.executable, "-m", "bot.cli", "serve", "--config", str(config)]
    with (site.folder / "log").open("ab") as log:
        process = subprocess.Popen(argv, env={**os.environ, **names}, stderr=log)
    try:
        slack.wait_for_bot()
        yield process
    finally:
        process.kill()
        process.wait(DEADLINE)


def runs(database: Path) -> list[str]:
    with closing(sqlite3.connect(database)) as reader:
        return [row[0] for row in reader.execute("SELECT id FROM runs")]


def test_a_bot_killed_between_a_mention_and_its_commit_does_it_once_after_its_start(
    slack: SlackStandIn, cold: Site
) -> None:
    slack.sockets.ack_seconds = SOON
    slack.sockets.retry_after = (0.0,) * 600  # in Slack: at once, after one minute, after five
    database = cold.folder / "data" / "nodewarden.db"
    with served(cold, slack) as process, closing(sqlite3.connect(database)) as other:
        other.isolation_level = None
        other.execute("BEGIN IMMEDIATE")  # from now on no commit of the bot's goes through
        slack.person("ann").say("#ops", "@ops-bot drain gpu-068 x")
        slack.person("ann").say("#ops", "@ops-bot whoami")
        slack.wait_until(lambda: slack.deliveries[-1].acks == 1)  # the first one is under way
        process.kill()
        process.wait(DEADLINE)
        assert slack.deliveries[0].acks == 0
        other.execute("ROLLBACK")
    assert runs(database) == []
    with served(cold, slack):
        slack.channel("#ops").expect("Finished")
        slack.wait_until(lambda: slack.deliveries[-1].acks == 1)
    assert runs(database) == ["run-1"]


def test_a_mention_is_acknowledged_after_its_commit_and_a_second_delivery_waits_for_it_too(
    slack: SlackStandIn, site: Site
) -> None:
    database = site.folder / "data" / "nodewarden.db"
    slack.duplicate_next()
    with closing(sqlite3.connect(database)) as other:
        other.isolation_level = None
        other.execute("BEGIN IMMEDIATE")
        slack.person("ann").say("#ops", "@ops-bot drain gpu-068 x")
        slack.person("ann").say("#ops", "@ops-bot whoami")
        slack.wait_until(lambda: slack.deliveries[-1].acks == 1)
        assert slack.deliveries[0].acks == 0
        other.execute("ROLLBACK")
    slack.wait_until(lambda: slack.deliveries[0].acks == 2)
    slack.channel("#ops").expect("Finished")
    assert site.runs() == ["run-1"]
