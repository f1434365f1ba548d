#!/usr/bin/python3 -IS
"""One rank of the testbed's training job; srun starts one on each node.

Arguments: the job's folder on shared storage, seconds per step, steps per checkpoint, a folder of
the node's own disk. All ranks meet at a barrier in every step, so one that stands still stops all.
A rank writes `time host rank restart step` to the common journal at each step and each second that
it waits, because a rank that nobody listens to still writes in real life.

SIGUSR1: compute for ever without progress. SIGUSR2: go on.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

_POLL_SECONDS = 0.02
_WAITING_SECONDS = 1.0
_LAST_STEP = 1_000_000
_TRACKER = "latest_checkpointed_iteration.txt"


class Rank:
    """Who this is, where it writes, and how far it is."""

    def __init__(self, folder: str, step_seconds: str, checkpoint_every: str, scratch: str) -> None:
        """Numbers come as the command line has them."""
        self.folder = Path(folder)
        self.step_seconds = float(step_seconds)
        self.checkpoint_every = int(checkpoint_every)
        self.scratch = Path(scratch)
        self.rank = int(os.environ["SLURM_PROCID"])
        self.ranks = int(os.environ["SLURM_NTASKS"])
        self.restart = int(os.environ.get("SLURM_RESTART_COUNT") or 0)
        self.host = os.environ["SLURMD_NODENAME"]
        self.spinning = False
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        self.journal = os.open(self.folder / "journal", flags, 0o644)
        self.meeting = self.folder / f"barrier-{self.restart}"
        self.meeting.mkdir(exist_ok=True)

    def run(self) -> None:
        """Until it is killed."""
        step = self.resumed()
        while step < _LAST_STEP:
            self.compute(step + 1)
            self.meet(f"{step + 1}", step)
            step += 1
            self.note(step)
            if self.rank == 0:
                sys.stdout.write(f" iteration {step:8d}/{_LAST_STEP:8d} | lm loss: 1.0E+00\n")
                sys.stdout.flush()
            if step % self.checkpoint_every == 0:
                self.save(step)

    def compute(self, step: int) -> None:
        """One step's work, with a line to the node's own disk where it has one."""
        if self.scratch.is_dir():
            own = self.scratch / f"rank-{self.rank}.log"
            with own.open("a", encoding="ascii") as stream:
                stream.write(f"{step}\n")
        time.sleep(self.step_seconds)
        while self.spinning:
            pass

    def meet(self, word: str, step: int) -> None:
        """Until every rank has come to the same word; late ones find the earlier ones waiting."""
        mine = self.meeting / f"{self.rank}.{word}"
        mine.touch()
        noted = time.monotonic()
        others = [self.meeting / f"{rank}.{word}" for rank in range(self.ranks)]
        while not all(other.exists() for other in others):
            time.sleep(_POLL_SECONDS)
            if time.monotonic() - noted > _WAITING_SECONDS:
                self.note(step)
                noted = time.monotonic()
        before = self.meeting / f"{self.rank}.{step - 1}"  # nobody can still look for that one
        before.unlink(missing_ok=True)

    def note(self, step: int) -> None:
        """One write, so that lines of different ranks never mix."""
        line = f"{time.time():.3f} {self.host} {self.rank} {self.restart} {step}\n"
        os.write(self.journal, line.encode("ascii"))

    def save(self, step: int) -> None:
        """As Megatron does: every rank's part, and only then the tracker."""
        part = self.folder / f"iter_{step:07d}" / f"mp_rank_{self.rank:02d}"
        part.mkdir(parents=True, exist_ok=True)
        _write(part / "model_optim_rng.pt", f"{step}\n")
        self.meet(f"saved-{step}", step)
        if self.rank == 0:
            _write(self.folder / _TRACKER, f"{step}\n")

    def resumed(self) -> int:
        """The step of the last checkpoint, 0 where there is none."""
        try:
            step = int((self.folder / _TRACKER).read_text(encoding="ascii"))
        except FileNotFoundError:
            return 0
        part = self.folder / f"iter_{step:07d}" / f"mp_rank_{self.rank:02d}" / "model_optim_rng.pt"
        return int(part.read_text(encoding="ascii"))


def _write(path: Path, text: str) -> None:
    """Whole or not at all."""
    partial = path.with_suffix(".partial")
    partial.write_text(text, encoding="ascii")
    partial.replace(path)


if __name__ == "__main__":
    RANK = Rank(*sys.argv[1:])
    signal.signal(signal.SIGUSR1, lambda *_: setattr(RANK, "spinning", True))
    signal.signal(signal.SIGUSR2, lambda *_: setattr(RANK, "spinning", False))
    RANK.run()
