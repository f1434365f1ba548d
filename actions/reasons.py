"""What a node's Reason says about who wrote it: our mark, Slurm itself, a person, or nobody.

Read by `actions.node` and `actions.slurm`; pure. The Reason is a hint and never the proof of
ownership (hands 2): the proof is the ledger. This module must never decide that a node is ours.
"""

import re
from dataclasses import dataclass
from enum import StrEnum

from config.ids import InstanceId, RunId

LONGEST_CAUSE = 16
"""With `nw ` in front, what `sinfo -R` still shows of a Reason (20 characters)."""

_SEPARATOR = " : "
_MARK = re.compile(
    r"nw (?P<cause>[A-Za-z0-9](?:[A-Za-z0-9 ._+-]{0,14}[A-Za-z0-9._+-])?)"
    r" \[(?P<run>[A-Za-z0-9-]{1,40})/(?P<instance>[A-Za-z0-9]{1,40})\]",
    re.ASCII,
)
_NOT_IN_CAUSE = re.compile(r"[^A-Za-z0-9 ._+-]+", re.ASCII)

# Texts that slurmctld, slurmd and slurmstepd write by themselves (22.05 to 26.05). Whole texts and
# not mere prefixes: a person may well write "Not responding to ping, do not touch".
_INTERNAL = re.compile(
    r"Not responding"
    r"|Node unexpectedly rebooted"
    r"|gres/\S+ count reported lower than configured \(\d+ < \d+\)"
    r"|gres/\S+ count changed and jobs are using them \(\d+ != \d+\)"
    r"|gres/\S+ count too low \(\d+ < \d+\)"
    r"|Low RealMemory(?: \(reported:\d+ < [\d.]+% of configured:\d+\))?"
    r"|Low CPUs|Low TmpDisk|Low socket\*core\*thread count|Low socket\*core count"
    r"|Kill task failed(?: \(JobId=\S+(?: StepId=\S+)?\))?"
    r"|Job step not running(?: \(JobId=\S+(?: StepId=\S+)?\))?"
    r"|Prolog error|Epilog error|Prolog/Epilog failure|Job env setup error"
    r"|batch job complete failure|Duplicate jobid"
    r"|NO NETWORK ADDRESS FOUND|SlurmdSpoolDir is full|switch_g_job_postfini failed"
    r"|ResumeTimeout reached"
    r"|reboot (?:issued|complete|timed out)",
    re.ASCII,
)


class ReasonKind(StrEnum):
    """Who a Reason points to."""

    NONE = "none"
    MARK = "mark"
    """A mark in this program's form, of whichever instance."""
    INTERNAL = "internal"
    """Only texts that Slurm writes by itself."""
    FOREIGN = "foreign"
    """Anything else: a person or another tool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasonMark:
    """What a mark says of itself."""

    cause: str
    run: RunId
    instance: InstanceId


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasonReading:
    """A Reason, read."""

    kind: ReasonKind
    mark: ReasonMark | None = None
    """For MARK: what the first segment says."""
    internal: tuple[str, ...] = ()
    """Texts of Slurm itself in it, in order; after a mark they are new facts, not a new owner."""


def classify(reason: str) -> ReasonReading:
    """Who wrote this Reason, as far as the text tells.

    Slurm appends its own texts after ` : ` and keeps what stood there, so the first segment names
    the owner. A later segment that is not Slurm's was added by somebody: then it is foreign.
    """
    parts = segments(reason)
    if not parts:
        return ReasonReading(kind=ReasonKind.NONE)
    mark = parse_mark(parts[0])
    rest = parts[1:] if mark else parts
    internal = tuple(part for part in rest if is_internal(part))
    if len(internal) < len(rest):
        return ReasonReading(kind=ReasonKind.FOREIGN, internal=internal)
    kind = ReasonKind.MARK if mark else ReasonKind.INTERNAL
    return ReasonReading(kind=kind, mark=mark, internal=internal)


def segments(reason: str) -> tuple[str, ...]:
    """The parts between ` : `, without empty ones."""
    return tuple(part.strip() for part in reason.split(_SEPARATOR) if part.strip())


def is_internal(segment: str) -> bool:
    """Whether this one segment is a text that Slurm writes by itself."""
    return _INTERNAL.fullmatch(segment) is not None


def mark_text(cause: str, run: RunId, instance: InstanceId) -> str:
    """The Reason of a mark: `nw <cause> [<run>/<instance>]`."""
    short = " ".join(_NOT_IN_CAUSE.sub(" ", cause).split()).lstrip(" ._+-")[:LONGEST_CAUSE].rstrip()
    return f"nw {short or 'unnamed'} [{run}/{instance}]"


def parse_mark(segment: str) -> ReasonMark | None:
    """What a mark says of itself; None if this is no mark."""
    found = _MARK.fullmatch(segment.strip())
    if found is None:
        return None
    return ReasonMark(
        cause=found["cause"], run=RunId(found["run"]), instance=InstanceId(found["instance"])
    )
