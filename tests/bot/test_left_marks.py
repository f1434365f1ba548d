"""Marks of this bot that nobody looks after are named wherever an operator asks what there is."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from actions.cluster import Reservation
from config.ids import ClusterName
from config.node_names import NodeName
from tests.bot.whole import whole

SIM = ClusterName("sim")


def test_a_reservation_that_the_ledger_does_not_know_is_named_in_each_answer(
    tmp_path: Path,
) -> None:
    with whole(tmp_path) as site:
        seen, instance = site.bot.inventory._seen, site.bot.parts.ledger.instance
        said = f"sim: reservation nw-run-9-ground-{instance} carries the name of run-9 of this bot"
        for answer in ("status", "doctor", "list marks"):
            assert "carries the name" not in site.told("ann", answer)
        now = seen[SIM].taken_at
        mine, theirs = (
            Reservation(
                name=f"nw-run-9-ground-{owner}",
                nodes=(NodeName("gpu-066"),),
                starts_at=now,
                ends_at=now + timedelta(hours=1),
            )
            for owner in (instance, "ffffffff")
        )
        seen[SIM] = replace(seen[SIM], reservations=(mine, theirs))
        for answer in ("status", "doctor", "list marks"):
            assert said in site.told("ann", answer)
            assert "ffffffff" not in site.told("ann", answer)


def test_the_worker_compares_reservations_too(tmp_path: Path) -> None:
    with whole(tmp_path) as site:
        duties = site.bot.worker._duties
        assert duties is not None
        assert "watching reservations" in {post.duty.name for post in duties._posts}
