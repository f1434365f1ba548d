"""Pages to the Alertmanager of Debian's packages, read back through its own API."""

import json
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import urllib3

from actions.hands import Page, PageReceipt
from actions.page.alertmanager import AlertmanagerPager
from actions.page.chain import PagerChain
from actions.page.post import Endpoint
from tests.actions.page.receivers import CLOCK, LIMIT, PAGE, SECRETS, receiver
from tests.patience import DEADLINE, until

PROGRAM = shutil.which("prometheus-alertmanager")
CONFIG = """\
route:
  receiver: people
  group_by: [nodewarden_key]
  group_wait: 0s
  group_interval: 1s
receivers:
  - name: people
    webhook_configs:
      - url: {url}/people
"""

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="prometheus-alertmanager is not installed")


class Running:
    """An Alertmanager, and what it told its receiver."""

    def __init__(self, url: str, told: list[dict[str, Any]]) -> None:
        self.url = url
        self.told = told

    def send(self, page: Page) -> PageReceipt:
        backend = AlertmanagerPager(
            name="am", endpoint=Endpoint(url=self.url), secrets=SECRETS, clock=CLOCK
        )
        (receipt,) = PagerChain([backend], CLOCK).send(page, deadline=LIMIT)
        return receipt

    def alerts(self) -> list[dict[str, Any]]:
        with urllib3.PoolManager() as pool:
            answer = pool.request("GET", f"{self.url}/api/v2/alerts", timeout=DEADLINE)
        listed: list[dict[str, Any]] = json.loads(answer.data)
        return listed


@pytest.fixture
def alertmanager() -> Iterator[Running]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory(prefix="nwam-") as folder, receiver() as people:
        config = Path(folder) / "alertmanager.yml"
        config.write_text(CONFIG.format(url=people.url), encoding="utf-8")
        command = [
            *(str(PROGRAM), f"--config.file={config}", f"--storage.path={folder}/data"),
            *(f"--web.listen-address=127.0.0.1:{port}", "--cluster.listen-address="),
        ]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as process:
            try:
                _wait_until_it_listens(process)
                yield Running(f"http://127.0.0.1:{port}", people.posts)
            finally:
                process.terminate()
                process.communicate(timeout=DEADLINE)


def _wait_until_it_listens(process: "subprocess.Popen[str]") -> None:
    """Read its log until it says so; the few lines after that fit into the pipe."""
    assert process.stdout is not None
    log = process.stdout
    for line in log:
        if "Listening" in line:
            return
    raise AssertionError("the Alertmanager ended before it listened")


def test_the_alert_is_there_with_our_labels_and_reaches_the_receiver(
    alertmanager: Running,
) -> None:
    receipt = alertmanager.send(PAGE)
    assert (receipt.accepted, receipt.detail) == (True, "alert taken over")
    (alert,) = alertmanager.alerts()
    assert alert["labels"] == {
        "alertname": "Nodewarden",
        "nodewarden_key": PAGE.key,
        "severity": "critical",
        "service": "nodewarden",
    }
    assert alert["annotations"]["summary"] == PAGE.summary
    assert alert["annotations"]["job_name"] == "a‹!channel›&`id`"
    until(lambda: alertmanager.told)
    assert alertmanager.told[0]["status"] == "firing"
    assert alertmanager.told[0]["commonLabels"]["nodewarden_key"] == PAGE.key


def test_repeats_merge_and_another_key_does_not(alertmanager: Running) -> None:
    for summary in ("first", "second", "third"):
        assert alertmanager.send(replace(PAGE, summary=summary)).accepted
    (alert,) = alertmanager.alerts()
    assert alert["annotations"]["summary"] == "third"
    alertmanager.send(replace(PAGE, key="nodewarden/abcd0123/run-8"))
    assert len(alertmanager.alerts()) == 2


def test_a_resolve_ends_it_and_the_receiver_hears_so(alertmanager: Running) -> None:
    alertmanager.send(PAGE)
    until(lambda: alertmanager.told)
    assert alertmanager.send(replace(PAGE, resolved=True)).detail == "alert resolved"
    until(lambda: alertmanager.alerts() == [])
    until(lambda: alertmanager.told[-1]["status"] == "resolved")


def test_an_alert_that_fires_again_after_a_resolve_is_there_again(alertmanager: Running) -> None:
    alertmanager.send(PAGE)
    alertmanager.send(replace(PAGE, resolved=True))
    until(lambda: alertmanager.alerts() == [])
    alertmanager.send(PAGE)
    assert len(alertmanager.alerts()) == 1


def test_hostile_text_arrives_as_text(alertmanager: Running) -> None:
    hostile = Page(
        key="k\n\udcff" * 100,
        summary="x{{ template }} \u202e<!channel>\x00",
        details={"": "", "9\n": "\ud800", "{{": "}}"},
    )
    assert alertmanager.send(hostile).accepted
    (alert,) = alertmanager.alerts()
    assert alert["annotations"]["summary"] == "x{{ template }} \\u202e‹!channel›\\x00"


def test_what_the_alertmanager_refuses_is_told_in_its_words(alertmanager: Running) -> None:
    alertmanager.url += "/nosuch"
    receipt = alertmanager.send(PAGE)
    assert not receipt.accepted
    assert "HTTP 404" in receipt.detail
