"""Anchors: the head of the chain, copied to where whoever can write the database cannot write.

Inside the database a cut tail and a chain computed again leave no trace; an anchor shows both.
When they are sent is `audit_log.anchoring`'s to decide.
"""

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol

from audit_log.chain import Head
from audit_log.encoding import canonical
from audit_log.errors import ChainBroken
from audit_log.ledger import Ledger
from audit_log.restoration import Restore, restores
from config.clock import from_microseconds, microseconds
from config.ids import InstanceId

_RECENT = 65_536
"""Bytes at the end of an anchor file that hold its newest lines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchor:
    """Where the chain of this instance stood at this time."""

    instance: InstanceId
    seq: int
    digest: str
    at: datetime

    def line(self) -> str:
        """One line of JSON, the form in which every sink carries it."""
        return canonical(
            {
                "at_us": microseconds(self.at),
                "digest": self.digest,
                "instance": self.instance,
                "seq": self.seq,
            }
        )

    @classmethod
    def parse(cls, line: str) -> "Anchor":
        """The anchor in a line. Raises ValueError."""
        try:
            held = json.loads(line)
            return cls(
                instance=InstanceId(str(held["instance"])),
                seq=int(held["seq"]),
                digest=str(held["digest"]),
                at=from_microseconds(int(held["at_us"])),
            )
        except (KeyError, TypeError, OverflowError) as error:
            raise ValueError(f"not an anchor: {line[:120]!r}") from error


class AnchorSink(Protocol):
    """Somewhere an anchor goes: a file, syslog, a Slack channel, a webhook."""

    @property
    def name(self) -> str:
        """What people are told it is."""
        ...

    @property
    def leaves_host(self) -> bool:
        """Whether it is out of reach of somebody who owns this host."""
        ...

    def send(self, anchor: Anchor) -> None:
        """Deliver it, or raise OSError."""
        ...


class FileSink:
    """A file to which lines are appended; best on another host and set append-only there."""

    leaves_host = False
    """A path does not say where it leads; `doctor` asks for a sink that certainly leaves."""

    def __init__(self, path: Path) -> None:
        """The file is made with the first anchor."""
        self._path = path
        self.name = f"file {path}"

    def send(self, anchor: Anchor) -> None:
        """Append one line and sync it."""
        flags = os.O_CREAT | os.O_RDWR | os.O_APPEND | os.O_CLOEXEC
        handle = os.open(self._path, flags, 0o600)
        try:
            # A line torn by a crash must not swallow this one.
            lead = "" if _ends_a_line(handle) else "\n"
            os.write(handle, f"{lead}{anchor.line()}\n".encode("ascii"))
            os.fsync(handle)
        finally:
            os.close(handle)

    def read(self) -> tuple[Anchor, ...]:
        """Every anchor in it; torn lines are passed over, since they promise nothing."""
        try:
            text = self._path.read_text("utf-8", "backslashreplace")
        except FileNotFoundError:
            return ()
        return tuple(parsed(text.splitlines()))

    def recent(self) -> tuple[Anchor, ...]:
        """The last few hundred: enough for a start, which must not read years of lines."""
        try:
            with self._path.open("rb") as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - _RECENT))
                text = file.read().decode("utf-8", "backslashreplace")
        except FileNotFoundError:
            return ()
        return tuple(parsed(text.splitlines()))


def parsed(lines: Iterable[str]) -> Iterable[Anchor]:
    """The anchors among these lines."""
    for line in lines:
        try:
            yield Anchor.parse(line)
        except ValueError:
            continue


def contradiction(
    anchor: Anchor, head: Head, digest_here: str | None, given_up: Sequence[Restore]
) -> str | None:
    """What this anchor says against the chain; None when it agrees or a restore explains it."""
    if digest_here == anchor.digest:
        return None
    if any(restore.gave_up(anchor.seq, anchor.at) for restore in given_up):
        return None
    when = f"an anchor of {anchor.at:%Y-%m-%d %H:%M:%S} UTC"
    if anchor.seq > head.seq:
        return f"{when} knows record {anchor.seq}, the ledger ends at {head.seq}: its tail was cut"
    return f"{when} knows another record {anchor.seq}: the chain was computed again"


def refuse_ahead(ledger: Ledger, anchors: Iterable[Anchor]) -> None:
    """Raise ChainBroken at the start when the newest anchor contradicts the ledger."""
    own = [anchor for anchor in anchors if anchor.instance == ledger.instance]
    given_up = restores(ledger.query)
    for anchor in sorted(own, key=lambda one: (one.at, one.seq))[-1:]:
        rows = ledger.query("SELECT digest FROM ledger WHERE seq = ?", (anchor.seq,))
        said = contradiction(anchor, ledger.head, rows[0][0] if rows else None, given_up)
        if said:
            raise ChainBroken(
                f"{said}, or an old copy was put in its place. Nothing acts on such a ledger: put"
                " the newest copy back, or declare it with `nodewarden audit restore`"
            )


def _ends_a_line(handle: int) -> bool:
    """Whether the file is empty or ends in a newline."""
    size = os.fstat(handle).st_size
    return size == 0 or os.pread(handle, 1, size - 1) == b"\n"
