"""The bot as it is served, before a simulated cluster, a pager that listens, and (if asked) Slack."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from actions.simulated.plugs import Plugs
from actions.simulated.scenes import demo
from actions.simulated.server import SimulationServer
from actions.simulated.stage import Stage
from actions.simulated.wire import Request
from bot.cli import main
from bot.local_client import talk
from bot.local_wire import Ask
from config.system_clock import SystemClock
from tests.patience import DEADLINE, until

ROOT = Path(__file__).parents[2]
Word = str | bytes


@dataclass(frozen=True, slots=True)
class Answer:
    """What one command printed, and how it ended."""

    code: int
    out: str
    errors: str

    @property
    def text(self) -> str:
        """Both."""
        return self.out + self.errors


class Pager(ThreadingHTTPServer):
    """Takes pages and keeps what came."""

    daemon_threads = True

    def __init__(self) -> None:
        self.came: list[str] = []
        self.news = threading.Condition()
        pager = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                with pager.news:
                    pager.came.append(body)
                    pager.news.notify_all()
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Quiet."""

        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/"

    def wait_for(self, text: str) -> str:
        """The first page that holds this."""
        with self.news:

            def found() -> list[str]:
                return [page for page in self.came if text in page]

            assert self.news.wait_for(found, DEADLINE), f"no page with {text!r}: {self.came}"
            return found()[0]


class Yard:
    """One folder with a simulated cluster, a pager, and the bots before them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.stage = Stage(demo(SystemClock().now().wall), SystemClock())
        self.news = threading.Condition()
        self.asked: list[tuple[str, int]] = []
        self.at_request: Callable[[Request, int], None] = lambda request, pid: None
        """Called in the cluster's thread before each request of a bot."""
        self.server = SimulationServer(self.stage, folder / "sim", self._watch)
        self.plugs = Plugs(path=folder / "sim")
        self.pager = Pager()
        self.bots: list[Served] = []

    def _watch(self, moment: str, request: Request, pid: int) -> None:
        if pid == os.getpid():
            return
        if moment == "after":
            return
        self.at_request(request, pid)
        with self.news:
            self.asked.append((request.verb, pid))
            self.news.notify_all()

    def rounds(self, bot: "Served", more: int = 2) -> None:
        """Until this bot's worker has gone round so often again."""

        def count() -> int:
            return self.asked.count(("snapshot", bot.pid))

        with self.news:
            wanted = count() + more
            assert self.news.wait_for(lambda: count() >= wanted, DEADLINE), "it goes round no more"

    def effects(self) -> list[str]:
        """What was changed in the cluster from outside, in words."""
        return [f"{effect.verb} {effect.arguments['node']}" for effect in self.plugs.effects()]

    def bot(self, name: str = "bot", **given: Any) -> "Served":
        """Another bot; `start` starts it."""
        place = self.folder / name
        place.mkdir(exist_ok=True)
        served = Served(self, place, **given)
        self.bots.append(served)
        return served

    @property
    def folders(self) -> Mapping[str, str]:
        """What is not told twice alike."""
        return {str(self.folder): "<folder>"}


