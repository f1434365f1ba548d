"""From accounts to persons: workspaces, OS users by number, and logins behind sudo."""

import pwd
from collections.abc import Iterator
from pathlib import Path

import pytest

from audit_log.ledger import Ledger
from audit_log.people import People
from bot.identities import Identities, Stranger
from bot.os_users import NO_LOGIN, Peer, login_name, names_of
from config.actors import Identity
from config.load import load
from config.people import Directory
from config.redaction import Redactor
from config.system_clock import SystemClock

DAEMON = pwd.getpwnam("daemon")

CONFIG = """
bot: {{data_folder: {folder}/data}}
slack: {{bot_token: "env:A", app_token: "env:B", team: THOME}}
clusters:
  sim:
    kind: simulated
    simulated_socket: {folder}/sim.sock
    pools: {{train: {{partitions: [train], max_out: 1}}}}
    protected: sim-ctl
people:
  ann: {{slack: [TAWAY/U1, THOME/U9], os_users: ["1000001", ann], roles: [oncall]}}
  bob: {{slack: [THOME/U1], os_users: ["{daemon}"], roles: [oncall]}}
  cat: {{slack: [TAWAY/U3], os_users: ["1000002"], roles: [oncall]}}
pages: [{{kind: alertmanager, url: "http://127.0.0.1:9"}}]
"""


@pytest.fixture
def identities(tmp_path: Path) -> Iterator[Identities]:
    config = tmp_path / "config.yaml"
    config.write_text(CONFIG.format(folder=tmp_path, daemon=DAEMON.pw_uid), "utf-8")
    ledger = Ledger.open(
        tmp_path / "nodewarden.db", clock=SystemClock(), redactor=Redactor(), projectors=()
    )
    yield Identities(Directory(load([config])), People(ledger))
    ledger.close()


def test_a_slack_user_is_a_person_of_our_workspace_only(identities: Identities) -> None:
    found = identities.by_slack_user("U1")
    assert found is not None
    assert found.name == "bob"
    assert identities.by_slack_user("U3") is None
    assert identities.by_slack_user("HOME/U1") is None


def test_a_mention_names_the_account_in_our_workspace(identities: Identities) -> None:
    said = {actor.name: identities.slack_user(actor.id) for actor in identities.everybody()}
    assert said == {"ann": "U9", "bob": "U1", "cat": None}


def test_jobs_belong_to_names_also_where_the_configuration_has_numbers(
    identities: Identities,
) -> None:
    said = {actor.name: identities.os_user(actor.id) for actor in identities.everybody()}
    assert said == {"ann": "ann", "bob": "daemon", "cat": "1000002"}


def test_a_number_that_the_host_does_not_know_stays_a_number() -> None:
    assert login_name(str(DAEMON.pw_uid)) == "daemon"
    assert login_name("1000002") == "1000002"
    assert login_name("9" * 30) == "9" * 30


def test_a_stranger_is_told_what_to_add(identities: Identities) -> None:
    with pytest.raises(Stranger, match="under `people`"):
        identities.at_door(Identity(door="slack", subject="TAWAY/U9"))


@pytest.mark.parametrize(
    ("uid", "login", "name"),
    [
        (0, None, "root"),
        (0, 0, "root"),
        (0, NO_LOGIN, "root"),
        (0, DAEMON.pw_uid, "daemon"),
        (1000001, DAEMON.pw_uid, "daemon"),
        (DAEMON.pw_uid, NO_LOGIN, "daemon"),
        (DAEMON.pw_uid, 1000001, "1000001"),
    ],
)
def test_behind_sudo_and_su_stands_whoever_logged_in(
    monkeypatch: pytest.MonkeyPatch, uid: int, login: int | None, name: str
) -> None:
    monkeypatch.setattr("bot.os_users._login_uid", lambda _: login)
    assert names_of(Peer(pid=1, uid=uid))[0] == name


def test_a_process_that_is_gone_has_no_login_user() -> None:
    assert names_of(Peer(pid=2**22 + 1, uid=DAEMON.pw_uid)) == ("daemon", str(DAEMON.pw_uid))
