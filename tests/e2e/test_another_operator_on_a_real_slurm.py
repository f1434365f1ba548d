"""People and a second bot work on the same real Slurm: nothing of theirs is undone or taken over."""

import re
from datetime import UTC, datetime

import pytest

from bot.testbed import SlurmTestbed
from tests.e2e.twins import (
    Namesakes,
    Orphans,
    Twins,
    approve,
    carry_out,
    intents,
    kill_when,
    last_run,
    namesakes,
    orphans,
    rows,
    settle,
    twins,
    until,
)

__all__ = ["namesakes", "orphans", "twins"]
pytestmark = [pytest.mark.e2e, pytest.mark.slurm, pytest.mark.usefixtures("orphans")]


def reason(testbed: SlurmTestbed, node: str) -> str:
    """The whole Reason with its writer, as scontrol shows it; empty if there is none."""
    found = re.search(r"Reason=(.*)", testbed.run("scontrol", "show", "node", node))
    return found[1] if found else ""


def drains_logged(testbed: SlurmTestbed, node: str) -> int:
    """How often this program wrote a Reason on that node, by slurmctld's own log."""
    log = (testbed.layout.logs / "slurmctld.log").read_text("utf-8", "replace")
    return len(re.findall(rf"update_node: node {node} reason set to: nw ", log))


@pytest.fixture(scope="module", autouse=True)
def lifted(settled: SlurmTestbed, twins: Twins) -> None:
    """A drain of ours that an admin lifts at once: told by the last test, 30 s later."""
    assert carry_out(twins.first, "drain", "gpu-10", "hot")[0] == "succeeded"
    settled.admin_resume("gpu-10")


def test_a_drain_by_an_admin_between_last_look_and_write_is_told_with_its_exact_text(
    twins: Twins, settled: SlurmTestbed
) -> None:
    with twins.between_look_and_write("gpu-02"):
        settled.admin_drain("gpu-02", 'RMA 12 "q" <#C1>')
        second = datetime.now(UTC).second
        until(lambda: datetime.now(UTC).second != second, "the next second")
    run = last_run(twins.first)
    assert settle(twins.first, run) != "succeeded"
    told = twins.first.ask("status", run).text
    assert settled.options.admin_user in told
    restore = """scontrol update NodeName=gpu-02 State=DRAIN 'Reason=RMA 12 "q" <#C1>'"""
    assert restore in told
    assert carry_out(twins.first, "return", "gpu-02")[0] == "needs_person"
    assert "DRAIN" in settled.node("gpu-02")["State"]
    settled.admin_resume("gpu-02")


def test_a_drain_in_the_very_second_of_our_write_is_told_with_its_writer(
    twins: Twins, settled: SlurmTestbed
) -> None:
    with twins.between_look_and_write("gpu-03"):
        until(lambda: datetime.now(UTC).microsecond < 100_000, "the beginning of a second")
        settled.admin_drain("gpu-03", "RMA 13")
    run = last_run(twins.first)
    assert settle(twins.first, run) != "succeeded"
    told = twins.first.ask("status", run).text
    assert settled.options.admin_user in told
    assert "scontrol update NodeName=gpu-03 State=DRAIN" in told
    settled.admin_resume("gpu-03")


def test_a_reason_that_an_admin_put_over_ours_is_theirs(
    twins: Twins, settled: SlurmTestbed
) -> None:
    assert carry_out(twins.first, "drain", "gpu-04", "fans")[0] == "succeeded"
    settled.as_admin("scontrol", "update", "NodeName=gpu-04", "Reason=mine now, do not return")
    state, told = carry_out(twins.first, "return", "gpu-04")
    assert state == "needs_person"
    assert "took it over" in told
    assert reason(settled, "gpu-04").startswith("mine now, do not return")
    settled.admin_resume("gpu-04")


