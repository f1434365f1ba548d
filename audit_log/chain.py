"""The hash chain: each record ends in the digest of the record before. Pure.

A canonical record ends in its place: `…,"prev":"<digest>","seq":<n>,"v":1}`. Nothing nested can
follow `prev`, so comparing the end of the text checks the link without parsing any JSON.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256

FIRST_PREV = "0" * 64
"""`prev` of the first record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The last record of a chain."""

    seq: int = 0
    digest: str = FIRST_PREV


@dataclass(frozen=True, slots=True, kw_only=True)
class Break:
    """The first place where a chain contradicts itself."""

    seq: int
    problem: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Walk:
    """What walking over some records found."""

    count: int
    """Records looked at; with a break, the offending one is the last of them."""
    head: Head
    """The last of them as it stands, so that a walk can go on behind a break."""
    found: Break | None = None


Row = tuple[int, bytes, bytes]
"""Sequence number, stored text, stored digest."""


def walk(rows: Iterable[Row], start: Head) -> Walk:
    """Check that `rows` continue the chain after `start`, up to the first that does not."""
    seq, prev, count = start.seq, start.digest.encode("ascii"), 0
    for row_seq, text, stored in rows:
        count += 1
        # Written out, without a call per row: a million rows have to pass in some two seconds.
        if (
            row_seq == seq + 1
            and sha256(text).hexdigest().encode() == stored
            and text.endswith(b',"prev":"%b","seq":%d,"v":1}' % (prev, row_seq))
        ):
            seq, prev = row_seq, stored
            continue
        found = _explain((row_seq, text, stored), seq)
        digest = stored.decode("ascii", "backslashreplace")
        return Walk(count=count, head=Head(seq=row_seq, digest=digest), found=found)
    return Walk(count=count, head=Head(seq=seq, digest=prev.decode("ascii", "backslashreplace")))


def _explain(row: Row, last: int) -> Break:
    """Which of the conditions failed, in words."""
    seq, text, stored = row
    if seq > last + 1:
        return Break(seq=last + 1, problem=f"missing: record {seq} comes after {last}")
    if seq <= last:
        return Break(seq=seq, problem=f"comes after record {last}: the order was changed")
    if sha256(text).hexdigest().encode() != stored:
        return Break(seq=seq, problem="its text does not have the digest stored beside it")
    return Break(seq=seq, problem=f"does not follow record {last}: its `prev` or `seq` differs")
