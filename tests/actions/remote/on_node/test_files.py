"""Files of users: read as the user, below the roots, never a device, never through a way out."""

import json
import os
import pwd
import shutil
from pathlib import Path

import pytest

from actions.remote.on_node import files
from actions.remote.on_node.site import Site
from tests.actions.remote.on_node.installed import OWNER, Installed

REFUSED = 64


def _file(path: Path, text: bytes = b"step 1\nstep 2\n", mode: int = 0o600) -> Path:
    path.write_bytes(text)
    path.chmod(mode)
    shutil.chown(path, OWNER)
    return path


def test_the_end_of_a_users_file_is_read(node: Installed) -> None:
    _file(node.files / "train.log", b"x" * 100 + b"\nstep 7 \xff\n")
    found = node.run("file-tail", OWNER, f"{node.files}/train.log", "10").json
    assert found["text"] == "\nstep 7 \\xff\n"[-13:]
    assert (found["size"], found["offset"]) == (110, 100)


def test_what_the_user_may_not_read_is_not_read_as_root(node: Installed) -> None:
    secret = node.files / "secret"
    secret.write_text("root's")
    secret.chmod(0o600)
    done = node.run("file-tail", OWNER, str(secret), "10")
    assert (done.code, done.out) == (1, "")
    assert "Permission denied" in done.err


@pytest.mark.parametrize("user", ["root", "daemon", "nosuchuser", "-x", "nobody;id", "NOBODY", ""])
def test_nothing_is_read_as_the_system_or_as_nobody_known(node: Installed, user: str) -> None:
    _file(node.files / "a", mode=0o644)
    done = node.run("file-tail", user, f"{node.files}/a", "10")
    assert done.code in {1, REFUSED}
    assert done.out == ""


def test_a_path_outside_of_the_roots_is_refused(node: Installed) -> None:
    for path in (
        "/etc/passwd",
        f"{node.files}",
        f"{node.files}/../etc/nodewarden/helper.conf",
        f"{node.files}x/a",
        f"{node.files}/a\n/etc/passwd",
        f"{node.files}//a",
        "files/a",
        "-n",
    ):
        done = node.run("file-tail", OWNER, path, "10")
        assert (done.code, done.out) == (REFUSED, ""), path


def test_a_link_out_of_the_roots_leads_nowhere(node: Installed) -> None:
    (node.files / "out").symlink_to("/etc/passwd")
    (node.files / "outer").symlink_to("/etc")
    for path in ("out", "outer/passwd"):
        done = node.run("file-tail", OWNER, f"{node.files}/{path}", "10")
        assert (done.code, done.out) == (1, "")
        assert "below no root" in done.err
    assert node.run("file-list", OWNER, f"{node.files}/outer", "*").code == 1


def test_a_link_within_the_roots_is_followed(node: Installed) -> None:
    _file(node.files / "real", b"7\n")
    (node.files / "latest").symlink_to("real")
    assert node.run("file-tail", OWNER, f"{node.files}/latest", "10").json["text"] == "7\n"


def test_no_pipe_device_or_folder_is_opened(node: Installed) -> None:
    os.mkfifo(node.files / "pipe", 0o666)
    os.mknod(node.files / "null", 0o020666, os.makedev(1, 3))
    for name in ("pipe", "null"):
        done = node.run("file-tail", OWNER, f"{node.files}/{name}", "10")
        assert (done.code, done.out) == (1, ""), name
        assert "not a regular file" in done.err


def test_a_folder_is_listed_with_what_each_entry_is(node: Installed) -> None:
    folder = node.files / "run"
    folder.mkdir()
    for name in ("iter_0001", "iter_0002"):
        (folder / name).mkdir()
    _file(folder / "iter_latest.txt", b"2")
    (folder / "iter_now").symlink_to("iter_0002")
    _file(folder / "other")
    found = node.run("file-list", OWNER, str(folder), "iter_*").json
    kinds = {entry["name"]: entry["kind"] for entry in found["entries"]}
    assert kinds == {
        "iter_0001": "folder",
        "iter_0002": "folder",
        "iter_latest.txt": "file",
        "iter_now": "link",
    }
    (link,) = (entry for entry in found["entries"] if entry["kind"] == "link")
    assert link["leads_to"] == "iter_0002"
    assert found["more"] is False


def test_hostile_names_in_a_folder_stay_one_entry_each(node: Installed) -> None:
    for name in (b"a\nb", b"a\xff", b'a"},{"name":"b', b"a$(id)"):
        with open(os.fsencode(node.files) + b"/" + name, "wb"):
            pass
    found = node.run("file-list", OWNER, str(node.files), "a*")
    assert found.code == 0, found.err
    names = [entry["name"] for entry in found.json["entries"]]
    assert sorted(names) == sorted(["a\nb", "a\\xff", 'a"},{"name":"b', "a$(id)"])


def test_a_long_folder_says_that_there_is_more(
    node: Installed, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        (node.files / f"shard_{number}").touch()
    monkeypatch.setattr(files, "_MOST_SHOWN", 3)
    site = Site(program="", state=str(node.state), roots=(str(node.files),))
    found = json.loads(files.listed(str(node.files), OWNER, "shard_*", site).out)
    assert (len(found["entries"]), found["more"]) == (3, True)


@pytest.mark.parametrize("pattern", ["../*", "a/b", "", "a\nb", "{a,b}", "$(id)"])
def test_a_pattern_names_entries_of_one_folder_only(node: Installed, pattern: str) -> None:
    assert node.run("file-list", OWNER, str(node.files), pattern).code == REFUSED


def test_a_reading_that_hangs_is_ended_and_not_begun_twice(
    node: Installed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_LIMIT", 0.2)
    os.mkfifo(node.root / "never", 0o666)
    site = Site(program="", state=str(node.state), roots=(str(node.files),))

    def hang() -> dict[str, object]:
        return {"text": (node.root / "never").read_text()}

    found = files._read(OWNER, hang, site)
    assert found.code == 124
    assert "did not end" in found.err


def test_the_child_is_that_user_and_no_other(node: Installed) -> None:
    site = Site(program="", state=str(node.state), roots=(str(node.files),))

    def who() -> dict[str, object]:
        return {"ids": [*os.getresuid(), *os.getresgid()], "groups": os.getgroups()}

    entry = pwd.getpwnam(OWNER)
    found = json.loads(files._read(OWNER, who, site).out)
    assert found["ids"] == [entry.pw_uid] * 3 + [entry.pw_gid] * 3
    assert 0 not in found["groups"]