def test_a_second_bot_with_the_same_run_number_does_not_return_what_the_first_drained(
    twins: Twins, settled: SlurmTestbed, namesakes: Namesakes
) -> None:
    assert namesakes.drain == namesakes.back
    assert "another bot" in namesakes.told
    assert "DRAIN" in settled.node("gpu-05")["State"]
    assert reason(settled, "gpu-05").startswith("nw fans [run-1/")
    assert carry_out(twins.first, "return", "gpu-05")[0] == "succeeded"
    settled.wait_for_states("gpu-05", "IDLE")


def test_gpus_that_came_after_slurmd_are_registered_by_a_restart_and_the_card_says_who_resumes(
    twins: Twins, settled: SlurmTestbed
) -> None:
    settled.gpus_late("gpu-06")
    settled.wait_for_states("gpu-06", "IDLE", "DRAIN", "INVALID_REG")
    before = settled.unit("gpu-06")["pid"]
    state, told = carry_out(twins.first, "run", "node-dropped", "gpu-06")
    assert (state, "A4a" in told) == ("awaiting_approval", True), told
    run = last_run(twins.first)
    approve(twins.first, run)
    assert settle(twins.first, run) == "needs_person"
    why = rows(twins.first, "SELECT summary FROM pages WHERE run = ?", run)[0][0]
    assert "whoever answers for it must RESUME the node" in why
    assert settled.unit("gpu-06")["pid"] != before
    assert settled.node_states("gpu-06") == {"IDLE", "DRAIN"}
    twins.first.ask("abort", run, "tested")
    settled.admin_resume("gpu-06")
    settled.wait_for_states("gpu-06", "IDLE")


def test_a_bot_killed_when_its_drain_shows_finishes_the_run_and_drains_once(
    twins: Twins, settled: SlurmTestbed
) -> None:
    bot = twins.first
    words = ("drain", "gpu-08", "fans")
    kill_when(bot, words, lambda: "DRAIN" in settled.node("gpu-08")["State"])
    run = intents(bot, "gpu-08")[0][0]
    assert settle(bot, run) == "succeeded"
    assert drains_logged(settled, "gpu-08") == 1
    assert "gpu-08 drain" in bot.ask("list", "marks").text
    assert carry_out(bot, "return", "gpu-08")[0] == "succeeded"


def test_a_bot_killed_when_its_start_shows_finishes_the_run_and_starts_once(
    twins: Twins, settled: SlurmTestbed
) -> None:
    bot = twins.second
    settled.kill_slurmd("gpu-09")
    words = ("run", "node-dropped", "gpu-09")
    kill_when(bot, words, lambda: settled.unit("gpu-09")["state"] == "active")
    started = settled.unit("gpu-09")["pid"]
    assert settle(bot, intents(bot, "gpu-09")[0][0]) == "succeeded"
    assert settled.unit("gpu-09")["pid"] == started
    assert "sound" in bot.ask("audit", "verify").text


def test_a_drain_of_ours_that_an_admin_lifted_is_reported_and_not_set_again(
    twins: Twins, settled: SlurmTestbed
) -> None:
    bot = twins.first
    lost = "SELECT record FROM ledger WHERE kind = 'mark.lost' AND node = 'gpu-10'"
    settled.wait_for(lambda: rows(bot, lost), "the lost mark is recorded")
    assert "somebody else resumed it" in rows(bot, lost)[0][0]
    assert "gpu-10 drain" not in bot.ask("list", "marks").text
    assert "DRAIN" not in settled.node("gpu-10")["State"]
    assert drains_logged(settled, "gpu-10") == 1


def test_what_a_bot_had_only_intended_when_it_was_killed_is_done_once_by_the_next(
    twins: Twins, settled: SlurmTestbed, orphans: Orphans
) -> None:
    assert settle(twins.first, orphans.drain) == "succeeded"
    assert drains_logged(settled, "gpu-07") == 1
    assert "gpu-07 drain" in twins.first.ask("list", "marks").text
    assert carry_out(twins.first, "return", "gpu-07")[0] == "succeeded"
    assert settle(twins.second, orphans.start) == "succeeded"
    assert settled.unit("gpu-01")["state"] == "active"
    settled.wait_for_states("gpu-01", "IDLE")
    for bot in (twins.first, twins.second):
        assert "sound" in bot.ask("audit", "verify").text
