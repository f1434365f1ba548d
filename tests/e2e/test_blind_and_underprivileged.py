"""A bot that sees or may too little ends no job: restarts and requeues are refused, with the reason."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from bot.testbed import SlurmTestbed
from bot.testbed.jobs import TrainingJob
from tests.e2e.odd import odd, odd_bot
from tests.e2e.served import ServedBot
from tests.e2e.twins import approve, rests, state

__all__ = ["odd", "odd_bot"]
pytestmark = [pytest.mark.e2e, pytest.mark.slurm]

NODE = "gpu-02"
REBOOT = ("run", "reboot-node", NODE, "reason=tested")
HOSTILE = {
    "SLURM_CLUSTERS": "elsewhere",
    "SLURM_CONF": "/nonexistent/slurm.conf",
    "SLURM_TIME_FORMAT": "relative",
    "SQUEUE_STATES": "PENDING",
    "SQUEUE_USERS": "nobody",
    "SQUEUE_PARTITION": "none",
    "SCONTROL_ALL": "no",
    "SINFO_FORMAT": "%n",
    "TZ": "Asia/Kolkata",
}


@contextmanager
def level(odd: SlurmTestbed, bot: ServedBot, name: str) -> Iterator[None]:
    """The bot's user has this AdminLevel, which shows when the bot starts again."""
    _set_level(odd, bot, name)
    yield
    _set_level(odd, bot, "Admin")


def _set_level(odd: SlurmTestbed, bot: ServedBot, name: str) -> None:
    odd.run("sacctmgr", "-i", "modify", "user", odd.bot_user, "set", f"adminlevel={name}")
    bot.stop()
    bot.start()


@pytest.fixture
def job(odd: SlurmTestbed) -> Iterator[TrainingJob]:
    """Somebody's training on gpu-02."""
    found = odd.train([NODE])
    yield found
    odd.cancel(found.id)
    if "DRAIN" in odd.node_states(NODE):  # a restart that waits for the job has drained it already
        odd.admin_resume(NODE)
        odd.wait_for_states(NODE, "IDLE")


def asked(bot: ServedBot, *words: str) -> str:
    """What a run says once it rests or waits for the node; every plan gets the yes that it wants."""
    run = bot.json(*words, "--no-wait").run
    bot.testbed.wait_for(lambda: _stands(bot, run), f"{run} stands still")
    while state(bot, run) == "awaiting_approval":
        approve(bot, run)
        bot.testbed.wait_for(lambda: _went_on(bot, run), f"{run} stands still again")
    told = " ".join(bot.ask("status", run).text.split())
    bot.ask("abort", run, "tested")
    return told


def _went_on(bot: ServedBot, run: str) -> bool:
    return state(bot, run) != "awaiting_approval" and _stands(bot, run)


def _stands(bot: ServedBot, run: str) -> bool:
    return rests(bot, run) or "gpu-02 is not drained" in bot.ask("status", run).text


def untouched(odd: SlurmTestbed, job: TrainingJob) -> Callable[[], None]:
    """Afterwards the job runs on as it did, on a host that was not restarted."""
    restarts, boot = odd.job(job.id)["Restarts"], odd.boot_id(NODE)

    def check() -> None:
        facts = odd.job(job.id)
        assert (facts["JobState"], facts["Restarts"]) == ("RUNNING", restarts)
        assert odd.boot_id(NODE) == boot

    return check


def each_way(bot: ServedBot, job: TrainingJob) -> dict[str, str]:
    """What the bot says to a restart of the node and to a requeue of its job."""
    return {
        "reboot": asked(bot, *REBOOT),
        "requeue": asked(bot, "run", "requeue-job", f"job={job.id}", f"node={NODE}"),
    }


@pytest.mark.parametrize("name", ["None", "Operator"])
def test_with_too_few_rights_nothing_is_restarted_or_requeued(
    odd: SlurmTestbed, odd_bot: ServedBot, job: TrainingJob, name: str
) -> None:
    check = untouched(odd, job)
    with level(odd, odd_bot, name):
        told = each_way(odd_bot, job)
    check()
    assert f"has AdminLevel={name}, so Slurm will refuse" in told["reboot"]
    assert "changed nothing" in told["requeue"]


def test_a_suspended_job_holds_its_node_that_slurm_calls_idle(
    odd: SlurmTestbed, odd_bot: ServedBot, job: TrainingJob
) -> None:
    check = untouched(odd, job)
    odd.as_admin("scontrol", "suspend", str(job.id))
    odd.wait_for(lambda: odd.node(NODE)["State"] == "IDLE", "Slurm to call the node idle")
    told = each_way(odd_bot, job)
    odd.as_admin("scontrol", "resume", str(job.id))
    check()
    assert f"{NODE} is not drained" in told["reboot"]
    assert f"job {job.id} is SUSPENDED" in told["requeue"]


def test_a_job_in_a_hidden_partition_is_seen(
    odd: SlurmTestbed, odd_bot: ServedBot, job: TrainingJob
) -> None:
    check = untouched(odd, job)
    odd.set_partition("train", Hidden="YES")
    told = asked(odd_bot, *REBOOT)
    odd.set_partition("train", Hidden="NO")
    check()
    assert f"{NODE} is not drained" in told


def test_without_accounting_no_right_is_proven_and_nothing_is_done(
    odd: SlurmTestbed, odd_bot: ServedBot, job: TrainingJob
) -> None:
    check = untouched(odd, job)
    odd_bot.stop()
    odd.stop_accounting()
    try:
        odd_bot.start()
        told = each_way(odd_bot, job)
    finally:
        odd.start_accounting()
    check()
    assert "accounting does not answer" in told["reboot"]
    assert "changed nothing" in told["requeue"]


def test_variables_that_redirect_slurms_tools_hide_no_job(
    odd: SlurmTestbed, odd_bot: ServedBot, job: TrainingJob
) -> None:
    check = untouched(odd, job)
    odd_bot.stop()
    odd_bot.environment = HOSTILE
    try:
        odd_bot.start()
        told = asked(odd_bot, *REBOOT)
    finally:
        odd_bot.environment = {}
        odd_bot.stop()
        odd_bot.start()
    check()
    assert f"{NODE} is not drained" in told
