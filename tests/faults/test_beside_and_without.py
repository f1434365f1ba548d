"""Another bot beside this one, no slurmctld, a bot that stands still: the other one is undisturbed."""

import signal
from datetime import timedelta

from actions.simulated.wire import Request, Sort
from tests.faults.answers import told
from tests.faults.bots import Yard, command

MARK = "drained by another bot"


def test_a_second_bot_on_the_same_database_is_refused_and_the_first_goes_on(place: Yard) -> None:
    first = place.bot("one")
    first.start()
    first.lines("drain", "gpu-068", "cables")
    second = place.bot("two", data=first.data)
    second.launch()
    second.wait(lambda: not second.lives, "its end")
    assert second.stop() == 1
    told("a second bot on the same database", second.refusal, place.folders)
    standalone = command("drain", "gpu-067", "x", "--standalone", "--config", str(first.config))
    assert standalone.code == 1
    told("standalone beside a running bot", standalone.text, place.folders)
    same_socket = command("serve", "--config", str(first.config))
    assert same_socket.code == 1
    first.until("Finished", "status", "run-1")
    assert "run-2" in first.lines("drain", "gpu-066", "more")
    first.until("Finished", "status", "run-2")
    assert place.effects() == ["drain gpu-068", "drain gpu-066"]
    assert first.stop() == 0


def test_a_second_bot_with_the_same_run_numbers_takes_and_returns_nothing_of_the_first(
    place: Yard,
) -> None:
    first, second = place.bot("one"), place.bot("two")
    first.start()
    second.start()
    assert "run-1" in first.lines("drain", "gpu-068", "cables")
    first.until("Finished", "status", "run-1")
    place.rounds(second)
    assert "run-1" in second.lines("drain", "gpu-068", "mine too")
    failed = second.until("FAILED", "status", "run-1")
    assert MARK in failed
    told("a drain of another bot", failed)
    second.lines("return", "gpu-068")
    returned = second.until("page accepted", "status", "run-2")
    assert "only who drained a node returns it" in returned
    told("a return of what another bot drained", returned)
    assert place.effects() == ["drain gpu-068"]
    place.plugs.forward(timedelta(minutes=2))
    assert "run-2" in first.lines("return", "gpu-068")
    first.until("Finished", "status", "run-2")
    assert [effect.split()[0] for effect in place.effects()] == ["drain", "resume"]


def test_without_slurmctld_a_run_waits_and_everybody_is_told(place: Yard) -> None:
    bot = place.bot()
    bot.start()

    def gone(request: Request, _: int) -> None:
        if request.sort is Sort.WRITE:
            place.at_request = lambda request, pid: None
            place.stage.world.plug("controller_down", {"killed": False})

    place.at_request = gone
    bot.ask("drain", "gpu-[067-068]", "cables")
    place.rounds(bot)
    seen = bot.until("sim does not answer", "status")
    told("slurmctld is gone: status", seen.splitlines()[0])
    during = bot.lines("status", "run-1")
    assert "needs_person" not in during
    assert place.effects() == []
    told("slurmctld is gone: node", bot.lines("node", "gpu-068"))
    place.plugs.pull("controller_up")
    bot.wait(lambda: "sim does not answer" not in bot.lines("status"), "an answer")
    assert bot.stop() == 0


def test_a_bot_that_starts_without_slurmctld_says_so_and_does_nothing(place: Yard) -> None:
    place.plugs.pull("controller_down", killed=False)
    bot = place.bot()
    bot.start()
    told("slurmctld is gone at the start: a drain", bot.lines("drain", "gpu-068", "x"))
    told("slurmctld is gone at the start: status", bot.lines("status"))
    place.plugs.pull("controller_up", ago=timedelta(minutes=2))
    bot.until("run-1", "drain", "gpu-068", "x")
    bot.until("Finished", "status", "run-1")


def test_ten_minutes_under_sigstop_lose_nothing_and_repeat_nothing(place: Yard) -> None:
    bot = place.bot()
    bot.start()
    stopped: list[int] = []

    def stop(request: Request, pid: int) -> None:
        if request.sort is Sort.WRITE and not stopped:
            stopped.append(pid)
            bot.process.send_signal(signal.SIGSTOP)  # type: ignore[union-attr]

    place.at_request = stop
    bot.ask("drain", "gpu-[066-068]", "cables")
    bot.wait(lambda: len(place.effects()) == 1)
    place.plugs.pull("admin_drain", node="gpu-065", reason="RMA 1", by="dana")
    place.plugs.forward(timedelta(minutes=10))
    bot.process.send_signal(signal.SIGCONT)  # type: ignore[union-attr]
    bot.wait(lambda: "no run is open" in bot.lines("status") or "needs" in bot.lines("status"))
    told("ten minutes under SIGSTOP", bot.lines("status", "run-1"))
    assert place.effects() == ["drain gpu-066", "drain gpu-067", "drain gpu-068"]
    reasons = {
        node.name: node.reason
        for node in place.stage.world.snapshot(timedelta(seconds=5)).nodes.values()
    }
    assert reasons["gpu-065"] == "RMA 1"  # type: ignore[index]
