"""Anchors go out before a run ends, by files and by programs of the site, and stop no bot."""

import json
import os
import stat
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from actions.shell import Runner
from audit_log.anchors import Anchor
from audit_log.errors import ChainBroken
from bot.anchor_command import CommandSink
from config.ids import InstanceId
from runbooks.anchor_watch import AnchorWatch
from runbooks.machine import RunState
from tests.bot.whole import Whole, whole
from tests.patience import until

ANCHOR = Anchor(
    instance=InstanceId("aabbccdd"), seq=7, digest="0" * 64, at=datetime(2026, 1, 1, tzinfo=UTC)
)


def program(folder: Path, *lines: str) -> Path:
    """A program of the site."""
    path = folder / "keep"
    path.write_text("\n".join(("#!/bin/sh", *lines, "")))
    path.chmod(0o755)
    return path


def drained(site: Whole) -> int:
    """Drain a node; the number of the record that made the run final."""
    run = site.says("ann", "drain gpu-066 fan").run
    assert run is not None
    site.bot.start()
    answers = site.bot.answers
    until(lambda: answers.run(run).state is RunState.SUCCEEDED, lambda: answers.run(run))
    return answers.run(run).last_seq


def anchored(file: Path) -> list[int]:
    return [json.loads(line)["seq"] for line in file.read_text().splitlines()]


def test_what_a_run_changed_is_anchored_before_it_is_final(tmp_path: Path) -> None:
    file = tmp_path / "anchors"
    with whole(tmp_path, f"anchors: {{files: [{file}], interval: 1h, records: 100000}}") as site:
        end = drained(site)
        rows = site.bot.parts.ledger.query(
            "SELECT max(seq) FROM ledger WHERE kind = 'step.finished'"
        )
        effect = rows[0][0]
        assert [seq for seq in anchored(file) if effect <= seq < end]


def test_a_program_of_the_site_gets_each_anchor_on_its_standard_input(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    keep = program(tmp_path, f'cat >> "{kept}"')
    more = f"anchors: {{commands: [[{keep}, --to, host]]}}"
    with whole(tmp_path, more) as site:
        site.bot.anchoring.anchor_now()
        assert anchored(kept) == [site.bot.parts.ledger.head.seq]
        assert "no anchor of the audit log leaves this host" not in site.told("adm", "doctor")


def test_a_program_that_fails_says_with_what_and_is_no_anchor(tmp_path: Path) -> None:
    keep = program(tmp_path, "echo no route to loghost >&2", "exit 3")
    sink = CommandSink((str(keep),), Runner())
    with pytest.raises(OSError, match="exit code 3: no route to loghost"):
        sink.send(ANCHOR)
    with pytest.raises(OSError, match="no program named"):
        CommandSink(("/nowhere/keep",), Runner()).send(ANCHOR)


def test_a_program_of_the_site_sees_nothing_of_the_bots_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NODEWARDEN_PAGE_TOKEN", "canary")
    seen = tmp_path / "seen"
    CommandSink((str(program(tmp_path, f'env > "{seen}"')),), Runner()).send(ANCHOR)
    assert "canary" not in seen.read_text()


def test_an_anchor_out_of_reach_is_said_and_paged_and_runs_go_on(tmp_path: Path) -> None:
    nowhere = tmp_path / "nowhere" / "anchors"
    with whole(tmp_path, f"anchors: {{files: [{nowhere}]}}") as site:
        drained(site)
        assert f"ANCHOR file {nowhere}: " in site.told("ann", "status")
        anchoring = site.bot.anchoring
        (post,) = anchoring._posts
        post.since = site.bot.parts.clock.now().monotonic - timedelta(minutes=6)
        anchoring.tick()
        until(lambda: [page for page in site.pages.sent if "is not reached" in page.summary])


def test_a_page_about_an_anchor_is_not_repeated_by_the_next_process(tmp_path: Path) -> None:
    with whole(tmp_path) as site:
        ledger = site.bot.parts.ledger
        AnchorWatch(ledger).tell("file /mnt/a", "stale")
        before = ledger.head.seq
        AnchorWatch(ledger).tell("file /mnt/a", "stale")
        assert ledger.head.seq == before
        AnchorWatch(ledger).tell("file /mnt/a", "")
        AnchorWatch(ledger).tell("file /mnt/a", "")
        assert ledger.head.seq == before + 1


def test_an_anchor_behind_many_of_another_bot_still_refuses_an_old_ledger(tmp_path: Path) -> None:
    file = tmp_path / "anchors"
    more = f"anchors: {{files: [{file}]}}"
    with whole(tmp_path, more) as site:
        instance = site.bot.parts.ledger.instance
    ahead = replace(ANCHOR, instance=instance, seq=10**6, at=datetime(2100, 1, 1, tzinfo=UTC))
    with file.open("a") as lines:
        lines.write(f"{ahead.line()}\n" + f"{ANCHOR.line()}\n" * 1000)
    with pytest.raises(ChainBroken, match="its tail was cut"), whole(tmp_path, more):
        """It does not start."""


def test_a_bot_starts_though_an_anchor_file_gives_no_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.wiring.LONGEST_READ", 0.05)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)  # to open it for reading waits for a writer, as a dead mount does
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    with whole(tmp_path, f"anchors: {{files: [{pipe}]}}") as site:
        assert "nodes" in site.told("ann", "status")
        with pipe.open("wb"):
            """The reader goes home."""
