"""Redfish over real TLS on loopback: what a BMC says, and every way in which one misbehaves."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from actions.contract import Refusal, Rejected, Unreadable, WriteUnknown
from actions.power.https import LARGEST_ANSWER, Line
from actions.power.redfish import Redfish
from actions.power_hands import PowerState
from config.node_names import NodeName
from config.secret_store import SecretStore
from config.secrets import SecretRef
from tests.actions.power.bmc import (
    OPENSSL,
    PASSWORD,
    RESET,
    SYSTEM,
    USER,
    FakeBmc,
    make_certificates,
    served,
)
from tests.patience import DEADLINE

NODE = NodeName("gpu-01")
SECRETS = SecretStore({"BMC_PASSWORD": PASSWORD, "WRONG": "calvin"})
pytestmark = pytest.mark.skipif(OPENSSL is None, reason="openssl is not installed")


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, tuple[Path, Path]]:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def bmc(certificates: tuple[Path, tuple[Path, Path]]) -> Iterator[FakeBmc]:
    with served(FakeBmc(), certificates[1]) as found:
        yield found


@pytest.fixture
def power(bmc: FakeBmc, certificates: tuple[Path, tuple[Path, Path]]) -> Redfish:
    return Redfish(
        line=Line(ca_file=certificates[0], limit=timedelta(seconds=DEADLINE)),
        bmc=lambda node: bmc.host if node == NODE else "",
        user=USER,
        password=SecretRef("env:BMC_PASSWORD"),
        secrets=SECRETS,
    )


def impatient(power: Redfish) -> Redfish:
    return replace(power, line=replace(power.line, limit=timedelta(seconds=2)))


def test_it_says_on_and_off_with_what_proves_it(bmc: FakeBmc, power: Redfish) -> None:
    on = power.status(NODE)
    assert on.state is PowerState.ON
    assert on.evidence == "PowerState On, HostName gpu-01, SerialNumber S1"
    assert on.source == bmc.host
    bmc.power = "Off"
    assert power.status(NODE).state is PowerState.OFF


@pytest.mark.parametrize("word", ["PoweringOff", "Paused", "off", "OFF", "", "Aus"])
def test_a_word_on_the_way_or_not_known_is_not_off(bmc: FakeBmc, power: Redfish, word: str) -> None:
    bmc.power = word
    assert power.status(NODE).state is PowerState.UNKNOWN


def test_off_is_forced_and_on_gives_power(bmc: FakeBmc, power: Redfish) -> None:
    power.off(NODE, "e1")
    assert (bmc.resets, bmc.power) == (["ForceOff"], "Off")
    power.on(NODE, "e2")
    power.cycle(NODE, "e3")
    assert bmc.resets == ["ForceOff", "On", "PowerCycle"]


def test_a_cycle_is_a_forced_restart_where_there_is_no_other(bmc: FakeBmc, power: Redfish) -> None:
    bmc.offered = ("On", "ForceOff", "ForceRestart")
    power.cycle(NODE, "e1")
    assert bmc.resets == ["ForceRestart"]


def test_a_graceful_shutdown_is_never_taken_for_off(bmc: FakeBmc, power: Redfish) -> None:
    bmc.offered = ("On", "GracefulShutdown")
    with pytest.raises(Unreadable, match="offers no ForceOff: nothing was sent"):
        power.off(NODE, "e1")
    assert bmc.resets == []


def test_a_wrong_password_is_refused_and_shown_nowhere(bmc: FakeBmc, power: Redfish) -> None:
    stranger = replace(power, password=SecretRef("env:WRONG"))
    for ask in (stranger.status, lambda node: stranger.off(node, "e1")):
        with pytest.raises(Refusal, match="does not let the bot's account") as found:
            ask(NODE)
        assert "calvin" not in str(found.value)
    assert bmc.resets == []


def test_a_refused_reset_is_rejected_without_the_password(bmc: FakeBmc, power: Redfish) -> None:
    bmc.status, bmc.words = 400, f"no {PASSWORD} for\nyou".encode()
    with pytest.raises(Rejected, match=r"HTTP 400: no \[…\] for you"):
        power.off(NODE, "e1")
    assert bmc.power == "On"


@pytest.mark.parametrize("status", [500, 502, 503])
def test_a_fault_of_the_bmc_may_have_happened_after_all(
    bmc: FakeBmc, power: Redfish, status: int
) -> None:
    bmc.status = status
    with pytest.raises(WriteUnknown, match=f"HTTP {status}"):
        power.off(NODE, "e1")
    assert bmc.power == "Off"


def test_a_reset_without_an_answer_is_unknown(bmc: FakeBmc, power: Redfish) -> None:
    bmc.silent_on = RESET
    with pytest.raises(WriteUnknown, match="no answer within the time limit"):
        impatient(power).off(NODE, "e1")
    assert f"POST {RESET}" in bmc.asked


def test_a_reading_without_an_answer_sends_nothing(bmc: FakeBmc, power: Redfish) -> None:
    bmc.silent_on = SYSTEM
    with pytest.raises(Unreadable, match="no answer within the time limit"):
        impatient(power).off(NODE, "e1")
    assert f"POST {RESET}" not in bmc.asked


def test_where_nobody_listens_nothing_was_sent(bmc: FakeBmc, power: Redfish) -> None:
    nowhere = replace(power, bmc=lambda _: "127.0.0.1:1")
    with pytest.raises(Unreadable, match="no connection"):
        nowhere.off(NODE, "e1")


@pytest.mark.parametrize("where", ["/redfish/v1/Systems", SYSTEM])
def test_a_redirect_is_not_followed(bmc: FakeBmc, power: Redfish, where: str) -> None:
    bmc.answers[where] = (302, b"")
    bmc.headers["Location"] = f"https://{bmc.host}/redfish/v1/Elsewhere"
    with pytest.raises(Unreadable, match="a redirect, which is not followed"):
        power.status(NODE)
    assert not any("Elsewhere" in asked for asked in bmc.asked)


def test_a_reset_that_is_redirected_did_nothing(bmc: FakeBmc, power: Redfish) -> None:
    bmc.status = 307
    bmc.headers["Location"] = f"https://{bmc.host}{SYSTEM}/Other"
    with pytest.raises(Rejected, match="a redirect, which is not followed"):
        power.off(NODE, "e1")
    assert not any("Other" in asked for asked in bmc.asked)


@pytest.mark.parametrize(
    "link",
    [
        "https://elsewhere.example/redfish/v1/Systems/1",
        "//elsewhere.example/redfish/v1/Systems/1",
        "/redfish/v1/../admin",
        "/admin",
        "/redfish/v1/Systems/1\r\nX-Evil: 1",
        "/redfish/v1/Systems/1?shutdown=1",
        "",
    ],
)
def test_a_link_that_leaves_the_service_is_not_followed(
    bmc: FakeBmc, power: Redfish, link: str
) -> None:
    bmc.systems = (link,)
    with pytest.raises(Unreadable, match="no link that can be followed"):
        power.status(NODE)
    assert bmc.asked == ["GET /redfish/v1/Systems"]


@pytest.mark.parametrize("systems", [(), (SYSTEM, "/redfish/v1/Systems/2")])
def test_which_of_several_machines_is_meant_is_not_guessed(
    bmc: FakeBmc, power: Redfish, systems: tuple[str, ...]
) -> None:
    bmc.systems = systems
    with pytest.raises(Unreadable, match=f"it has {len(systems)} systems"):
        power.off(NODE, "e1")
    assert bmc.resets == []


@pytest.mark.parametrize(
    "body", [b"<html>log in</html>", b"[]", b'"Off"', b"\xff\xfe", b"", b'{"Members": 7}']
)
def test_an_answer_that_is_no_redfish_is_not_believed(
    bmc: FakeBmc, power: Redfish, body: bytes
) -> None:
    bmc.answers["/redfish/v1/Systems"] = (200, body)
    with pytest.raises(Unreadable):
        power.status(NODE)


def test_a_huge_answer_is_not_read_to_its_end(bmc: FakeBmc, power: Redfish) -> None:
    bmc.answers[SYSTEM] = (200, b'{"PowerState": "Off", "x": "' + b"x" * (2 * LARGEST_ANSWER))
    with pytest.raises(Unreadable, match="larger than"):
        power.status(NODE)


def test_a_certificate_that_nobody_signed_gets_no_password(bmc: FakeBmc, power: Redfish) -> None:
    trusting_others = replace(power, line=replace(power.line, ca_file=None))
    with pytest.raises(Unreadable, match="not trusted or does not fit"):
        trusting_others.status(NODE)
    assert bmc.asked == []


def test_a_certificate_for_another_host_gets_no_password(bmc: FakeBmc, power: Redfish) -> None:
    by_name = replace(power, bmc=lambda _: f"localhost:{bmc.host.rpartition(':')[2]}")
    with pytest.raises(Unreadable, match="not trusted or does not fit"):
        by_name.status(NODE)
    assert bmc.asked == []


def test_certificates_that_cannot_be_read_are_named(power: Redfish, tmp_path: Path) -> None:
    lost = replace(power, line=replace(power.line, ca_file=tmp_path / "none.pem"))
    with pytest.raises(Unreadable, match=r"none\.pem: put the BMCs' CA there"):
        lost.status(NODE)


def test_a_node_without_a_bmc_is_refused(power: Redfish) -> None:
    with pytest.raises(Refusal, match="gpu-99 has no BMC address"):
        power.status(NodeName("gpu-99"))


def test_a_password_that_cannot_be_had_sends_nothing(bmc: FakeBmc, power: Redfish) -> None:
    lost = replace(power, password=SecretRef("env:NOT_SET"))
    with pytest.raises(Unreadable, match="NOT_SET is not set"):
        lost.off(NODE, "e1")
    assert bmc.asked == []


def test_the_events_of_the_hardware_are_lines_of_the_sel(bmc: FakeBmc, power: Redfish) -> None:
    bmc.entries = [
        {"Created": "2026-03-02T01:58:00Z", "Severity": "Critical", "Message": "PSU 1\nlost"},
        {"Message": "x" * 20_000},
    ]
    log = power.event_log(NODE)
    assert log.splitlines()[0] == "2026-03-02T01:58:00Z Critical PSU 1 lost"
    assert len(log) < 1000
