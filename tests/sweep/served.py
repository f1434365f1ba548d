"""A real bot: `nodewarden serve` in a process of its own, on a simulated cluster with a real clock."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from pwd import getpwuid

from actions.simulated.description import describe
from actions.simulated.server import SimulationServer
from actions.simulated.stage import Stage
from actions.simulated.state import Effect
from actions.simulated.wire import Request, Sort
from config.system_clock import SystemClock
from tests.patience import DEADLINE, until
from tests.sweep.scenarios import CLUSTER

ROOT = Path(__file__).parents[2]


class Witnessed:
    """A world behind its socket that tells of every request."""

    def __init__(self, folder: Path) -> None:
        self.stage = Stage(describe(CLUSTER), SystemClock())
        self.socket = folder / "world"
        self.server = SimulationServer(self.stage, self.socket, self._watch)
        self.at_write: Callable[[Request, int], None] = lambda request, pid: None
        """Called in the server's thread before each write is carried out."""
        self._seen: list[tuple[str, int]] = []
        self._news = threading.Condition()

    def _watch(self, moment: str, request: Request, pid: int) -> None:
        if moment == "before":
            if request.sort is Sort.WRITE:
                self.at_write(request, pid)
            return
        with self._news:
            self._seen.append((request.verb, pid))
            self._news.notify_all()

    def requests(self, verb: str, pid: int) -> int:
        """How often that process asked for that so far."""
        return self._seen.count((verb, pid))

    def wait_for(self, verb: str, pid: int, more: int) -> None:
        """Until that process has asked so often again: its worker has gone round."""
        with self._news:
            wanted = self.requests(verb, pid) + more
            came = self._news.wait_for(lambda: self.requests(verb, pid) >= wanted, DEADLINE)
        assert came, f"process {pid} did not ask for {verb} {more} times"

    def effects(self) -> tuple[Effect, ...]:
        """What was changed from outside."""
        with self.server.lock:
            return tuple(self.stage.world.state.effects)

    def wait_for_effects(self, count: int) -> None:
        """Until the world was changed so often."""
        with self._news:
            came = self._news.wait_for(lambda: len(self.effects()) >= count, DEADLINE)
        assert came, f"only {len(self.effects())} effects"


class _Log:
    """What a bot says on standard error, read by a thread of its own."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.lines: list[str] = []
        self.ready = threading.Event()
        self.is_ready = False
        self._process = process
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self.lines.append(line)
            if "nodewarden is ready" in line:
                self.is_ready = True
                self.ready.set()
        self.ready.set()

    def end(self) -> None:
        """After the process: close what was opened for it."""
        self._thread.join()
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()


class Served:
    """One bot: its data folder, its configuration, its process."""

    def __init__(self, folder: Path, world: Path) -> None:
        self.data = folder / "data"
        self.config = folder / "nodewarden.yaml"
        self.config.write_text(_configuration(self.data, world), "utf-8")
        self.process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Start it and wait until it is ready."""
        self.process = self._program("serve", "--verbose", "--config", str(self.config))
        self._log = _Log(self.process)
        assert self._log.ready.wait(DEADLINE)
        assert self._log.is_ready, f"the bot did not start: {''.join(self._log.lines)}"

    @property
    def pid(self) -> int:
        """Of the bot's process."""
        assert self.process is not None
        return self.process.pid

    def signal(self, number: signal.Signals) -> None:
        """To the bot."""
        os.kill(self.pid, number)

    def stop(self) -> None:
        """End it in order, or by force where it does not."""
        process, self.process = self.process, None
        if process is None:
            return
        if process.poll() is None:
            process.send_signal(signal.SIGCONT)
            process.terminate()
            try:
                process.wait(DEADLINE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._log.end()

    def say(self, *words: str) -> str:
        """A command at this bot; everything that it printed."""
        asked = self.begin(*words)
        out, errors = asked.communicate(timeout=DEADLINE)
        return out + errors

    def begin(self, *words: str) -> "subprocess.Popen[str]":
        """The same, without waiting for its answer."""
        verb, *rest = words
        return self._program(verb, "--socket", str(self.data / "nodewarden.sock"), *rest)

    def say_to_file(self, verb: str) -> str:
        """A command that goes by the configuration and not by the socket."""
        out, errors = self._program(verb, "--config", str(self.config)).communicate(
            timeout=DEADLINE
        )
        return out + errors

    def until(self, text: str, *words: str) -> str:
        """Ask again until the answer holds `text`."""
        answers = [""]

        def came() -> bool:
            answers.append(self.say(*words))
            return text in answers[-1]

        until(came, lambda: f"{text!r} never came; the last answer was {answers[-1]}")
        return answers[-1]

    def _program(self, *words: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [sys.executable, "-m", "bot.cli", *words],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


def _configuration(data: Path, world: Path) -> str:
    user = getpwuid(os.getuid()).pw_name
    settings = {
        "bot": {"data_folder": str(data)},
        "clusters": {
            "sim": {
                "kind": "simulated",
                "simulated_socket": str(world),
                "pools": {"all": {"nodes": "gpu-[1-6]", "max_out": 6}},
                "protected": "login-1",
            }
        },
        "people": {"shell": {"os_users": [user], "roles": ["admin"], "shared": True}},
        "pages": [{"kind": "webhook", "url": "http://127.0.0.1:9/"}],
    }
    return json.dumps(settings)


@contextmanager
def cluster() -> Iterator[tuple[Witnessed, Callable[[str], Served]]]:
    """A world, and bots on it that end with it."""
    bots: list[Served] = []
    with tempfile.TemporaryDirectory(prefix="nw-halt-") as name:
        folder = Path(name)
        world = Witnessed(folder)

        def bot(called: str) -> Served:
            place = folder / called
            place.mkdir()
            served = Served(place, world.socket)
            bots.append(served)
            return served

        with world.server:
            try:
                yield world, bot
            finally:
                for served in bots:
                    served.stop()
