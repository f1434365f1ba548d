"""Slurm by way of its command-line tools: the `ClusterHands` that most sites use.

Constructed by `actions.catalogue`, called from worker threads of the engine. Reads through
`tools.Tools`, the whole cluster through a child process, and sends what `changes.Changes` makes of a
write. It must never write to another cluster than its own, and never say "failed" of a write that
may have happened.
"""

import os
import re
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from datetime import timedelta

from actions.cluster import Controller, Job, Node, Partition, Reservation, Snapshot
from actions.contract import Refusal, Rejected, UnknownJob, Unreadable, WriteUnknown
from actions.shell import Command, CommandFinished, packages
from actions.slurm.budget import RATE, QuestionBudget
from actions.slurm.changes import Changes, one_job, one_node
from actions.slurm.control import Control
from actions.slurm.nodes import UNREADABLE
from actions.slurm.sight import explained
from actions.slurm.snapshot_child import AUTO, CLI, request
from actions.slurm.snapshot_lines import received_snapshot
from actions.slurm.tools import Runs, SlurmSettings, Tools, words_of_controller
from config.clock import Clock, Instant, microseconds
from config.ids import ClusterName, JobId
from config.node_names import NodeName

SNAPSHOT_AGE = timedelta(seconds=15)
"""At most one whole snapshot in this time, shared by all readers (hands 1)."""
SNAPSHOT_QUESTIONS = 6
SNAPSHOT_CAP = 1 << 28
_LOST_ON_THE_WAY = re.compile(
    r"timed out|timeout|zero bytes|communication|unexpected message|connection reset|broken pipe"
    r"|shutdown|header|recv",
    re.IGNORECASE,
)
_VERSION = re.compile(r"(\d+)\.(\d+)", re.ASCII)
_LIMITED = re.compile(r"rate limit|too many requests|try again later", re.IGNORECASE)


