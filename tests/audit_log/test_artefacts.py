import os
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from audit_log.artefacts import ArtefactDamaged, ArtefactMissing, ArtefactStore


@given(st.lists(st.binary(max_size=300), max_size=5))
def test_every_content_comes_back_under_its_sha256(
    tmp_path_factory: pytest.TempPathFactory, contents: list[bytes]
) -> None:
    store = ArtefactStore(tmp_path_factory.mktemp("artefacts") / "a")
    digests = [store.put(content) for content in contents]
    assert digests == [sha256(content).hexdigest() for content in contents]
    assert [store.get(digest) for digest in digests] == contents


def test_the_same_content_is_stored_once_and_nothing_half_written_is_left(tmp_path: Path) -> None:
    store = ArtefactStore(tmp_path / "a")
    assert store.put(b"x") == store.put(b"x")
    assert len([path for path in tmp_path.rglob("*") if path.is_file()]) == 1


def test_a_changed_file_is_not_handed_out(tmp_path: Path) -> None:
    store = ArtefactStore(tmp_path / "a")
    digest = store.put(b"what was said")
    (path,) = (tmp_path / "a").glob("??/*")
    path.write_bytes(b"what was not said")
    with pytest.raises(ArtefactDamaged, match=digest):
        store.get(digest)


@pytest.mark.parametrize("name", ["0" * 64, "../../etc/passwd", "", "A" * 64, "٣" * 64])
def test_what_is_not_there_or_no_digest_is_missing(tmp_path: Path, name: str) -> None:
    with pytest.raises(ArtefactMissing):
        ArtefactStore(tmp_path / "a").get(name)


def test_old_artefacts_expire_unless_they_are_kept(tmp_path: Path) -> None:
    store = ArtefactStore(tmp_path / "a")
    old, kept, new = (store.put(content) for content in (b"old", b"kept", b"new"))
    now = datetime.now(UTC)
    for digest in (old, kept):
        os.utime(tmp_path / "a" / digest[:2] / digest, (0, 0))
    assert store.expire(now - timedelta(days=1), keep={kept}) == 1
    assert store.get(kept) == b"kept"
    assert store.get(new) == b"new"
    with pytest.raises(ArtefactMissing, match="expired"):
        store.get(old)


def test_stored_again_an_artefact_is_young_again(tmp_path: Path) -> None:
    store = ArtefactStore(tmp_path / "a")
    digest = store.put(b"x")
    os.utime(tmp_path / "a" / digest[:2] / digest, (0, 0))
    store.put(b"x")
    assert store.expire(datetime.now(UTC) - timedelta(days=1)) == 0
