"""Follows one run from commit to commit, while `engine.advance` takes it as far as it gets.

Lives no longer than that call, and is no memory of the run: the run itself is read anew for each
move. What is kept is only what was found out about it (`runbooks.places.Known`), less what the last
commits changed, whoever made them.
"""

from collections.abc import Iterator, Mapping
from itertools import chain, compress, repeat
from operator import is_not

from config.ids import RunId
from runbooks.frames import Frames
from runbooks.places import Frame, Known
from runbooks.run import Run, StepRecord


class Following:
    """One run, followed by one thread."""

    def __init__(self, frames: Frames, run: RunId) -> None:
        """Reads nothing yet."""
        self._frames = frames
        self._id = run
        self._last: Run | None = None
        self._known = Known()

    def frame(self) -> Frame | None:
        """All that the next decision depends on; None for a run that does not exist."""
        run, last = self._frames.run(self._id), self._last
        if run is None:
            return None
        if last is not None and last.steps is not run.steps:
            book = self._frames.runbook(run)
            self._known.change(book, last, run, _changed(last.steps, run.steps))
        self._last = run
        return self._frames.frame_of(run, self._known)


def _changed(before: Mapping[str, StepRecord], after: Mapping[str, StepRecord]) -> Iterator[str]:
    """Keys of the steps that are new or another: a fold adds at the end and moves none."""
    old = chain(before.values(), repeat(None))
    return compress(after, map(is_not, after.values(), old))
