"""Slurm by way of its command-line tools: the `ClusterHands` that most sites use.

Constructed by `actions.catalogue`, called from worker threads of the engine. Reads through
`tools.Tools`, the whole cluster through a child process, and writes one `scontrol update` for one
node. It must never write to another cluster than its own, and never say "failed" of a write that
may have happened.
"""

import os
import re
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from datetime import timedelta

from actions.cluster import Controller, Job, Node, Snapshot
from actions.contract import Refusal, Rejected, UnknownNode, Unreadable, WriteUnknown
from actions.shell import Command, CommandFinished, packages
from actions.slurm.budget import QuestionBudget
from actions.slurm.nodes import UNREADABLE
from actions.slurm.sight import explained
from actions.slurm.snapshot_child import request
from actions.slurm.snapshot_lines import received_snapshot
from actions.slurm.tools import Runs, SlurmSettings, Tools, words_of_controller
from config.clock import Clock, Instant, microseconds
from config.ids import ClusterName
from config.node_names import NodeName, node_name

SNAPSHOT_AGE = timedelta(seconds=15)
"""At most one whole snapshot in this time, shared by all readers (hands 1)."""
SNAPSHOT_QUESTIONS = 5
SNAPSHOT_CAP = 1 << 28
_LONGEST_REASON = 200
_REASON = re.compile(r"[ -~]+", re.ASCII)
_EVERYTHING = frozenset({"ALL", "LOCALHOST"})
"""Words that scontrol takes for more or other than the node of that name."""
_LOST_ON_THE_WAY = re.compile(
    r"timed out|timeout|zero bytes|communication|unexpected message|connection reset|broken pipe"
    r"|shutdown|header|recv",
    re.IGNORECASE,
)
_VERSION = re.compile(r"(\d+)\.(\d+)", re.ASCII)
_LIMITED = re.compile(r"rate limit|too many requests|try again later", re.IGNORECASE)


class SlurmCli:
    """`actions.contract.ClusterHands` over scontrol and squeue."""

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
        """This node now. Raises UnknownNode."""
        return self._node(self._tools(1), _one(node))

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
        seen = self._node(tools, _one(node))
        jobs = tools.jobs_on(node)
        hidden = seen.busy and node not in explained(jobs, at)
        return seen if hidden else None, jobs, private_data

    def drain(self, node: NodeName, reason: str) -> None:
        """Set DRAIN with this Reason: one update, no read-back."""
        if not _REASON.fullmatch(reason) or len(reason) > _LONGEST_REASON:
            raise Rejected(f"a Reason is 1 to {_LONGEST_REASON} printable ASCII characters")
        self._update(_one(node), "State=DRAIN", f"Reason={reason}")

    def resume(self, node: NodeName) -> None:
        """Clear DRAIN: one update, no read-back."""
        self._update(_one(node), "State=RESUME")

    def _update(self, node: NodeName, *changes: str) -> None:
        """One write to one node of our own cluster. Raises Refusal while a fault stands."""
        tools = self._tools(1)
        # Again at each write: the controller may have been silent, or an older one, at the start.
        faults = self._faults(tools, tools.controller().controller)
        if faults:
            raise Refusal("; ".join(faults))
        self._budget.take(1)
        done = self._runner.run(
            Command(
                argv=("scontrol", "--local", "update", f"NodeName={node}", *changes),
                time_limit=self._settings.write_limit,
                environment=self._settings.environment,
            )
        )
        if not done.ok:
            raise _write_error(node, done)

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
        wait = self._budget.take(SNAPSHOT_QUESTIONS)
        if wait:
            self._pause(wait)
        done = self._runner.run(
            Command(
                argv=(sys.executable, "-s", "-P", "-m", "actions.slurm.snapshot_child"),
                time_limit=self._settings.read_limit * SNAPSHOT_QUESTIONS,
                environment={"PATH": os.defpath, "PYTHONPATH": packages(), "LC_ALL": "C.UTF-8"},
                stdin=request(self._settings, self._without_json, microseconds(at.wall)),
                output_cap=SNAPSHOT_CAP,
            )
        )
        if not done.ok or done.truncated:
            raise Unreadable(f"no snapshot: {done.lost or words_of_controller(done)}")
        received = received_snapshot(done.stdout, self._settings.cluster, at.wall)
        self._learn(received.without_json)
        self._budget.take(received.asked - SNAPSHOT_QUESTIONS)
        self._budget.answered(took=(self._clock.now().monotonic - at.monotonic) / received.asked)
        return received.snapshot


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


def _one(node: NodeName) -> NodeName:
    """The name again, if it can mean one node only."""
    if node_name(node).upper() in _EVERYTHING:
        raise UnknownNode(f"{node} is a word that scontrol takes for other nodes; rename that node")
    return node


def _release(version: str) -> tuple[int, ...]:
    """Year and month of a release: `22.05.8` and `slurm-wlm 22.05.8` are (22, 5)."""
    found = _VERSION.search(version)
    if found is None:
        raise Unreadable(f"{version[:40]!r} names no Slurm release")
    return int(found[1]), int(found[2])


def _write_error(node: NodeName, done: CommandFinished) -> Exception:
    """What a failed write means: unknown when the answer, not the request, may have been lost."""
    words = words_of_controller(done)
    if not done.started:
        return Rejected(f"nothing was sent: {done.lost}")
    if done.exit_code is None or _LOST_ON_THE_WAY.search(words):
        return WriteUnknown(f"the update of {node} may have happened: {done.lost or words}")
    return Rejected(words or f"scontrol ended with code {done.exit_code} and no word")
