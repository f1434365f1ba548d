"""The hash chain: each record ends in the digest of the record before. Pure.

A canonical record ends in its place: `…,"prev":"<digest>","seq":<n>,"v":1}`. Nothing nested can
follow `prev`, so comparing the end of the text checks the link without parsing any JSON.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256

FIRST_PREV = "0" * 64
"""`prev` of the first record."""

VERSIONS = (1,)
"""Every record version ever released."""


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
    """What walking over records found."""

    head: Head
    """The last record that is sound."""
    found: Break | None = None


def tail_of(prev: str, seq: int, version: int = 1) -> bytes:
    """How the stored text of record `seq` must end."""
    return f',"prev":"{prev}","seq":{seq},"v":{version}}}'.encode("ascii")


def walk(rows: Iterable[tuple[int, bytes, str]], start: Head) -> Walk:
    """Check that `rows` (seq, stored text, stored digest) continue the chain after `start`."""
    seq, digest = start.seq, start.digest
    for row_seq, text, stored in rows:
        # Written out, not a call per row: a million rows have to pass in about two seconds.
        if (
            row_seq != seq + 1
            or sha256(text).hexdigest() != stored
            or not text.endswith(b',"prev":"%b","seq":%d,"v":1}' % (digest.encode(), row_seq))
        ):
            problem = _explain(row_seq, text, stored, Head(seq=seq, digest=digest))
            return Walk(head=Head(seq=seq, digest=digest), found=problem)
        seq, digest = row_seq, stored
    return Walk(head=Head(seq=seq, digest=digest))


def _explain(row_seq: int, text: bytes, stored: str, before: Head) -> Break:
    """Which of the three conditions failed, in words."""
    expected = before.seq + 1
    if row_seq != expected:
        return Break(seq=expected, problem=f"record {expected} is missing; next is {row_seq}")
    if sha256(text).hexdigest() != stored:
        return Break(seq=row_seq, problem="the text does not have the digest stored beside it")
    return Break(
        seq=row_seq,
        problem=f"it does not follow record {before.seq}: its place or `prev` differs",
    )
