"""The stop button, and two bots on one cluster, with real processes and real signals."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from actions.simulated.wire import Request
from tests.patience import DEADLINE, until
from tests.sweep.served import Served, Witnessed, cluster

World = tuple[Witnessed, Callable[[str], Served]]


@pytest.fixture
def world() -> Iterator[World]:
    with cluster() as opened:
        yield opened


def stands(pid: int) -> bool:
    """Whether every thread is stopped: one of them takes the signal, and others may still run then."""
    states = Path(f"/proc/{pid}/task").glob("*/stat")
    try:
        return all(state.read_text().rpartition(")")[2].split()[0] == "T" for state in states)
    except FileNotFoundError:  # a thread ended meanwhile
        return False


def stopped_in_its_first_write(seen: Witnessed, bot: Served, *words: str) -> None:
    """Ask for effects, and stop the bot's process while the first of them is under way."""
    caught = threading.Event()

    def stop(request: Request, pid: int) -> None:
        if not caught.is_set():
            os.kill(pid, signal.SIGSTOP)
            until(
                lambda: stands(pid), lambda: "it does not stand"
            )  # only then is its write answered
            caught.set()

    seen.at_write = stop
    bot.say(*words, "--no-wait")
    assert caught.wait(DEADLINE)
    seen.wait_for_effects(1)


def test_after_a_halt_no_effect_begins_not_even_after_a_restart(world: World) -> None:
    seen, make = world
    bot = make("one")
    bot.start()
    stopped_in_its_first_write(seen, bot, "drain", "gpu-[2-5]", "new cables")

    halt = bot.begin("halt", "power work")
    assert halt.stdout is not None
    assert "halt file written" in halt.stdout.readline(), "without the bot's help"
    bot.signal(signal.SIGCONT)
    halt.communicate(timeout=DEADLINE)
    assert halt.returncode == 0
    assert "halted: power work" in bot.until("halted", "status", "run-1")
    seen.wait_for("snapshot", bot.pid, 2)
    assert len(seen.effects()) == 1, "the one that was under way"

    bot.stop()
    bot.start()
    seen.wait_for("snapshot", bot.pid, 2)
    assert "halted: power work" in bot.say("status", "run-1")
    assert len(seen.effects()) == 1

    bot.say("halt", "--clear", "power is back")
    bot.until("Finished", "status", "run-1")
    assert [effect.arguments["node"] for effect in seen.effects()] == [
        *("gpu-2", "gpu-3", "gpu-4", "gpu-5")
    ]


def test_a_halt_reaches_a_bot_that_never_wakes_again(world: World) -> None:
    """The bot is killed while it is stopped; the next one keeps to the file."""
    seen, make = world
    bot = make("one")
    bot.start()
    stopped_in_its_first_write(seen, bot, "drain", "gpu-[2-4]", "new cables")
    halt = bot.begin("halt", "smoke in row 4")
    assert halt.stdout is not None
    assert "halt file written" in halt.stdout.readline()
    bot.signal(signal.SIGKILL)
    halt.communicate(timeout=DEADLINE)
    bot.stop()
    bot.start()
    bot.until("halted: smoke in row 4", "status", "run-1")
    assert len(seen.effects()) == 1


def test_a_second_bot_on_the_same_database_is_refused_and_told_by_whom(world: World) -> None:
    _, make = world
    bot = make("one")
    bot.start()
    answer = bot.say_to_file("serve")
    assert f"in use by another nodewarden (pid {bot.pid}" in answer
    assert "stop that one first" in answer


def test_a_second_bot_with_the_same_run_numbers_takes_nothing_of_the_first(world: World) -> None:
    seen, make = world
    first, second = make("one"), make("two")
    first.start()
    second.start()
    first.say("drain", "gpu-3", "new cables")
    first.until("Finished", "status", "run-1")
    assert "run-1" in second.say("drain", "gpu-3", "mine too")
    second.until("drained by another bot", "status", "run-1")
    second.say("return", "gpu-3")
    second.until("only who drained a node returns it", "status", "run-2")
    assert [effect.verb for effect in seen.effects()] == ["drain"]