class SlurmCli(Changes):
    """`actions.hands.ClusterHands`, `NodeChanges` and `JobHands` over scontrol and squeue."""

    def __init__(
        self,
        settings: SlurmSettings,
        runner: Runs,
        clock: Clock,
        pause: Callable[[timedelta], None],
    ) -> None:
        """`pause` waits in the calling worker thread while the budget of questions is used up."""
        self._settings = settings
        self._runner = runner
        self._clock = clock
        self._pause = pause
        self._budget = QuestionBudget(clock)
        self._lock = threading.Lock()
        self._latest: Snapshot | None = None
        self._latest_at = timedelta()
        self._flight: Future[Snapshot] | None = None
        self._without_json: tuple[str, ...] = ()
        self._control = Control()
        self._written_to: dict[str, Controller] = {}
        self._overload = ""
        self._why_not_pyslurm = ""
        self._pyslurm_ends_its_child = False

    @property
    def name(self) -> ClusterName:
        """The cluster."""
        return self._settings.cluster

    def faults(self) -> tuple[str, ...]:
        """Why this bot should not act on this cluster, to be asked at start; empty when it may.

        Raises Unreadable when the controller gives no answer or is of another cluster.
        """
        tools = self._tools(1)
        return self._faults(tools, tools.controller().controller)

    def _faults(self, tools: Tools, controller: Controller) -> tuple[str, ...]:
        faults = []
        if _release(tools.client_version()) > _release(controller.version):
            faults.append(
                f"the Slurm tools are {tools.client_version()}, newer than the controller's "
                f"{controller.version}: point `slurm_binaries` to tools of the controller's release"
            )
        if self._settings.own_user in {"root", controller.slurm_user}:
            faults.append(
                f"the bot runs as {self._settings.own_user}: give it an own user with "
                "AdminLevel=Admin, so that the cluster's records tell who acted"
            )
        return tuple(faults)

    def remarks(self) -> tuple[str, ...]:
        """For `doctor`: why it is asked less, and why not by pyslurm although `auto` is configured."""
        said = []
        if self._budget.rate < RATE:
            why = self._overload or "slow answers or a rate limit"
            said.append(f"slurmctld is asked at most {self._budget.rate:g} times a second: {why}")
        if self._why_not_pyslurm:
            said.append(f"snapshots go by Slurm's tools, not by pyslurm: {self._why_not_pyslurm}")
        return tuple(said)

    def snapshot(self) -> Snapshot:
        """The whole cluster, at most 15 s old; concurrent readers share one fetch."""
        with self._lock:
            now = self._clock.now()
            if self._latest is not None and now.monotonic - self._latest_at < SNAPSHOT_AGE:
                return self._latest
            flight, leads = self._flight, self._flight is None
            if flight is None:
                flight = self._flight = Future()
        if not leads:
            return flight.result()
        try:
            snapshot = self._fetch(now)
        except BaseException as error:
            self._land(None, now)
            flight.set_exception(error)
            raise
        self._land(snapshot, now)
        flight.set_result(snapshot)
        return snapshot

    def fresh_node(self, node: NodeName) -> Node:
        """This node now. Raises UnknownNode; Unreadable if slurmctld started anew since our write to it."""
        name = one_node(node)
        found = self._node(self._tools(1), name)
        self._same_since_write(name)
        return found

    def fresh_jobs(self, node: NodeName) -> tuple[Job, ...]:
        """Jobs on this node now; Refusal when the controller says busy and shows no job."""
        seen, jobs, private_data = self._look(node)
        if seen is not None:  # a job may have started or ended between the two questions
            seen, jobs, private_data = self._look(node)
        if seen is not None:
            raise Refusal(
                f"{node} is {seen.state}, but no job on it is visible: the job list is not believed "
                "(rights of the bot's Slurm user, PrivateData)"
            )
        if "jobs" in private_data and not self._sees_others(jobs):
            raise Refusal(
                "PrivateData=jobs is set and no other user's job is visible: give the bot's Slurm "
                "user AdminLevel=Operator"
            )
        return tuple(job for job in jobs if job.holds_nodes and node in job.nodes)

    def _look(self, node: NodeName) -> tuple[Node | None, tuple[Job, ...], frozenset[str]]:
        """The node if no visible job explains its state, its jobs, and what is private."""
        at = self._clock.now().wall
        tools = self._tools(4)
        private_data = tools.controller().private_data
        seen = self._node(tools, one_node(node))
        jobs = tools.jobs_on(node)
        hidden = seen.busy and node not in explained(jobs, at)
        return seen if hidden else None, jobs, private_data

    def fresh_job(self, job: JobId) -> Job:
        """This one job now. Raises UnknownJob; Refusal where it may be hidden from us."""
        name, tools = one_job(job), self._tools(3)
        try:
            found = tools.job(name)
        except UnknownJob:
            if "jobs" in tools.controller().private_data and not self._sees_others(()):
                raise Refusal(
                    f"job {job} is not shown, and with PrivateData=jobs that proves nothing: give the "
                    "bot's Slurm user AdminLevel=Operator"
                ) from None
            raise
        self._learn(tuple(tools.without_json))
        return found

    def fresh_reservations(self) -> tuple[Reservation, ...]:
        """All reservations now."""
        tools = self._tools(1)
        found = tools.reservations(self._clock.now().wall)
        self._learn(tuple(tools.without_json))
        return found

    def fresh_partition(self, name: str) -> Partition:
        """This partition now. Raises Refusal where there is none of that name."""
        tools = self._tools(1)
        found = next((one for one in tools.partitions() if one.name == name), None)
        self._learn(tuple(tools.without_json))
        if found is None:
            raise Refusal(f"the controller of {self.name} knows no partition {name[:60]!r}")
        return found

    def _send(self, what: str, words: Sequence[str], writes: int = 1) -> None:
        """One write to our own cluster. Raises Refusal while a fault stands."""
        tools = self._tools(1)
        # Again at each write: the controller may have been silent, or an older one, at the start.
        controller = tools.controller().controller
        faults = self._faults(tools, controller)
        if faults:
            raise Refusal("; ".join(faults))
        seen = self._same_start(controller)
        self._budget.take(writes)
        done = self._runner.run(
            Command(
                argv=("scontrol", "--local", *words),
                time_limit=self._settings.write_limit,
                environment=self._settings.environment,
            )
        )
        if not done.ok:
            raise _write_error(what, done)
        with self._lock:
            self._written_to[what] = seen

    def _same_since_write(self, what: str) -> None:
        """The first look after a write was told by the slurmctld that took it (hands 1)."""
        with self._lock:
            then = self._written_to.pop(what, None)
        if then is None:
            return
        controller = self._tools(1).controller().controller
        if self._control.seen(controller, self._clock.now().wall).booted_at != then.booted_at:
            raise Unreadable(
                f"slurmctld of {self.name} has started or taken over right after our write to {what}, "
                "and may have forgotten it"
            )

    def _same_start(self, controller: Controller) -> Controller:
        """What was looked at before this write was told by this slurmctld, since its last start."""
        seen = self._control.seen(controller, self._clock.now().wall)
        with self._lock:
            looked_at = self._latest
            if looked_at is None or looked_at.controller.booted_at == seen.booted_at:
                return seen
            self._latest = None
        raise Unreadable(
            f"slurmctld of {self.name} has just started or taken over: it is asked again before "
            "anything is written"
        )

    def _tools(self, questions: int) -> Tools:
        """The tools, once the budget allows so many questions."""
        wait = self._budget.take(questions)
        if wait:
            self._pause(wait)
        return Tools(
            self._settings, _Timed(self._runner, self._clock, self._budget), self._without_json
        )

    def _node(self, tools: Tools, name: NodeName) -> Node:
        node = tools.node(name)
        self._learn(tuple(tools.without_json))
        if UNREADABLE in node.flags:
            raise Unreadable(f"{name}: {node.reason}")
        return node

    def _learn(self, without_json: tuple[str, ...]) -> None:
        with self._lock:
            self._without_json = tuple(sorted({*self._without_json, *without_json}))

    def _sees_others(self, jobs: tuple[Job, ...]) -> bool:
        own = self._settings.own_user
        return any(job.user != own for job in jobs) or any(
            job.user != own for job in self.snapshot().jobs
        )

    def _land(self, snapshot: Snapshot | None, at: Instant) -> None:
        with self._lock:
            self._flight = None
            if snapshot is not None:
                self._latest, self._latest_at = snapshot, at.monotonic

    def _fetch(self, at: Instant) -> Snapshot:
        """By the configured back end; where `auto` kills or stops its child, by the tools from then on."""
        backend = self._settings.backend
        if backend != AUTO:
            return self._snapshot_by(backend, at)
        if not self._pyslurm_ends_its_child:
            try:
                return self._snapshot_by(AUTO, at)
            except _NoChild as problem:
                self._pyslurm_ends_its_child = True
                self._why_not_pyslurm = f"it ends or stops the program that imports it ({problem})"
        return self._snapshot_by(CLI, at)

    def _snapshot_by(self, backend: str, at: Instant) -> Snapshot:
        wait = self._budget.take(SNAPSHOT_QUESTIONS)
        if wait:
            self._pause(wait)
        settings = replace(self._settings, backend=backend)
        done = self._runner.run(
            Command(
                argv=(sys.executable, "-s", "-P", "-m", "actions.slurm.snapshot_child"),
                time_limit=self._settings.read_limit * SNAPSHOT_QUESTIONS,
                environment={"PATH": os.defpath, "PYTHONPATH": packages(), "LC_ALL": "C.UTF-8"},
                stdin=request(settings, self._without_json, microseconds(at.wall)),
                output_cap=SNAPSHOT_CAP,
            )
        )
        if not done.ok or done.truncated:
            raise _NoChild(f"no snapshot: {done.lost or words_of_controller(done)}")
        received = received_snapshot(done.stdout, self._settings.cluster, at.wall)
        self._learn(received.without_json)
        if backend == AUTO:
            self._why_not_pyslurm = received.why_not_pyslurm
        self._budget.take(received.asked - SNAPSHOT_QUESTIONS)
        took = (self._clock.now().monotonic - at.monotonic) / received.asked
        self._overload = received.overload
        self._budget.answered(took=took, limited=bool(received.overload))
        snapshot = received.snapshot
        controller = self._control.seen(snapshot.controller, self._clock.now().wall)
        return replace(snapshot, controller=controller)


