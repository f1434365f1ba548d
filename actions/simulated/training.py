"""What a training job of the simulation is: steps, checkpoints, and the start that it is in. Plain data.

Moved by `training_rules`, shown as files by `job_files`.
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from config.job_settings import CheckpointFormat

KEPT = 50
"""So many checkpoints are kept, as a trainer's own rotation does it."""


@dataclass(slots=True, kw_only=True)
class Checkpoint:
    """One folder of the job's checkpoints."""

    step: int
    at: datetime
    """When it was begun."""
    done_at: datetime
    torn: bool = False
    """Its run ended before it was whole."""

    def complete(self, now: datetime) -> bool:
        """Whether a restart can use it."""
        return not self.torn and self.done_at <= now


@dataclass(slots=True, kw_only=True)
class Running:
    """One start of the job."""

    restarts: int
    started_at: datetime | None
    from_step: int
    counted: timedelta = timedelta(0)
    """Time in which all its ranks went on."""
    seen_at: datetime
    moves: bool = True


@dataclass(slots=True, kw_only=True)
class Training:
    """What a job trains, and how far it has come."""

    step_takes: timedelta
    checkpoint_every: int
    save_takes: timedelta
    format: CheckpointFormat
    folder: str
    """Of its checkpoints, on a file system that every node has."""
    marker: str = ""
    checkpoints: list[Checkpoint] = field(default_factory=list)
    run: Running | None = None
    moved_at: datetime | None = None
    """When a step was last done."""
    last_step: int = 0
    """Of the run that ended last."""

    @property
    def step(self) -> int:
        """The last step that was done."""
        run = self.run
        return self.last_step if run is None else run.from_step + run.counted // self.step_takes

    def resumes_at(self, now: datetime) -> int:
        """The step of the newest whole checkpoint; 0 without one."""
        return max((each.step for each in self.checkpoints if each.complete(now)), default=0)
