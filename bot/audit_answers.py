"""`audit` at every door: who did what, the export, and whether the chain is whole."""

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from audit_log.anchoring import Anchoring
from audit_log.anchors import FileSink
from audit_log.records import Record
from audit_log.search import AuditQuery, csv_lines, json_lines, search
from audit_log.verify import verify
from bot.identities import Identities
from bot.phrases import Command, Misread
from bot.replies import Reply, done, refused
from config.durations import parse_duration
from config.ids import RunId
from config.node_names import fold
from runbooks.parts import Parts
from runbooks.requests import CannotDo

MOST_ROWS = 50
"""Rows of an answer; `export` gives all."""
MOST_EXPORTED = 20_000
"""Lines of one export through a door; the file itself is there for more."""
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)


class AuditAnswers:
    """Questions about the ledger."""

    def __init__(
        self,
        parts: Parts,
        identities: Identities,
        anchoring: Anchoring,
        anchor_files: Sequence[Path],
    ) -> None:
        """Reads the ledger; shows names, which the ledger itself does not hold."""
        self._anchoring = anchoring
        self._anchor_files = tuple(anchor_files)
        self._ledger = parts.ledger
        self._clock = parts.clock
        self._identities = identities

    def answer(self, command: Command) -> Reply:
        """`audit [query | export] name=value …`."""
        words = list(command.words)
        what = words.pop(0) if words and "=" not in words[0] else "query"
        query = self._query(words)
        if what == "verify":
            return self._verify()
        if what == "anchor":
            return self._anchor()
        if what == "export":
            lines = csv_lines if "csv" in command.flags else json_lines
            return done(*self._exported(lines(self._ledger, query)))
        if what != "query":
            raise Misread(f"audit knows query, export, verify and anchor, not {what!r}")
        found = list(search(self._ledger, query, MOST_ROWS + 1))
        more = ("… more; narrow it with since=, target=, run=",) if len(found) > MOST_ROWS else ()
        rows = [self._line(record) for record in found[:MOST_ROWS]]
        data = {"records": [record.seq for record in found]}
        return done(*(rows or ["no record fits"]), *more, data=data)

    def _verify(self) -> Reply:
        """The whole chain, and the anchors' word against it."""
        sinks = [FileSink(path) for path in self._anchor_files]
        known = [anchor for sink in sinks for anchor in sink.read()] if sinks else None
        report = verify(self._ledger.path, known)
        state = "sound" if report.sound else "BROKEN"
        line = f"{state}: {report.records} records, {report.anchors} anchors compared"
        findings = [f"record {one.seq}: {one.problem}" for one in report.findings]
        if not report.sound:
            return refused(*findings, line)
        return done(line, data={"sound": True, "records": report.records})

    def _anchor(self) -> Reply:
        status = self._anchoring.anchor_now()
        newest = f"record {status.newest.seq}" if status.newest else "nothing"
        return done(f"anchored {newest}; {'; '.join(status.failing) or 'every sink took it'}")

    def _exported(self, lines: Iterator[str]) -> list[str]:
        out: list[str] = []
        for line in lines:
            if len(out) >= MOST_EXPORTED:
                raise CannotDo(
                    f"more than {MOST_EXPORTED} records: narrow it with since= and until="
                )
            out.append(line.rstrip("\n"))
        return out

    def _query(self, words: list[str]) -> AuditQuery:
        given = dict(word.split("=", 1) for word in words if "=" in word)
        unknown = set(given) - {"actor", "target", "run", "action", "since", "until"}
        if unknown or len(given) != len(words):
            raise Misread("audit takes actor= target= run= action= since= until=, nothing else")
        actor = given.get("actor")
        person = self._identities.by_name(actor.lstrip("@")) if actor else None
        if actor and person is None:
            raise CannotDo(f"I cannot resolve {actor}")
        return AuditQuery(
            actor=person.id if person else None,
            target=given.get("target"),
            run=RunId(given["run"]) if "run" in given else None,
            action=given.get("action"),
            since=self._moment(given.get("since")),
            until=self._moment(given.get("until")),
        )

    def _moment(self, text: str | None) -> datetime | None:
        """A duration back from now (`7d`) or a day in UTC (`2026-11-30`)."""
        if text is None:
            return None
        if _DAY.fullmatch(text):
            return datetime.fromisoformat(text).replace(tzinfo=UTC)
        try:
            back: timedelta = parse_duration(text)
        except ValueError as problem:
            raise Misread(
                f"{text!r} is neither a time back (7d, 12h) nor a day (2026-11-30)"
            ) from problem
        return self._clock.now().wall - back

    def _line(self, record: Record) -> str:
        event = record.event
        who = self._identities.name(event.actor)
        where = " ".join(str(part) for part in (event.run, event.step, event.node) if part)
        why = event.data.get("why") or event.data.get("because") or event.data.get("error") or ""
        nodes = event.data.get("nodes")
        listed = fold(str(node) for node in nodes) if isinstance(nodes, list) else ""
        parts = [f"{record.seq} {record.at:%Y-%m-%d %H:%M:%S} {who} {event.kind}", where, listed]
        line = " ".join(part for part in parts if part)
        return f"{line}: {why}" if why else line
