"""Cuts text answers of Slurm's tools into fields, so that no text in them can pose as another. Pure.

Job rows: users write names and comments, with newlines if they like (Slurm 22.05 keeps them), so
`squeue` is asked to print a random word after each field, a new one for each question. Nobody can
write it beforehand. `scontrol show` answers hold text of operators and of Slurm itself only; a key
that occurs twice there is an error.
"""

import re
from collections.abc import Mapping, Sequence

from actions.slurm.fields import UnknownForm

_NODE_KEY = re.compile(r"(?:^|(?<=\s))([A-Za-z][\w/:.\-\[\]]*)=")
_CONFIG_LINE = re.compile(r"([A-Za-z_][\w\[\]]*)\s*= (.*)")
_LAST_OF_LINE = frozenset({"OS", "Reason", "Comment", "Extra", "Partitions", "BcastAddr"})
"""Keys whose value runs to the end of the line: it may hold spaces and equals signs."""
_CONTINUED = " " * 10
"""How scontrol indents the second and further lines of a Reason; keys stand behind three spaces."""


def rows(answer: str, fields: Sequence[str], mark: str) -> list[dict[str, str]]:
    """Rows of an answer in which `mark` follows each field."""
    pieces = answer.split(mark)
    if pieces.pop().strip():
        raise UnknownForm(f"squeue's answer ends in the middle of a row: {answer[-80:]!r}")
    if len(pieces) % len(fields):
        raise UnknownForm(f"squeue printed {len(pieces)} fields, no multiple of {len(fields)}")
    found = []
    for start in range(0, len(pieces), len(fields)):
        row = pieces[start : start + len(fields)]
        if start:  # each further row begins after the line end of the one before
            if not row[0].startswith("\n"):
                raise UnknownForm(f"a row of squeue begins with {row[0][:40]!r}")
            row[0] = row[0][1:]
        found.append(dict(zip(fields, row, strict=True)))
    return found


def shown_records(answer: str, first_key: str) -> list[str]:
    """The records of a `scontrol show` answer; each begins with `first_key=` at a line's start."""
    parts = re.split(rf"^(?={re.escape(first_key)}=)", answer, flags=re.MULTILINE)
    return [part for part in parts if part.startswith(f"{first_key}=")]


def shown_fields(record: str) -> dict[str, str]:
    """Key and value of one record. Raises UnknownForm when a key occurs twice."""
    fields: dict[str, str] = {}
    last = ""
    for line in record.split("\n"):
        if line.startswith(_CONTINUED) and last in _LAST_OF_LINE:
            fields[last] += "\n" + line[len(_CONTINUED) :]
            continue
        for key, value in _line_fields(line):
            if key in fields:
                raise UnknownForm(
                    f"{key} occurs twice in {record[:40]!r}: some text in it poses as a field"
                )
            fields[key] = value
            last = key
    return fields


def _line_fields(line: str) -> list[tuple[str, str]]:
    """Key and value pairs of one line, in order."""
    pairs: list[tuple[str, str]] = []
    matches = list(_NODE_KEY.finditer(line))
    for position, match in enumerate(matches):
        if match[1] in _LAST_OF_LINE:
            pairs.append((match[1], line[match.end() :].rstrip()))
            break
        until = matches[position + 1].start() if position + 1 < len(matches) else len(line)
        pairs.append((match[1], line[match.end() : until].strip()))
    return pairs


def config_fields(answer: str) -> Mapping[str, str]:
    """Key and value of `scontrol show config`, first section only (later ones repeat keys)."""
    fields: dict[str, str] = {}
    for line in answer.split("\n"):
        if not line.strip() and fields:
            break
        match = _CONFIG_LINE.match(line)
        if match is None:
            continue
        if match[1] in fields:
            raise UnknownForm(f"{match[1]} occurs twice in the controller's configuration")
        fields[match[1]] = match[2].strip()
    return fields