@dataclass
class Served:
    """One bot: its data, its configuration, its process."""

    yard: Yard
    folder: Path
    data: Path | None = None
    slack: str = ""
    person: str = ""
    channel: str = ""
    page_token: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    program: Path = ROOT
    """Where the packages lie that are run."""

    def __post_init__(self) -> None:
        self.data = self.data or self.folder / "data"
        self.config = self.folder / "nodewarden.yaml"
        self.starts = self.folder / "starts"
        self.process: subprocess.Popen[bytes] | None = None
        token = f", token: {self.page_token}" if self.page_token else ""
        self.config.write_text(
            f"bot: {{data_folder: {self.data}, socket: {self.socket}}}\n{self.slack}"
            "clusters:\n  sim:\n    kind: simulated\n"
            f"    simulated_socket: {self.yard.server.path}\n{self.channel}"
            '    pools: {all: {nodes: "gpu-[001-080]", max_out: 40}}\n'
            "    protected: sim-ctl\n"
            f"people: {{shell: {{{self.person}os_users: ['{os.getuid()}'], roles: [admin], shared: true}}}}\n"
            f"pages:\n  - {{kind: webhook, url: '{self.yard.pager.url}'{token}}}\n"
        )

    @property
    def socket(self) -> Path:
        return self.folder / "nw.sock"

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text("utf-8", "backslashreplace")

    @property
    def refusal(self) -> str:
        """Why it did not start."""
        return "nodewarden does not start:" + self.log.partition("nodewarden does not start:")[2]

    def start(self) -> None:
        """Serve, and wait until it is ready."""
        self.launch()
        self.wait(lambda: "nodewarden is ready" in self.log or not self.lives)
        assert self.lives, f"it did not start: {self.log}"

    def launch(self) -> None:
        """Serve."""
        argv = [sys.executable, "-m", "tests.faults.watched", str(self.starts), "serve"]
        if self.program != ROOT:
            argv = [sys.executable, "-m", "bot.cli", "serve"]
        with (self.folder / "log").open("wb") as log:
            self.process = subprocess.Popen(
                [*argv, "--verbose", "--config", str(self.config)],
                cwd=self.program,
                env={**os.environ, **self.environment},
                stdout=log,
                stderr=log,
            )

    @property
    def lives(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def wait(self, fact: Callable[[], object], what: str = "it") -> None:
        """Until it is so."""
        until(fact, lambda: f"{what} did not come true; the log: {self.log[-3000:]}", look=0.05)

    def stop(self) -> int:
        """As a service manager does it; the exit code."""
        process, self.process = self.process, None
        if process is None:
            return 0
        if process.poll() is None:
            process.send_signal(signal.SIGCONT)
            process.terminate()
        try:
            return process.wait(DEADLINE)
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait()

    def kill(self) -> None:
        """As the kernel does it."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()
        self.process = None

    def say(self, verb: str, *words: Word) -> Answer:
        """A command at the command line."""
        return command(verb, "--socket", str(self.socket), *words)

    def ask(self, *words: str) -> dict[str, Any]:
        """The same through the socket alone, without following; the reply."""
        key = f"ask-{os.urandom(8).hex()}"
        return dict(next(talk(self.socket, Ask(words=words, key=key, follow=False)))["reply"])

    def lines(self, *words: str) -> str:
        """The reply's lines."""
        return "\n".join(self.ask(*words)["lines"])

    def until(self, text: str, *words: str) -> str:
        """Ask again until the answer holds `text`."""
        self.wait(lambda: text in self.lines(*words), f"{text!r} in {words}")
        return self.lines(*words)

    def started(self) -> list[str]:
        """Every process that it started."""
        return self.starts.read_text().splitlines()


def command(*words: Word) -> Answer:
    """`nodewarden …`."""
    argv: Sequence[Word] = [sys.executable, "-m", "bot.cli", *words]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, timeout=DEADLINE, check=False)
    return Answer(done.returncode, _text(done.stdout), _text(done.stderr))


def here(*words: str) -> Answer:
    """The same in this process, where nothing of the machine is asked: it is quicker."""
    done = CliRunner().invoke(main, words)
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return Answer(done.exit_code, done.stdout, done.stderr)


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "backslashreplace")


def json_lines(answer: Answer) -> list[dict[str, Any]]:
    """What `--json` printed."""
    return [json.loads(line) for line in answer.out.splitlines() if line.startswith("{")]


@contextmanager
def yard(folder: Path) -> Iterator[Yard]:
    """A cluster, and bots on it that end with it."""
    opened = Yard(folder)
    with opened.server:
        try:
            yield opened
        finally:
            for bot in opened.bots:
                bot.stop()
            opened.pager.shutdown()
            opened.pager.server_close()
