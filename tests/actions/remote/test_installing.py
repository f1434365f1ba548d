"""`nodewarden helper`: what is installed, what is left alone, and what sudo would not understand."""

import os
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from actions.remote.installing import NotInstalled, authorized_keys, sudoers
from actions.remote.packing import program
from bot.cli_on_node import on_node

PROGRAM = "usr/local/sbin/nodewarden-helper"
PUBLIC = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEnodewarden ops@bot"

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="writes files of root: run as root")


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """The folder of a node image."""
    (tmp_path / "etc/sudoers.d").mkdir(parents=True)
    return tmp_path


def run(*words: str) -> Result:
    """The command line without the machine around it."""
    return CliRunner().invoke(on_node, list(words))


def test_the_program_its_configuration_and_sudos_leave_are_installed(image: Path) -> None:
    told = run("install", "--root", str(image), "--files", "/scratch", "--hosts", "gpu-*")
    assert told.exit_code == 0, told.output
    place = image / PROGRAM
    about = place.stat()
    assert (about.st_mode & 0o7777, about.st_uid, about.st_gid) == (0o755, 0, 0)
    assert place.read_bytes() == program()
    conf = (image / "etc/nodewarden/helper.conf").read_text()
    assert "roots = /scratch\nhosts" not in conf
    assert {"units = slurmd munge", "roots = /scratch", "hosts = gpu-*"} <= set(conf.splitlines())
    drop_in = image / "etc/sudoers.d/nodewarden"
    assert drop_in.stat().st_mode & 0o7777 == 0o440
    assert drop_in.read_text() == sudoers("nodewarden")
    assert run("check", "--root", str(image)).exit_code == 0


def test_a_second_time_nothing_is_written(image: Path) -> None:
    run("install", "--root", str(image))
    files = sorted(path for path in image.rglob("*") if path.is_file())
    before = [(path, path.stat().st_mtime_ns, path.stat().st_ino) for path in files]
    told = run("install", "--root", str(image))
    assert "written" not in told.output
    assert told.output.count("as it should be") == 2
    assert [(path, path.stat().st_mtime_ns, path.stat().st_ino) for path in files] == before


def test_the_sites_own_configuration_is_never_changed(image: Path) -> None:
    conf = image / "etc/nodewarden/helper.conf"
    conf.parent.mkdir()
    conf.write_text("units = slurmd\n")
    run("install", "--root", str(image), "--files", "/scratch")
    assert conf.read_text() == "units = slurmd\n"


def test_a_dry_run_writes_nothing(image: Path) -> None:
    told = run("install", "--root", str(image), "--dry-run")
    assert told.exit_code == 0
    assert told.output.count("would be written") == 3
    assert not [path for path in image.rglob("*") if path.is_file()]


def test_an_older_or_a_changed_program_is_replaced_and_check_tells_it(image: Path) -> None:
    run("install", "--root", str(image))
    place = image / PROGRAM
    place.write_bytes(b"#!/bin/sh\n")
    place.chmod(0o777)
    told = run("check", "--root", str(image))
    assert told.exit_code == 1
    assert "of another version" in told.output
    assert "others than root may change it" in told.output
    run("install", "--root", str(image))
    assert run("check", "--root", str(image)).exit_code == 0


def test_nothing_installed_is_said_so(image: Path) -> None:
    told = run("check", "--root", str(image))
    assert told.exit_code == 1
    assert "helper install" in told.output


def test_a_link_in_the_place_of_the_program_is_replaced_and_not_followed(image: Path) -> None:
    other = image / "other"
    other.write_text("precious")
    (image / PROGRAM).parent.mkdir(parents=True)
    (image / PROGRAM).symlink_to(other)
    run("install", "--root", str(image))
    assert other.read_text() == "precious"
    assert (image / PROGRAM).read_bytes() == program()


def test_without_sudo_the_error_names_the_other_way(image: Path) -> None:
    (image / "etc/sudoers.d").rmdir()
    told = run("install", "--root", str(image))
    assert told.exit_code == 1
    assert "forced command" in told.output


def test_what_sudo_would_not_understand_is_not_installed(
    image: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("actions.remote.installing.sudoers", lambda _user: "nonsense here\n")
    told = run("install", "--root", str(image))
    assert told.exit_code == 1
    assert "visudo says" in told.output
    assert list((image / "etc/sudoers.d").iterdir()) == []


@pytest.mark.parametrize("user", ["a b", "a\nALL ALL=(ALL) ALL", "", "-x", "ALL=", "#0", "%wheel"])
def test_a_user_that_is_none_never_gets_into_sudoers(user: str) -> None:
    with pytest.raises(NotInstalled):
        sudoers(user)


def test_the_drop_in_and_the_key_line_can_be_printed(tmp_path: Path) -> None:
    key = tmp_path / "key.pub"
    key.write_text(PUBLIC + "\n")
    told = run("install", "--print-sudoers", "--user", "ops", "--forced-command", str(key))
    first, second = told.output.strip().splitlines()[-2:]
    assert first == "ops ALL=(root) NOPASSWD: /usr/local/sbin/nodewarden-helper"
    assert second.startswith('restrict,command="/usr/local/sbin/nodewarden-helper forced" ssh-ed')
    assert second == authorized_keys(PUBLIC).strip()


@pytest.mark.parametrize(
    "text", ["", "one", "-----BEGIN OPENSSH PRIVATE KEY-----\nx\n", "a b\nc d"]
)
def test_what_is_no_public_key_is_not_printed(text: str) -> None:
    with pytest.raises(NotInstalled):
        authorized_keys(text)


def test_the_program_can_be_printed_for_whatever_installs_files() -> None:
    assert CliRunner().invoke(on_node, ["print"]).stdout_bytes == program()


def test_the_printed_drop_in_is_what_visudo_understands(tmp_path: Path) -> None:
    drop_in = tmp_path / "drop-in"
    drop_in.write_text(sudoers("nodewarden"))
    drop_in.chmod(0o440)
    if not Path("/usr/sbin/visudo").exists():
        pytest.skip("needs sudo: its visudo reads the file")
    subprocess.run(["/usr/sbin/visudo", "-c", "-q", "-f", str(drop_in)], check=True)
