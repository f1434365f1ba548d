"""`evidence.save`: keeps what a repair would wipe out: kernel logs, Reason, jobs.

Called by the engine before a step that starts, reboots or returns anything. Reads only; a part that
cannot be read says so in its place and never stops the run.
"""

from dataclasses import dataclass
from datetime import timedelta

from actions.contract import (
    ActionSpec,
    Call,
    Done,
    Failed,
    FailureKind,
    Field,
    Observation,
    Outcome,
    Refusal,
    Standing,
    Unknown,
    Unreadable,
    ValueType,
)
from actions.node import readings
from actions.node.fitting import first, last
from actions.node.settings import NODE, Hands
from config.json_values import Json
from config.node_names import NodeName
from config.permissions import Permission

_LONGEST_LOG = 2400
"""Bytes of each log: with all else the output stays below one record (8 KiB)."""
_MOST_JOBS = 10

_SPEC = ActionSpec(
    name="evidence.save",
    version=1,
    summary="Keep kernel logs, Reason and jobs of a node before something is done to it",
    permission=Permission.NODE_READ,
    parameters={"node": NODE},
    output={
        "kernel_log": Field(type=ValueType.TEXT, help="end of this boot's kernel log"),
        "previous_kernel_log": Field(type=ValueType.TEXT, help="end of that of the boot before"),
        "slurmd": Field(type=ValueType.TEXT, help="state of slurmd and what systemd says of it"),
        "state": Field(type=ValueType.TEXT, help="state by the controller"),
        "reason": Field(type=ValueType.TEXT, help="Reason by the controller"),
        "jobs": Field(type=ValueType.TEXT, help="jobs on the node, one a line"),
        "saved_at": Field(type=ValueType.TEXT, help="when this was read, UTC"),
    },
    looks_only=True,
    time_limit=timedelta(minutes=3),
)


@dataclass(frozen=True, slots=True)
class SaveEvidence:
    """The verb."""

    hands: Hands

    @property
    def spec(self) -> ActionSpec:
        """What is promised."""
        return _SPEC

    def look(self, call: Call) -> Observation:
        """Nothing is decided by a look. Raises Refusal."""
        return Observation(standing=Standing.NOT_SO, why=f"{readings.target(call)} can be read")

    def do(self, call: Call) -> Outcome:
        """Read what there is."""
        try:
            node = readings.fresh_node(call, self.hands)
            jobs = readings.fresh_jobs(call, self.hands)
        except Unreadable as error:
            return Unknown(why=str(error))
        except Refusal as error:
            return Failed(error=str(error), kind=FailureKind.REFUSED)
        lines = [
            f"{job.id} {job.user} {job.state} {job.gpus} GPUs, {first(job.name, 40)}"
            for job in jobs.jobs
        ]
        more = len(lines) - _MOST_JOBS
        shown = [*lines[:_MOST_JOBS], *([f"and {more} more"] if more > 0 else [])]
        output: dict[str, Json] = {
            "kernel_log": self._log(node.name, previous=False),
            "previous_kernel_log": self._log(node.name, previous=True),
            "slurmd": self._slurmd(node.name),
            "state": node.state,
            "reason": first(node.reason, 300),
            "jobs": first(jobs.blind, 200) or "\n".join(shown) or "none",
            "saved_at": f"{call.now:%Y-%m-%dT%H:%M:%SZ}",
        }
        return Done(output=output)

    def _log(self, node: NodeName, *, previous: bool) -> str:
        try:
            result = self.hands.nodes.kernel_log(node, previous)
        except Unreadable as error:
            return first(f"not read: {error}", 300)
        if not result.ok:
            said = result.lost or result.errors.strip() or f"exit code {result.exit_code}"
            return first(f"not read: {said}", 300)
        return last(result.output.strip(), _LONGEST_LOG)

    def _slurmd(self, node: NodeName) -> str:
        try:
            found = self.hands.nodes.service(node, self.hands.settings.slurmd_unit)
        except Unreadable as error:
            return first(f"not read: {error}", 300)
        since = f" since {found.since:%Y-%m-%dT%H:%M:%SZ}" if found.since else ""
        return f"{found.state}{since} ({first(found.detail, 200)})"