class _NoChild(Unreadable):
    """The snapshot child did not end by itself with a whole answer."""


class _Timed:
    """A runner that tells the budget how long each answer took and whether it was a limit's."""

    def __init__(self, runner: Runs, clock: Clock, budget: QuestionBudget) -> None:
        self._runner = runner
        self._clock = clock
        self._budget = budget

    def run(self, command: Command) -> CommandFinished:
        """Run to the end or the time limit."""
        began = self._clock.now().monotonic
        done = self._runner.run(command)
        self._budget.answered(
            took=self._clock.now().monotonic - began, limited=bool(_LIMITED.search(done.stderr))
        )
        return done


def _release(version: str) -> tuple[int, ...]:
    """Year and month of a release: `22.05.8` and `slurm-wlm 22.05.8` are (22, 5)."""
    found = _VERSION.search(version)
    if found is None:
        raise Unreadable(f"{version[:40]!r} names no Slurm release")
    return int(found[1]), int(found[2])


def _write_error(what: str, done: CommandFinished) -> Exception:
    """What a failed write means: unknown when the answer, not the request, may have been lost."""
    words = words_of_controller(done)
    if not done.started:
        return Rejected(f"nothing was sent: {done.lost}")
    if done.exit_code is None or _LOST_ON_THE_WAY.search(words):
        return WriteUnknown(f"the update of {what} may have happened: {done.lost or words}")
    return Rejected(words or f"scontrol ended with code {done.exit_code} and no word")
