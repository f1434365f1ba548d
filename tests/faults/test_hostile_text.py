"""Text that users write into Slurm: shown as it is, at every door, and nothing but text."""

import json
import unicodedata

import pytest

from actions.simulated.scenes import HOSTILE_NAMES, HOSTILE_REASON
from actions.simulated.wire import clean
from tests.faults.bots import Served, Yard, json_lines

ESCAPES = "\x1b]0;owned\x07\x1b[2Jred\u202eder\r\nSECOND LINE\u2028third"
NOT_UTF8 = "na\udcefve \udcff"
"""As Python hands on bytes that are not UTF-8."""


@pytest.mark.parametrize(
    ("node", "text"),
    [("gpu-071", HOSTILE_NAMES[0]), ("gpu-072", HOSTILE_NAMES[1]), ("gpu-073", HOSTILE_REASON)],
)
def test_it_is_shown_in_full_and_as_text(shared: Served, node: str, text: str) -> None:
    answer = shared.say("node", node)
    assert answer.code == 0
    assert text in answer.out
    assert_plain(answer.out)
    spoken = json_lines(shared.say("node", node, "--json"))
    assert text in json.dumps(spoken, ensure_ascii=False).replace('\\"', '"')


def test_a_job_that_calls_itself_completed_still_runs(shared: Served) -> None:
    facts = json_lines(shared.say("node", "gpu-072", "--json"))[0]["reply"]["data"]
    assert "gpu-99" not in str(facts.get("node"))
    plan = shared.lines("plan", "drain-node", "gpu-072", "reason=x")
    assert "on gpu-072" in plan
    assert "gpu-99:" not in plan


def assert_plain(text: str) -> None:
    for character in text:
        assert character == "\n" or unicodedata.category(character) not in {
            *("Cc", "Cf", "Cs", "Zl", "Zp"),
        }, repr(character)


@pytest.mark.parametrize("text", [ESCAPES, NOT_UTF8, "x" * 20_000, '"; touch F; "'])
def test_a_reason_of_another_person_moves_no_cursor_and_stops_no_run(
    place: Yard, text: str
) -> None:
    with place.server.lock:
        place.stage.world.plug(
            "admin_drain", {"node": "gpu-067", "reason": clean(text), "by": "dana"}
        )
    bot = place.bot()
    bot.start()
    for words in (("node", "gpu-067"), ("status",), ("status", "gpu-067")):
        answer = bot.say(*words)
        assert answer.code == 0, answer
        assert_plain(answer.out)
        assert "Traceback" not in bot.log
    answer = bot.say("drain", "gpu-067", "mine")
    assert "dana" in answer.text
    assert_plain(answer.text)
    assert_plain(bot.say("run", "node-dropped", "gpu-067").text)
    assert place.effects() == []
    bot.lines("drain", "gpu-068", "x")
    bot.until("Finished", "status", "run-3")
    assert "Traceback" not in bot.log
    assert bot.started() == [] if bot.starts.exists() else True
    assert bot.stop() == 0


@pytest.mark.parametrize("text", [ESCAPES, NOT_UTF8, "a<!channel>&`id`"])
def test_a_reason_of_our_own_is_data_down_to_the_node(place: Yard, text: str) -> None:
    bot = place.bot()
    bot.start()
    raw = text.encode("utf-8", "surrogateescape")
    answer = bot.say("drain", "gpu-068", raw)
    assert answer.code == 0, answer
    assert_plain(answer.text)
    bot.until("Finished", "status", "run-1")
    assert place.effects() == ["drain gpu-068"]
    assert "\n" not in place.plugs.effects()[0].arguments["reason"]
    listed = bot.say("audit", "run=run-1", "--json")
    assert listed.code == 0
    assert "Traceback" not in bot.log


def test_kernel_lines_that_are_not_utf8_or_that_steer_a_terminal_are_evidence(
    place: Yard,
) -> None:
    with place.server.lock:
        for line in (ESCAPES, NOT_UTF8, "y" * 100_000):
            place.stage.world.plug("log_kernel", {"node": "gpu-003", "line": clean(line)})
        place.stage.world.plug("lose_gpus", {"node": "gpu-003", "present": 7})
    bot = place.bot()
    bot.start()
    answer = bot.say("run", "node-dropped", "gpu-003")
    assert "Traceback" not in bot.log
    assert_plain(answer.text)
    assert "run-1" in answer.text
    assert_plain(bot.say("status", "run-1").text)
