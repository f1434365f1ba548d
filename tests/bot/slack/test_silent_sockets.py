"""A socket that is silent is replaced before anybody waits for long, and nothing is lost by that."""

import threading
from dataclasses import replace

import pytest

from bot.desk import Request
from bot.replies import Reply
from bot.slack import listeners
from bot.slack.connection import Watch
from bot.standin import sockets as deliveries
from bot.standin.server import SlackStandIn
from tests.bot.slack.conftest import PATIENT, Site


def sockets(slack: SlackStandIn) -> int:
    return slack.sockets.opened


def test_what_is_under_way_while_a_socket_is_replaced_is_acknowledged(
    slack: SlackStandIn, cold: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deliveries, "ACK_SECONDS", 60.0)
    monkeypatch.setattr(listeners, "ACK_PATIENCE", 50.0)
    cold.watch = replace(PATIENT, silence=0.4, linger=60.0)
    cold.start()
    submit, disk = cold.bot.desk.submit, threading.Event()

    def slowly(request: Request) -> Reply:
        assert disk.wait(60)
        return submit(request)

    monkeypatch.setattr(cold.bot.desk, "submit", slowly)
    command = slack.person("ann").command("#ops", "/ops drain gpu-068 x")
    over = slack.deliveries[-1].sent_over
    slack.wait_until(lambda: bool(over) and sockets(slack) > over[0])
    cold.until(lambda: len(slack.sockets.connections) > 1 and cold.door.connected)
    disk.set()
    assert "run-1 started" in command.ack(within=60).payload["text"]


def test_sockets_of_our_own_are_not_taken_for_another_copy(slack: SlackStandIn, cold: Site) -> None:
    cold.watch = replace(PATIENT, silence=0.3, linger=0.2)
    cold.start()
    said: list[str] = []

    def replaced() -> bool:
        said.extend(finding.text for finding in cold.door.findings() if not finding.good)
        return sockets(slack) > 6

    cold.until(replaced)
    assert [text for text in said if "another copy" in text] == []


def test_a_deaf_socket_is_in_use_for_two_minutes_at_most() -> None:
    """Ten minutes without commands at night are too long; Slack allows a fresh socket each minute."""
    assert 60 <= Watch().silence <= 120
