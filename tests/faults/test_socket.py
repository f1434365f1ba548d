"""The Unix socket: programs that send too much, too little, nonsense, or leave."""

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

from actions.simulated.wire import Request, Sort
from bot.local_door import MOST_OF_ONE
from tests.faults.answers import told
from tests.faults.bots import ROOT, Served, Yard
from tests.patience import DEADLINE


@contextmanager
def connected(bot: Served) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
        line.connect(str(bot.socket))
        line.settimeout(DEADLINE)
        yield line


def answer(line: socket.socket) -> dict[str, Any]:
    with line.makefile("rb") as answers:
        return dict(json.loads(answers.readline())["reply"])


def said(bot: Served, raw: bytes) -> str:
    with connected(bot) as line:
        line.sendall(raw)
        reply = answer(line)
    assert reply["kind"] in {"refused", "misread"}
    return "\n".join(reply["lines"])


NONSENSE = {
    "no JSON": b"status\n",
    "bytes that are not UTF-8": b'{"words": ["\xff\xfe"]}\n',
    "a list": b'["status"]\n',
    "nested without end": b"[" * 60_000 + b"\n",
    "a number without end": b'{"words": ' + b"9" * 50_000 + b"}\n",
    "words that are numbers": b'{"words": [1], "key": "k", "follow": false}\n',
    "no key": b'{"words": ["status"], "follow": false}\n',
    "an empty line": b"\n",
    "nothing that follows": b'{"words": ["status"], "key": "k", "follow": "maybe"}\n',
    "a verb that is none": b'{"words": ["rm", "-rf"], "key": "k", "follow": false}\n',
    "a half of a character": b'{"words": ["status", "\\ud800"], "key": "k", "follow": false}\n',
    "a megabyte": b"x" * 1_000_000 + b"\n",
    "a megabyte of words": json.dumps(
        {"words": ["drain", "gpu-001", "x" * 1_000_000], "key": "k", "follow": False}
    ).encode()
    + b"\n",
}


@pytest.mark.parametrize("what", NONSENSE)
def test_what_is_no_request_is_answered_with_what_is_expected(shared: Served, what: str) -> None:
    told(f"socket: {what}", said(shared, NONSENSE[what]))


def test_half_a_line_and_silence_is_answered_in_the_end(shared: Served) -> None:
    with connected(shared) as line:
        line.sendall(b'{"words": ["drain", "gpu-001"')
        told("socket: half a line and silence", "\n".join(answer(line)["lines"]))
    assert shared.lines("list", "runs", "--all") == "no runs"


def test_half_a_line_and_goodbye_does_nothing(shared: Served) -> None:
    told(
        "socket: half a line and goodbye",
        said_and_shut(shared, b'{"words": ["drain", "gpu-001", "x"], "key": "k", "follow": fal'),
    )
    assert shared.lines("list", "runs", "--all") == "no runs"


def said_and_shut(bot: Served, raw: bytes) -> str:
    with connected(bot) as line:
        line.sendall(raw)
        line.shutdown(socket.SHUT_WR)
        return "\n".join(answer(line)["lines"])


def test_200_connections_of_one_user_keep_nobody_else_out(shared: Served) -> None:
    with ExitStack() as stack:
        lines = [stack.enter_context(connected(shared)) for _ in range(200)]
        turned_away = [answer(line) for line in lines[MOST_OF_ONE:]]
        assert len(turned_away) == 200 - MOST_OF_ONE
        told("socket: one user takes too many places", turned_away[0]["lines"][0])
        spoken = shared.say("drain", "gpu-068", "x")
        assert spoken.code == 1
        assert "commands of your OS user are open" in spoken.errors
        if os.geteuid() == 0:
            told("socket: a stranger while one user holds his places", by_another_user(shared))
    shared.wait(lambda: "no run is open" in shared.lines("status"), "a place")


def by_another_user(bot: Served) -> str:
    """`whoami` of a user whom the configuration does not know."""
    asked = (
        "import os, sys, json, socket; s = socket.socket(socket.AF_UNIX); s.settimeout(300);"
        "os.setgid(65534); os.setuid(65534); s.connect(sys.argv[1]);"
        's.sendall(b\'{"words": ["whoami"], "key": "k", "follow": false}\\n\');'
        'print("\\n".join(json.loads(s.makefile("rb").readline())["reply"]["lines"]))'
    )
    bot.folder.chmod(0o755)
    bot.folder.parent.chmod(0o755)
    argv = [sys.executable, "-c", asked, str(bot.socket)]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout


def test_followers_that_vanish_give_their_places_back(place: Yard) -> None:
    bot = place.bot()
    bot.start()
    released = threading.Event()

    def holds(request: Request, _: int) -> None:
        if request.sort is Sort.WRITE:
            released.wait(DEADLINE)

    place.at_request = holds
    request = {"words": ["drain", "gpu-068", "x"], "key": "k-1", "follow": True}
    for _ in range(MOST_OF_ONE):
        with connected(bot) as line:
            line.sendall(json.dumps(request).encode() + b"\n")
            assert answer(line)["run"] == "run-1", "the same key is the same request"
    bot.wait(lambda: "gpu-068" in bot.lines("list", "runs", "--all"), "a place")
    assert "Finished" not in bot.lines("status", "run-1"), "they left while it was going"
    released.set()
    bot.until("Finished", "status", "run-1")
    assert place.effects() == ["drain gpu-068"]


def test_a_client_that_is_killed_while_it_follows_leaves_the_run_going(place: Yard) -> None:
    bot = place.bot()
    bot.start()
    argv = [sys.executable, "-m", "bot.cli", "drain", "--socket", str(bot.socket)]
    follows = bot.say("drain", "gpu-069", "first")
    assert "Finished" in follows.out, "who follows hears of the end"
    with subprocess.Popen(
        [*argv, "gpu-[066-068]", "cables"], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as follower:
        assert follower.stdout is not None
        assert "run-2 started" in follower.stdout.readline()
        follower.kill()
    bot.until("Finished", "status", "run-2")
    assert place.effects()[1:] == ["drain gpu-066", "drain gpu-067", "drain gpu-068"]


def test_no_bot_at_the_socket_says_how_to_go_on(shared: Served) -> None:
    from tests.faults.bots import command

    away = command("status", "--socket", str(shared.folder / "nothing"))
    assert away.code == 4
    told("socket: no bot", away.errors, shared.yard.folders)
