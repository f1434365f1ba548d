"""What a run is about to do, in full, before it does anything: the plan and its hash. Pure.

Approval means this plan (promise 7): the hash covers what could make the yes wrong, and
`deviation` says, right before each write, whether the world still is the one that was approved.
"""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, fields

from actions.contract import JobLoss, Observation, Standing
from config.ids import PlanHash, StepId
from config.json_values import JsonMap
from config.node_names import NodeName


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedStep:
    """One effect that a plan may have."""

    key: str
    """Step key; `caller/step` inside a called runbook."""
    step: StepId
    action: str
    """`name@version`."""
    node: NodeName | None
    arguments: JsonMap | None
    """None where they depend on a step that has not run."""
    certain: bool
    """Whether its `when` is known to hold; otherwise it may be skipped."""
    standing: str = ""
    why: str = ""
    boot_id: str = ""
    owner: str = ""
    state: str = ""
    reason: str = ""
    jobs_end: tuple[JobLoss, ...] = ()
    takes_node_out: bool = False
    may_end_jobs: bool = False
    persons: int = 0
    """So many approvers at least, whatever else is planned."""

    def is_for(self, node: NodeName | None, arguments: JsonMap) -> bool:
        """Whether this is what was planned: an argument can come from an output that grew since."""
        return self.node == node and _plain(self.arguments) == _plain(arguments)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """An immutable plan; what is approved is its hash."""

    steps: tuple[PlannedStep, ...]
    locks: tuple[str, ...]
    pinned: JsonMap
    """Digests of runbook, causes and policy."""
    cause: str = ""
    diagnosis: JsonMap = field(default_factory=dict)

    @property
    def hash(self) -> PlanHash:
        """SHA-256 over what design 5 lists, in canonical JSON."""
        covered = {
            "pinned": dict(self.pinned),
            "locks": sorted(self.locks),
            "steps": [_covered(step) for step in self.steps],
        }
        text = json.dumps(covered, sort_keys=True, separators=(",", ":"))
        return PlanHash(hashlib.sha256(text.encode()).hexdigest())

    @property
    def jobs_end(self) -> tuple[JobLoss, ...]:
        """Jobs that any step may end, each once."""
        found = {loss.slurm_id: loss for step in self.steps for loss in step.jobs_end}
        return tuple(found[key] for key in sorted(found))

    @property
    def nodes(self) -> tuple[NodeName, ...]:
        """Nodes that any step touches, in the order of the plan, each once."""
        return tuple(dict.fromkeys(step.node for step in self.steps if step.node is not None))

    def step(self, key: str) -> PlannedStep | None:
        """The planned step with this key."""
        return next((step for step in self.steps if step.key == key), None)

    def to_json(self) -> JsonMap:
        """Plain values, for the artefact and `--json`."""
        # Field by field: `asdict` copies each of ten thousand steps to its last value.
        parts = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        parts["steps"] = [_fields_of(step) for step in self.steps]
        plain: JsonMap = json.loads(json.dumps(parts))
        return plain

    @classmethod
    def from_json(cls, value: JsonMap) -> "Plan":
        """The plan that `to_json` wrote."""
        plain = json.loads(json.dumps(value))
        steps = tuple(
            PlannedStep(**{**step, "jobs_end": tuple(JobLoss(**loss) for loss in step["jobs_end"])})
            for step in plain["steps"]
        )
        return cls(
            steps=steps,
            locks=tuple(plain["locks"]),
            pinned=plain["pinned"],
            cause=plain["cause"],
            diagnosis=plain["diagnosis"],
        )


def _fields_of(step: PlannedStep) -> dict[str, object]:
    ends = [asdict(loss) for loss in step.jobs_end]
    return {**{name: getattr(step, name) for name in _STEP}, "jobs_end": ends}


_STEP = tuple(entry.name for entry in fields(PlannedStep))


def _plain(arguments: JsonMap | None) -> str:
    return json.dumps(arguments, sort_keys=True)


def _covered(step: PlannedStep) -> JsonMap:
    """The part of a planned step that the hash covers."""
    return {
        "key": step.key,
        "action": step.action,
        "node": step.node,
        "arguments": step.arguments,
        "boot_id": step.boot_id,
        "owner": step.owner,
        "state": step.state,
        "reason": step.reason,
        "ends": sorted(loss.slurm_id for loss in step.jobs_end),
        "loses": sorted(loss.slurm_id for loss in step.jobs_end if loss.lost),
    }


NOBODY = "nobody"
"""Owner of a node that nobody holds, as looks name it (`actions.ownership`)."""


def deviation(planned: PlannedStep, seen: Observation, ours: str) -> str:
    """Why what is seen now is not what was approved; the empty string when it still is.

    A job that ended or a target that already is so voids nothing (design 5), nor does a node that
    an earlier step of the same run made its own (`ours` is that owner), or that was ours in the plan
    and is nobody's now: what takes it out again was in the plan too.
    """
    if seen.standing in {Standing.OURS, Standing.FOREIGN}:
        return ""
    if planned.boot_id != seen.boot_id:
        return (
            f"the node was restarted since the plan was made "
            f"(boot {planned.boot_id or 'unknown'}, now {seen.boot_id or 'unknown'})"
        )
    gave_back = planned.standing == Standing.OURS.value and seen.owner == NOBODY
    if seen.owner not in {planned.owner, ours} and not gave_back:
        return f"the node belonged to {planned.owner or 'nobody'}, now to {seen.owner or 'nobody'}"
    return _more_jobs(planned.jobs_end, seen.jobs_end)


def _more_jobs(approved: Iterable[JobLoss], now: Iterable[JobLoss]) -> str:
    """A sentence about jobs that would end or be lost now and were not approved to."""
    known = {loss.slurm_id: loss for loss in approved}
    fresh = [loss.job for loss in now if loss.slurm_id not in known]
    if fresh:
        return f"job {', '.join(fresh)} would end too and was not in the approved list"
    worse = [loss.job for loss in now if loss.lost and not known[loss.slurm_id].lost]
    return f"the work of job {', '.join(worse)} would now be lost" if worse else ""
