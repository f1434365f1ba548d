"""Reads where a job would go on: the newest whole checkpoint that lies where the site's rule says.

Used by `actions.job.ground`. Files are listed as the job's user through the nodes' program, from a
survivor and never from the sick node; three checkpoints at most are looked into.
"""

from dataclasses import dataclass
from datetime import datetime

from actions.checkpoints import TRACKERS, Checkpoint, Seen, judged, newest_complete, newest_first
from actions.cluster import Job
from actions.contract import Refusal, Unreadable
from actions.job_losses import Restart
from actions.node_readings import NodeReadings
from config.node_names import NodeName

_MOST_LOOKED_INTO = 3
_LONGEST_TRACKER = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Resume:
    """From where a job would go on."""

    why: str
    """One sentence: which checkpoint, or why none is known."""
    step: int | None = None
    at: datetime | None = None
    read: str = ""
    """Whose files were read, where; empty where none were."""


def resume_of(
    job: Job, restart: Restart, node: NodeName | None, readings: NodeReadings | None
) -> Resume:
    """What is known of the newest checkpoint of this job. Never raises for what cannot be read."""
    if restart.format is None or not restart.checkpoint:
        return Resume(why="no rule says where its checkpoints are")
    if readings is None or node is None:
        return Resume(why="its checkpoints cannot be read: no program on the nodes")
    place = f"{job.user}'s {restart.checkpoint} on {node}"
    try:
        found = _found(job.user, restart, node, readings)
    except (Unreadable, Refusal) as error:
        return Resume(why=f"its checkpoints could not be read: {str(error)[:160]}", read=place)
    newest = newest_complete(found)
    if newest is None:
        said = f": {found[0].name[:60]} {found[0].whole} ({found[0].why[:80]})" if found else ""
        return Resume(why=f"no complete checkpoint is known{said}", read=place)
    when = f"{newest.at:%Y-%m-%d %H:%M} UTC" if newest.at else "an unknown time"
    why = f"its newest complete checkpoint is step {newest.step} of {when}"
    return Resume(why=why, step=newest.step, at=newest.at, read=place)


def _found(
    user: str, restart: Restart, node: NodeName, readings: NodeReadings
) -> tuple[Checkpoint, ...]:
    """The newest few, judged. Raises Unreadable, Refusal."""
    kind = restart.format
    if kind is None:
        return ()
    beside = readings.file_list(node, user, restart.checkpoint, "*")
    tracker = TRACKERS.get(kind, "")
    told = ""
    if any(entry.name == tracker for entry in beside.entries):
        path = f"{restart.checkpoint}/{tracker}"
        told = readings.file_tail(node, user, path, _LONGEST_TRACKER).text
    found: list[Checkpoint] = []
    for name in newest_first(kind, beside)[:_MOST_LOOKED_INTO]:
        inside = readings.file_list(node, user, f"{restart.checkpoint}/{name}", "*")
        seen = Seen(name=name, inside=inside, beside=beside, tracker=told, marker=restart.marker)
        found.append(judged(kind, seen))
    return tuple(found)
