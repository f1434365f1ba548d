"""The world that outlives the bots, and the bots that are forked to live in it.

The world is served by a thread of the test process. A state is the world and the bot's folder as a
kill leaves them; it can be kept, compared and put back, so that each place is reached only once.
"""

import gc
import os
import pickle
import shutil
import signal
import tempfile
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from actions.cluster import Snapshot
from actions.simulated.description import describe
from actions.simulated.plugs import Plugs
from actions.simulated.server import SimulationServer
from actions.simulated.stage import Stage
from actions.simulated.state import Effect
from actions.simulated.wire import Request
from actions.simulated.wire import Sort as RequestSort
from actions.simulated.world import World
from actions.simulated.writes import Fault, FaultKind
from audit_log.database import open_reader
from audit_log.errors import StoreRefused
from config.ids import RunId
from runbooks.lint import Library
from tests.sweep.mortal import Fate, Moment, Point, Sort, dies_at, stops_at
from tests.sweep.night import WRONG_BY, Ground, Night, load_shipped, pinned
from tests.sweep.scenarios import Scenario

SETTLE = timedelta(minutes=10)
"""After the end of a run: then a state that lasts a moment has passed."""
LIMIT = timedelta(seconds=5)
_FAULTS = {
    Moment.SOON: Fault(kind=FaultKind.APPLIED_LATER, delay=timedelta(seconds=1)),
    Moment.LATE: Fault(kind=FaultKind.APPLIED_LATER, delay=timedelta(seconds=3)),
    Moment.NEVER: Fault(kind=FaultKind.LOST),
}
_LEFT_OUT = "nodewarden.db.ballast"
"""16 MiB of nothing; linked into every folder instead of copied."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """World and folder at one moment."""

    world: bytes
    files: Mapping[str, bytes]
    key: object
    """Equal for states that nothing could tell apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """How a bot's process ended."""

    told: Mapping[str, Any] | None
    """What it reported; None when it was killed before."""
    labels: tuple[tuple[Sort, str], ...] = ()
    failure: str = ""


