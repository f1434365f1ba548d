"""Clocks and slurmctld, in one process, so that an hour takes no time: nothing expires by a step."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from actions.catalogue import Ground
from actions.shell import Runner
from actions.simulated.plugs import Plugs
from actions.simulated.scenes import demo
from actions.simulated.server import SimulationServer
from actions.simulated.stage import Stage
from audit_log.errors import StoreBusy
from audit_log.ledger import Urgency
from audit_log.records import EventKind
from bot.desk import Request
from bot.phrases import parse
from bot.replies import Reply
from bot.wiring import Bot, open_bot
from config.actors import Door, Identity
from config.clock import Instant
from config.load import load
from config.redaction import Redactor
from config.secret_store import SecretStore
from config.system_clock import SystemClock
from tests.bot.slack.conftest import NoPager
from tests.faults.answers import told
from tests.patience import until

CONFIG = """\
bot: {{data_folder: {folder}/data}}
clusters:
  sim:
    kind: simulated
    simulated_socket: {folder}/sim
    pools: {{all: {{nodes: "gpu-[001-080]", max_out: 40}}}}
    protected: sim-ctl
people:
  ann: {{os_users: [ann], roles: [oncall]}}
  bob: {{os_users: [bob], roles: [oncall]}}
policy:
  autonomy: {{default: propose, rules: []}}
pages:
  - {{kind: webhook, url: "http://127.0.0.1:9/"}}
"""
HOUR = timedelta(hours=1)


class Clocks:
    """The machine's clock, moved by hand: time that passes, and the wall being set."""

    def __init__(self) -> None:
        self._clock = SystemClock()
        self._passed = self._set = timedelta(0)

    def now(self) -> Instant:
        real = self._clock.now()
        wall = real.wall + self._passed + self._set
        return Instant(wall=wall, monotonic=real.monotonic + self._passed)

    def true_now(self) -> Instant:
        """As the cluster has it: nobody sets that one."""
        real = self._clock.now()
        return Instant(wall=real.wall + self._passed, monotonic=real.monotonic + self._passed)

    def passes(self, time: timedelta) -> None:
        self._passed += time

    def is_set(self, by: timedelta) -> None:
        self._set += by


class _True:
    def __init__(self, clocks: Clocks) -> None:
        self.now = clocks.true_now


class Room:
    """One bot in this process, and what it can be asked."""

    def __init__(self, folder: Path, clocks: Clocks) -> None:
        self.clocks = clocks
        self.plugs = Plugs(path=folder / "sim")
        config = folder / "nodewarden.yaml"
        config.write_text(CONFIG.format(folder=folder))
        redactor = Redactor()
        ground = Ground(
            clock=clocks,
            redactor=redactor,
            runner=Runner(redactor.text),
            secrets=SecretStore({}),
            pause=lambda _: None,
            os_user="nobody",
        )
        self.bot: Bot = open_bot(load([config]), ground, NoPager())
        self.bot.start()

    def say(self, who: str, text: str) -> Reply:
        actor = self.bot.identities.at_door(Identity(door="os", subject=who))
        request = Request(actor=actor, door=Door.CLI, command=parse(text))
        return self.bot.desk.submit(request)

    def until(self, state: str, run: str = "run-1") -> None:
        """Until the run is in that state; time passes only by hand."""
        self.wait(lambda: self.state(run) == state, f"it is never {state}")

    def wait(self, fact: Callable[[], object], what: str) -> None:
        def looked() -> object:
            self.bot.worker.wake()
            return fact()

        until(looked, lambda: f"{what}: {self.say('ann', 'status run-1').lines}")

    def state(self, run: str) -> str:
        rows = self.bot.parts.ledger.query("SELECT state FROM runs WHERE id = ?", (run,))
        return str(rows[0][0])

    def jumps(self) -> int:
        kinds = [record.event.kind for record in self.bot.parts.ledger.records()]
        return kinds.count(EventKind.CLOCK_JUMPED)

    def drained(self) -> list[str]:
        return [str(effect.arguments["node"]) for effect in self.plugs.effects()]


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    clocks = Clocks()
    stage = Stage(demo(clocks.now().wall), _True(clocks))
    with SimulationServer(stage, tmp_path / "sim"):
        opened = Room(tmp_path, clocks)
        yield opened
        opened.bot.close()


@pytest.mark.parametrize("step", [HOUR, -HOUR])
def test_a_plan_that_waits_for_a_yes_survives_a_step_of_the_clock(
    room: Room, step: timedelta
) -> None:
    assert room.say("ann", "drain gpu-[067-068] cables").run == "run-1"
    room.until("awaiting_approval")
    room.clocks.is_set(step)
    room.wait(lambda: room.jumps() == 1, "the step is not recorded")
    assert room.state("run-1") == "awaiting_approval", "nothing expires by a step alone"
    assert room.say("bob", "approve run-1").run == "run-1"
    room.until("succeeded")
    assert room.drained() == ["gpu-067", "gpu-068"]
    room.clocks.is_set(-step)
    room.wait(lambda: room.jumps() == 2, "the step back is not recorded")
    assert room.say("ann", "drain gpu-066 more").run == "run-2"
    room.until("awaiting_approval", "run-2")


@pytest.mark.parametrize("step", [HOUR, -HOUR])
def test_an_approval_that_time_itself_has_ended_is_refused_after_a_step_too(
    room: Room, step: timedelta
) -> None:
    room.say("ann", "drain gpu-068 cables")
    room.until("awaiting_approval")
    room.clocks.is_set(step)
    room.wait(lambda: room.jumps() == 1, "the step is not recorded")
    room.clocks.passes(timedelta(days=2))
    room.until("expired")
    told("an approval that has expired", "\n".join(room.say("bob", "approve run-1").lines))
    assert room.drained() == []


def test_a_minute_without_slurmctld_is_waited_out(room: Room) -> None:
    room.say("ann", "drain gpu-[067-068] cables")
    room.until("awaiting_approval")
    room.plugs.pull("controller_down", killed=False)
    room.say("bob", "approve run-1")
    room.clocks.passes(timedelta(minutes=1))
    room.wait(lambda: "does not answer" in room.say("ann", "status").lines[0], "it is not said")
    assert room.state("run-1") in {"awaiting_approval", "running", "waiting"}
    room.plugs.pull("controller_up")
    for _ in range(4):
        room.clocks.passes(timedelta(minutes=1))
        room.bot.worker.wake()
    room.until("succeeded")
    assert room.drained() == ["gpu-067", "gpu-068"]


def test_a_ledger_that_is_busy_for_a_moment_sends_no_run_to_a_person(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody holds the database for a second, for example with a shell of SQLite."""
    ledger = room.bot.parts.ledger
    real, failures = ledger.commit, [StoreBusy("another program holds the ledger")]

    def commit(decide: Callable[..., object], urgency: Urgency = Urgency.REST) -> object:
        if urgency is Urgency.INTENT and failures:
            raise failures.pop()
        return real(decide, urgency)

    monkeypatch.setattr(ledger, "commit", commit)
    room.say("ann", "drain gpu-068 cables")
    room.until("awaiting_approval")
    room.say("bob", "approve run-1")
    room.wait(lambda: not failures, "no intent was tried")
    room.clocks.passes(timedelta(seconds=10))
    room.until("succeeded")
    assert room.drained() == ["gpu-068"]
