"""Missing rights, hidden jobs, a controller that forgets: the bot says so and is careful."""

import subprocess
from collections.abc import Iterator

import pytest

from bot.testbed import SlurmTestbed
from tests.e2e import quiet
from tests.e2e.odd import odd, odd_bot
from tests.e2e.served import ServedBot
from tests.e2e.twins import approve, carry_out, last_run, rows, settle
from tests.patience import DEADLINE

__all__ = ["odd", "odd_bot"]
pytestmark = [pytest.mark.e2e, pytest.mark.slurm]


def test_a_bot_that_runs_as_root_does_not_start(odd: SlurmTestbed, odd_bot: ServedBot) -> None:
    folder = odd.folder / "as-root"
    folder.mkdir()
    config = folder / "nodewarden.yaml"
    config.write_text(odd_bot.config.read_text().replace(str(odd_bot.folder), str(folder)))
    argv = [*odd.bot_python(), "-m", "bot.cli", "serve", "--config", str(config)]
    done = subprocess.run(
        argv, cwd="/", capture_output=True, text=True, timeout=DEADLINE, check=False
    )
    assert done.returncode == 1
    assert "the bot runs as root: give it an own user with AdminLevel=Admin" in done.stderr


def test_doctor_proves_that_private_jobs_of_others_are_seen(
    odd: SlurmTestbed, odd_bot: ServedBot
) -> None:
    job = odd.train(["gpu-02"])
    odd.wait_for(
        lambda: "1 jobs of 1 other users are seen" in odd_bot.ask("doctor").text,
        "doctor tells of the job",
    )
    odd.cancel(job.id)


def test_a_drain_that_a_killed_controller_forgot_is_recorded_and_paged(
    odd: SlurmTestbed, odd_bot: ServedBot
) -> None:
    quiet.settle(odd)
    testbed, saved = odd, odd.saved_nodes()
    assert carry_out(odd_bot, "drain", "gpu-05", "fans")[0] == "succeeded"
    testbed.forget_since(saved)
    assert "DRAIN" not in testbed.node("gpu-05")["State"]
    lost = "SELECT record FROM ledger WHERE kind = 'mark.lost' AND node = 'gpu-05'"
    testbed.wait_for(lambda: rows(odd_bot, lost), "the lost mark is recorded")
    assert "may have forgotten it" in rows(odd_bot, lost)[0][0]
    paged = rows(odd_bot, "SELECT summary FROM pages WHERE summary LIKE '%gpu-05 is no longer%'")
    assert paged
    assert "DRAIN" not in testbed.node("gpu-05")["State"]


@pytest.fixture
def without_rights(odd: SlurmTestbed, odd_bot: ServedBot) -> Iterator[None]:
    """The bot's user is an ordinary one, which shows when the bot starts again."""
    user = odd.bot_user
    odd.run("sacctmgr", "-i", "modify", "user", user, "set", "adminlevel=None")
    odd_bot.stop()
    odd_bot.start()
    yield
    odd.run("sacctmgr", "-i", "modify", "user", user, "set", "adminlevel=Admin")


@pytest.mark.usefixtures("without_rights")
def test_a_bot_without_rights_says_so_and_ends_no_job_that_it_cannot_see(
    odd: SlurmTestbed, odd_bot: ServedBot
) -> None:
    testbed = odd
    job = testbed.train(["gpu-02"])
    text = odd_bot.ask("doctor").text
    assert "AdminLevel=None" in text
    assert "node.drain" in text
    testbed.wait_for(
        lambda: "the job list cannot be believed" in odd_bot.ask("doctor").text, "doctor is blind"
    )
    testbed.gpus_late("gpu-02")
    before = testbed.unit("gpu-02")["pid"]
    state, told = carry_out(odd_bot, "run", "node-dropped", "gpu-02")
    assert "A4a" in told
    if state == "awaiting_approval":
        run = last_run(odd_bot)
        approve(odd_bot, run)
        state = settle(odd_bot, run)
    assert "only told, nothing done" in told or state in {"needs_person", "failed"}, told
    assert testbed.unit("gpu-02")["pid"] == before
    assert testbed.job(job.id)["JobState"] == "RUNNING"
    refused = carry_out(odd_bot, "drain", "gpu-03", "fans")
    assert "only told, nothing done" in refused[1]
    assert "DRAIN" not in testbed.node("gpu-03")["State"]
    testbed.cancel(job.id)