Play = Callable[[Night], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stops:
    """Where a bot pauses, and what is done meanwhile."""

    wanted: Callable[[Point], bool]
    meanwhile: Callable[[], None]


class Theatre:
    """One world, one folder, one bot at a time."""

    def __init__(self, room: Path, library: Library) -> None:
        """`room` lies on a file system in memory where there is one."""
        self._room = room
        self._library = library
        self._known = pinned(library)
        self._doomed: Point | None = None
        self._writes = 0
        self.stage = Stage(World(describe({"nodes": [{"names": "n1"}]}).state))
        self.server = SimulationServer(self.stage, room / "world", self._watch)
        self.plugs = Plugs(path=self.server.path)
        self.folder = room / "bot"
        self._ballast = room / _LEFT_OUT

    # -- states -------------------------------------------------------------------------------

    def keep(self) -> Kept:
        """The present state."""
        with self.server.lock:
            world = pickle.dumps(self.stage.world)
            seen = canonical(self.stage.world)
        files = {
            str(path.relative_to(self.folder)): path.read_bytes()
            for path in sorted(self.folder.rglob("*"))
            if path.is_file() and path.name != _LEFT_OUT
        }
        return Kept(world=world, files=files, key=(seen, self._head(), "halt" in files))

    def put(self, kept: Kept) -> None:
        """Go back to a state."""
        with self.server.lock:
            self.stage.world = pickle.loads(kept.world)
        self._empty_folder()
        for name, content in kept.files.items():
            path = self.folder / name
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.write_bytes(content)

    def begin(self, scenario: Scenario) -> Kept:
        """The state in which the scenario's run is asked for."""
        with self.server.lock:
            self.stage.world = describe(scenario.cluster)
        self._empty_folder()
        for number, asked in enumerate(scenario.earlier):

            def carry_out(night: Night, number: int = number, asked: Any = asked) -> RunId:
                return night.live(night.ask(asked, f"earlier-{number}")).id

            self.must_live(scenario, carry_out)
        if not scenario.earlier:
            self.must_live(scenario, lambda _night: None)
        for plug in scenario.plugs:
            self.pull(plug)
        return self.keep()

    def pull(self, plug: Mapping[str, object]) -> None:
        """Pull one plug, or let time pass."""
        arguments = dict(plug)
        seconds = arguments.pop("seconds", None)
        if isinstance(seconds, int):
            self.plugs.forward(timedelta(seconds=seconds))
        else:
            self.plugs.pull(str(arguments.pop("plug")), **arguments)

    def wrong_by(self, seconds: int) -> None:
        """Set the bot's wall clock."""
        (self._room / WRONG_BY).write_text(str(seconds), "utf-8")

    def _empty_folder(self) -> None:
        (self._room / WRONG_BY).unlink(missing_ok=True)
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(mode=0o700)
        if self._ballast.exists():
            os.link(self._ballast, self.folder / _LEFT_OUT)

    def _head(self) -> object:
        try:
            reader = open_reader(self.folder / "nodewarden.db")
        except StoreRefused:
            return None
        try:
            sql = "SELECT seq, digest FROM ledger ORDER BY seq DESC LIMIT 1"
            return tuple(reader.execute(sql))
        finally:
            reader.close()

    # -- bots ---------------------------------------------------------------------------------

    def live(
        self,
        scenario: Scenario,
        play: Play,
        doom: Point | None = None,
        stops: Stops | None = None,
    ) -> Life:
        """Fork a bot that plays `play`; it dies at `doom`, or pauses at each of its `stops`."""
        ground = Ground(
            folder=self.folder,
            socket=self.server.path,
            library=self._library,
            known=self._known,
            policy=scenario.policy,
            nodes=frozenset(self.stage.world.state.nodes),
            site=scenario.site,
        )
        self._doomed, self._writes = doom, 0
        at = dies_at(doom) if stops is None else stops_at(stops.wanted)
        reads, writes = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(reads)
            _be_bot(ground, play, Fate(at=at), writes)
        os.close(writes)
        with os.fdopen(reads, "rb") as pipe:
            status = _follow(pid, stops)
            report = pipe.read()
        self._doomed = None
        self._keep_ballast()
        if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
            return Life(told=None)
        life: Life = pickle.loads(report)
        return life

    def must_live(self, scenario: Scenario, play: Play, stops: Stops | None = None) -> Life:
        """A bot that comes to its end."""
        life = self.live(scenario, play, stops=stops)
        if life.told is None or life.failure:
            raise AssertionError(life.failure or "the bot died of itself")
        return life

    def _keep_ballast(self) -> None:
        there = self.folder / _LEFT_OUT
        if there.exists() and not self._ballast.exists():
            os.link(there, self._ballast)

    def _watch(self, moment: str, request: Request, pid: int) -> None:
        """In the server's thread: a write that its bot shall not live to see answered."""
        doomed = self._doomed
        if moment != "before" or request.sort is not RequestSort.WRITE:
            return
        number, self._writes = self._writes, self._writes + 1
        if doomed is None or doomed.sort is not Sort.WRITE or doomed.number != number:
            return
        if doomed.moment.within:
            os.kill(pid, signal.SIGKILL)
            if doomed.moment in _FAULTS:
                self.stage.world.faults.append(_FAULTS[doomed.moment])

    # -- the world ----------------------------------------------------------------------------

    def effects(self) -> tuple[Effect, ...]:
        """What was changed from outside by the bots."""
        with self.server.lock:
            return tuple(self.stage.world.state.effects)

    def snapshot(self) -> Snapshot:
        """The cluster now."""
        with self.server.lock:
            return self.stage.world.snapshot(LIMIT)

    def settle(self) -> None:
        """Let time pass until nothing moves by itself."""
        with self.server.lock:
            self.stage.forward(SETTLE)


def _follow(pid: int, stops: Stops | None) -> int:
    """Wait for the end of a bot, and do at each pause what is to be done."""
    while True:
        _, status = os.waitpid(pid, os.WUNTRACED)
        if not os.WIFSTOPPED(status):
            return status
        if stops is not None:
            stops.meanwhile()
        os.kill(pid, signal.SIGCONT)


def _be_bot(ground: Ground, play: Play, fate: Fate, report: int) -> None:
    """The forked process: never returns."""
    code = 1
    gc.disable()  # it lives a moment, and a collection would copy every page of the warm process
    try:
        life = _live(ground, play, fate)
        with os.fdopen(report, "wb") as pipe:
            pickle.dump(life, pipe)
        code = 0
    finally:
        os._exit(code)


def _live(ground: Ground, play: Play, fate: Fate) -> Life:
    try:
        night = Night(ground, fate)
        played = play(night)
        told = {**night.told(), "played": played}
        night.ledger.close()
    except Exception:  # noqa: BLE001  a failure is what the report is for
        return Life(told=None, failure=traceback.format_exc(), labels=tuple(fate.labels))
    return Life(told=told, labels=tuple(fate.labels))


def canonical(value: object) -> object:
    """A value without what differs between equal worlds: process ids, order inside sets."""
    if isinstance(value, Effect):
        return ("effect", value.at, value.verb, tuple(sorted(value.arguments.items())))
    if is_dataclass(value) and not isinstance(value, type):
        return (
            type(value).__name__,
            *(canonical(getattr(value, field.name)) for field in fields(value)),
        )
    if isinstance(value, Mapping):
        return tuple(sorted((repr(key), canonical(entry)) for key, entry in value.items()))
    if isinstance(value, frozenset | set):
        return ("set", *sorted(repr(entry) for entry in value))
    if isinstance(value, list | tuple):
        return tuple(canonical(entry) for entry in value)
    return repr(value)


@contextmanager
def theatre() -> Iterator[Theatre]:
    """A theatre that is open."""
    memory = Path("/dev/shm")
    where = memory if os.access(memory, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="nw-sweep-", dir=where) as room:
        opened = Theatre(Path(room), load_shipped())
        gc.collect()
        gc.freeze()
        with opened.server:
            yield opened
