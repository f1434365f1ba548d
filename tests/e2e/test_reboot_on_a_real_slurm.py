"""reboot-node on a real Slurm: the drain stands over the restart, and the canary lets the node back."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.testbed import SlurmTestbed
from tests.e2e.served import ServedBot
from tests.e2e.twins import rows, settle
from tests.patience import DEADLINE

pytestmark = [pytest.mark.e2e, pytest.mark.slurm]
NODE = "gpu-08"
SHOW = """
echo "$(id -un) on $(hostname) in $SLURM_JOB_RESERVATION"; test ! -e {marker}
"""


@pytest.fixture(scope="module")
def sudo(slurm_testbed: SlurmTestbed) -> Iterator[None]:
    """The bot's user may become the canary's account, as the operations manual says."""
    if not Path("/usr/bin/sudo").exists():
        pytest.skip("sudo is not installed")
    options = slurm_testbed.options
    rule = Path(f"/etc/sudoers.d/nodewarden-test-{os.getpid()}")
    rule.write_text(f"{options.bot_user} ALL=({options.job_user}) NOPASSWD: ALL\n")
    rule.chmod(0o440)
    yield
    rule.unlink()


@pytest.fixture(scope="module")
def marker(settled: SlurmTestbed) -> Path:
    """While this file is there the canary fails."""
    return settled.layout.jobs / "no-canary"


@pytest.fixture(scope="module")
def bot(settled: SlurmTestbed, sudo: None, marker: Path) -> Iterator[ServedBot]:
    """A bot whose site has a canary, and lets it act."""
    settled.layout.jobs.chmod(0o755)
    canary = {
        "user": settled.options.job_user,
        "command": ["/bin/sh", "-c", SHOW.format(marker=marker)],
        "partition": "train",
        "time_limit": "2m",
        "output": str(settled.layout.jobs),
    }
    served = ServedBot(settled, settled.folder / "reboots", canary=f"canary: {json.dumps(canary)}")
    served.config.write_text(
        f"{served.config.read_text()}policy: {{autonomy: {{default: act, rules: []}}}}\n"
    )
    served.start()
    yield served
    served.stop()


def told(bot: ServedBot) -> str:
    """The cards of all runs, for whoever reads a failure."""
    names = [name for (name,) in rows(bot, "SELECT id FROM runs ORDER BY number")]
    return "\n".join(bot.ask("status", name).text for name in names)


def watched(bot: ServedBot, *words: str) -> tuple[str, list[frozenset[str]]]:
    """The run, once it has come to rest, and the states that its node had on the way."""
    run = bot.json(*words, "--no-wait").run
    seen: list[frozenset[str]] = []

    def rests() -> bool:
        states = bot.testbed.node_states(NODE)
        if not seen or seen[-1] != states:
            seen.append(states)
        (state,) = rows(bot, "SELECT state FROM runs WHERE id = ?", run)[0]
        below = rows(bot, "SELECT 1 FROM runs WHERE parent IS NOT NULL AND state = 'needs_person'")
        return state in {"succeeded", "failed", "needs_person"} or bool(below)

    bot.testbed.wait_for(rests, f"{run} comes to rest", seconds=6 * DEADLINE)
    return run, seen


def test_the_drain_stands_over_the_restart_and_the_canary_lets_the_node_back(
    bot: ServedBot, settled: SlurmTestbed
) -> None:
    before = settled.boot_id(NODE)
    run, seen = watched(bot, "run", "reboot-node", NODE, "reason=kernel leak")
    assert rows(bot, "SELECT state FROM runs WHERE id = ?", run) == [("succeeded",)], told(bot)
    assert settled.boot_id(NODE) != before
    drained = [states for states in seen if "DRAIN" in states]
    assert drained, seen
    first = seen.index(drained[0])
    until = max(number for number, states in enumerate(seen) if "DRAIN" in states)
    assert all("DRAIN" in states for states in seen[first : until + 1]), seen
    assert any(states & {"REBOOT_ISSUED", "REBOOT_REQUESTED", "DOWN"} for states in drained), seen
    settled.wait_for_states(NODE, "IDLE")
    assert "no reservations" in settled.run("scontrol", "show", "reservations").lower()
    (output,) = settled.layout.jobs.glob("nw-*.out")
    assert output.read_text().startswith(f"{settled.options.job_user} on ")
    assert f"in nw-{run}-canary_" in output.read_text()


def _drained(bot: ServedBot) -> bool:
    return settle(bot, bot.json("drain", NODE, "fans", "--no-wait").run) == "succeeded"


def test_a_canary_that_fails_leaves_the_node_drained_and_a_person_is_asked(
    bot: ServedBot, settled: SlurmTestbed, marker: Path
) -> None:
    marker.touch()
    try:
        # The reservation of the run before stands in the shared snapshot for up to 15 s.
        settled.wait_for(lambda: _drained(bot), f"{NODE} is drained")
        run, _ = watched(bot, "return", NODE)
        assert "DRAIN" in settled.node_states(NODE)
        assert "Reason=nw canary failed [" in settled.run("scontrol", "show", "node", NODE)
        assert "no reservations" in settled.run("scontrol", "show", "reservations").lower()
        pages = rows(bot, "SELECT summary FROM pages")
        assert any("its canary did not pass" in page[0] for page in pages), pages
        bot.ask("abort", run, "tested")
    finally:
        marker.unlink()
        settled.admin_resume(NODE)
    settled.wait_for_states(NODE, "IDLE")
