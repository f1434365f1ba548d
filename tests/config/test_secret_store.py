"""A secret comes only from where its reference says, and no error repeats it."""

import os
from pathlib import Path

import pytest

from config.secret_store import LARGEST_SECRET, SecretError, SecretStore
from config.secrets import SecretRef


def secret_file(folder: Path, content: bytes, mode: int = 0o600) -> SecretRef:
    path = folder / "token"
    path.write_bytes(content)
    path.chmod(mode)
    return SecretRef(f"file:{path}")


def refusal(reference: SecretRef, environment: dict[str, str] | None = None) -> str:
    with pytest.raises(SecretError) as caught:
        SecretStore(environment or {}).resolve(reference)
    assert "hunter2" not in str(caught.value)
    assert str(reference) in str(caught.value)
    return str(caught.value)


def test_a_secret_is_read_from_the_environment_when_it_is_needed() -> None:
    environment = {"TOKEN": "hunter2"}
    store = SecretStore(environment)
    assert store.resolve(SecretRef("env:TOKEN")) == "hunter2"
    environment["TOKEN"] = "changed"
    assert store.resolve(SecretRef("env:TOKEN")) == "changed"


@pytest.mark.parametrize("ending", [b"", b"\n", b"\r\n"])
def test_the_newline_that_an_editor_leaves_is_no_part_of_it(tmp_path: Path, ending: bytes) -> None:
    assert SecretStore({}).resolve(secret_file(tmp_path, b"hunter2 " + ending)) == "hunter2 "


@pytest.mark.parametrize("mode", [0o604, 0o602, 0o601, 0o644])
def test_a_file_that_others_can_read_or_write_is_refused(tmp_path: Path, mode: int) -> None:
    assert "chmod 0600" in refusal(secret_file(tmp_path, b"hunter2", mode))


def test_a_file_of_the_group_is_accepted(tmp_path: Path) -> None:
    assert SecretStore({}).resolve(secret_file(tmp_path, b"hunter2", 0o640)) == "hunter2"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (b"\n", "is empty"),
        (b"hunter2\0", "not text"),
        (b"hunter2\xff", "not UTF-8"),
        (b"hunter2" * LARGEST_SECRET, "larger than"),
    ],
)
def test_content_that_is_no_secret_is_refused(tmp_path: Path, content: bytes, said: str) -> None:
    assert said in refusal(secret_file(tmp_path, content))


def test_what_is_missing_or_no_plain_file_is_refused(tmp_path: Path) -> None:
    assert "No such file" in refusal(SecretRef(f"file:{tmp_path}/none"))
    assert "not a plain file" in refusal(SecretRef(f"file:{tmp_path}"))
    os.mkfifo(tmp_path / "fifo", 0o600)
    assert "not a plain file" in refusal(SecretRef(f"file:{tmp_path}/fifo"))
    assert "is not set" in refusal(SecretRef("env:TOKEN"))
    assert "is empty" in refusal(SecretRef("env:TOKEN"), {"TOKEN": ""})
