"""Plays a recording of the program's own questions, as `tests/recordings/record.py` keeps them.

`squeue --Format` is answered field by field, so that a question for other fields than were asked when
it was recorded still gets those that were.
"""

import json
import re
from datetime import datetime
from typing import Any

from actions.shell import Command, CommandFinished
from tests.actions.slurm.conftest import RECORDINGS

_MARK = re.compile(r"\|x[0-9a-f]{16}\|")
_SAME = "|mark|"


class Played:
    """Answers as were recorded; keeps what it was asked."""

    def __init__(self, name: str) -> None:
        told: dict[str, Any] = json.loads((RECORDINGS / name / "answers.json").read_text())
        self.at = datetime.fromisoformat(told["at"])
        self.user: str = told["user"]
        self.asked: list[Command] = []
        self._answers: list[dict[str, Any]] = told["answers"]

    def run(self, command: Command) -> CommandFinished:
        """The recorded answer. AssertionError where that was never asked."""
        self.asked.append(command)
        line = " ".join(command.argv)
        mark = next(iter(_MARK.findall(line)), _SAME)
        for answer in self._answers:
            if _shape(answer["argv"]) == _shape(command.argv):
                out = _MARK.sub(mark, "\n".join(answer["stdout"]))
                if "--Format=" in line:
                    out = _printed(out, answer["argv"], command.argv, mark)
                return CommandFinished(
                    exit_code=answer["exit"], stdout=out, stderr="\n".join(answer["stderr"])
                )
        if command.argv[0] == "sdiag":
            return CommandFinished(exit_code=127, stdout="", stderr="sdiag was not recorded")
        raise AssertionError(f"{line} was not recorded")


def _shape(argv: Any) -> list[str]:
    """The question without its marks, and without the fields of a format."""
    return ["--Format" if word.startswith("--Format=") else _MARK.sub(_SAME, word) for word in argv]


def _fields(argv: Any) -> list[str]:
    form = next(word for word in argv if word.startswith("--Format="))
    return [field.partition(":")[0] for field in form.removeprefix("--Format=").split(",")]


def _printed(out: str, recorded: Any, asked: Any, mark: str) -> str:
    had, wanted, rows = _fields(recorded), _fields(asked), []
    pieces = out.split(mark)[:-1]
    for start in range(0, len(pieces), len(had)):
        row = [piece.removeprefix("\n") if not i else piece for i, piece in
               enumerate(pieces[start : start + len(had)])]  # fmt: skip
        told = dict(zip(had, row, strict=True))
        rows.append("".join(told.get(field, "N/A") + mark for field in wanted) + "\n")
    return "".join(rows)
