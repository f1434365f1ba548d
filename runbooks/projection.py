"""The tables that the engine reads: all made from the ledger, all made again by `audit rebuild`.

`RunProjector.apply` is called by the ledger's writer inside the transaction that appends the record,
so a run's row, its locks, marks and due time are never apart from its history.
"""

from dataclasses import replace
from typing import Any

from audit_log.ledger import ProjectionCursor
from audit_log.records import EventKind, Record
from config.clock import microseconds
from config.ids import RunId
from runbooks import run_rows
from runbooks.packing import unpacked
from runbooks.run_fold import fold, requested

SCHEMA = f"""{run_rows.SCHEMA}
CREATE TABLE IF NOT EXISTS request_keys (key TEXT PRIMARY KEY, run TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS locks (
    atom TEXT PRIMARY KEY, run TEXT NOT NULL, since_us INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS marks (
    cluster TEXT NOT NULL, node TEXT NOT NULL, kind TEXT NOT NULL, run TEXT NOT NULL,
    boot_id TEXT NOT NULL, text TEXT NOT NULL, at_us INTEGER NOT NULL,
    PRIMARY KEY (cluster, node, kind)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS effects (
    seq INTEGER PRIMARY KEY, at_us INTEGER NOT NULL, cluster TEXT, pool TEXT, run TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS hands_off (
    cluster TEXT NOT NULL, node TEXT NOT NULL, actor TEXT NOT NULL, why TEXT NOT NULL,
    at_us INTEGER NOT NULL, PRIMARY KEY (cluster, node));
CREATE TABLE IF NOT EXISTS latches (
    name TEXT PRIMARY KEY, why TEXT NOT NULL, at_us INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS halts (
    one INTEGER PRIMARY KEY CHECK (one = 1), actor TEXT NOT NULL, why TEXT NOT NULL,
    at_us INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS pages (
    key TEXT PRIMARY KEY, run TEXT, summary TEXT NOT NULL, state TEXT NOT NULL,
    at_us INTEGER NOT NULL, tries INTEGER NOT NULL, details TEXT NOT NULL, detail TEXT NOT NULL,
    resolved INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS cards (
    run TEXT PRIMARY KEY, channel TEXT NOT NULL, message TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS card_notes (
    run TEXT NOT NULL, note TEXT NOT NULL, PRIMARY KEY (run, note)) WITHOUT ROWID;
"""


class RunProjector:
    """Projects runs and everything that hangs on them."""

    schema = SCHEMA
    tables = (
        "runs",
        "run_steps",
        "request_keys",
        "locks",
        "marks",
        "effects",
        "hands_off",
        "latches",
        "halts",
        "pages",
        "cards",
        "card_notes",
    )

    def apply(self, cursor: ProjectionCursor, record: Record) -> None:
        """Bring every table up to this record."""
        if record.event.kind is EventKind.RUN_REQUESTED:
            self._begin(cursor, record)
        elif record.event.kind is EventKind.CLOCK_JUMPED:
            self._jump(cursor, record)
        elif record.event.run is not None:
            self._continue(cursor, record, record.event.run)
        side = _SIDES.get(record.event.kind)
        if side is not None:
            side(cursor, record)

    def _begin(self, cursor: ProjectionCursor, record: Record) -> None:
        run = requested(record)
        run_rows.insert(cursor, run, record)
        key = record.event.data.get("key")
        if key:
            cursor.execute("INSERT OR IGNORE INTO request_keys VALUES (?, ?)", (key, run.id))

    def _continue(self, cursor: ProjectionCursor, record: Record, run: RunId) -> None:
        before = run_rows.find(cursor.execute, run)
        if before is None:
            return  # a record about a run of another ledger (a page for a foreign mark)
        after = fold(before, record)
        run_rows.update(cursor, before, after, record)
        if after.state.final:
            cursor.execute("DELETE FROM locks WHERE run = ?", (run,))
            if after.parent is not None:
                _wake(cursor, after.parent, record)

    def _jump(self, cursor: ProjectionCursor, record: Record) -> None:
        for run in run_rows.select(cursor.execute, "open = 1"):
            run_rows.update(cursor, run, fold(run, record), record)
        # The hourly limit and the next try of a page count time, not what the wall clock says.
        by = _data(record)["by_us"]
        for table in ("effects", "pages"):
            cursor.execute(f"UPDATE {table} SET at_us = at_us + ?", (by,))  # noqa: S608


def _wake(cursor: ProjectionCursor, parent: RunId, record: Record) -> None:
    """A child ended: its caller is due now."""
    run = run_rows.find(cursor.execute, parent)
    if run is not None and run.state.acts:
        run_rows.update(cursor, run, replace(run, due_at=record.at), record)


def _data(record: Record) -> dict[str, Any]:
    """The record's data; its shape was fixed when it was written."""
    return dict(record.event.data)


def _locks_taken(cursor: ProjectionCursor, record: Record) -> None:
    for atom in unpacked(record.event.data)["atoms"]:
        cursor.execute(
            "INSERT INTO locks VALUES (?, ?, ?)",
            (atom, record.event.run, microseconds(record.at)),
        )


def _intended(cursor: ProjectionCursor, record: Record) -> None:
    data = _data(record)
    if data.get("mark"):
        cursor.execute(
            "INSERT OR REPLACE INTO marks VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                *_marked(record),
                data["mark"],
                data.get("mark_run", record.event.run),
                data["looked"].get("boot_id", ""),
                "",
                microseconds(record.at),
            ),
        )
    if data.get("may_end_jobs"):
        cursor.execute(
            "INSERT INTO effects VALUES (?, ?, ?, ?, ?)",
            (
                record.seq,
                microseconds(record.at),
                record.event.cluster,
                data.get("pool"),
                record.event.run,
            ),
        )


def _finished(cursor: ProjectionCursor, record: Record) -> None:
    data = _data(record)
    place = _marked(record)
    outcome = data["outcome"]
    if data.get("mark") and outcome == "done":
        cursor.execute(
            "UPDATE marks SET text = ?, at_us = ? WHERE cluster = ? AND node = ? AND kind = ?",
            (data.get("mark_text", ""), microseconds(record.at), *place, data["mark"]),
        )
    # A failed attempt set nothing; an unknown one keeps its mark until a person has looked.
    drops = data.get("mark") if outcome in {"failed", "again"} else None
    drops = data.get("clears") if outcome in {"done", "undone"} and data.get("clears") else drops
    if drops:
        cursor.execute(
            "DELETE FROM marks WHERE cluster = ? AND node = ? AND kind = ?", (*place, drops)
        )


def _mark_lost(cursor: ProjectionCursor, record: Record) -> None:
    cursor.execute(
        "DELETE FROM marks WHERE cluster = ? AND node = ? AND kind = ?",
        (*_marked(record), _data(record)["mark"]),
    )


def _marked(record: Record) -> tuple[str | None, str | None]:
    """The cluster, and what a mark stands on: the node, or what the record names instead."""
    return record.event.cluster, _data(record).get("mark_on") or record.event.node


def _hands_off(cursor: ProjectionCursor, record: Record) -> None:
    for node in unpacked(record.event.data)["nodes"]:
        cursor.execute(
            "INSERT OR REPLACE INTO hands_off VALUES (?, ?, ?, ?, ?)",
            (
                record.event.cluster,
                node,
                record.event.actor,
                _data(record)["why"],
                microseconds(record.at),
            ),
        )


def _hands_on(cursor: ProjectionCursor, record: Record) -> None:
    for node in unpacked(record.event.data)["nodes"]:
        cursor.execute(
            "DELETE FROM hands_off WHERE cluster = ? AND node = ?", (record.event.cluster, node)
        )


def _tripped(cursor: ProjectionCursor, record: Record) -> None:
    data = _data(record)
    cursor.execute(
        "INSERT OR IGNORE INTO latches VALUES (?, ?, ?)",
        (data["limit"], data["why"], microseconds(record.at)),
    )


def _cleared(cursor: ProjectionCursor, record: Record) -> None:
    cursor.execute("DELETE FROM latches WHERE name = ?", (_data(record)["limit"],))


def _halted(cursor: ProjectionCursor, record: Record) -> None:
    cursor.execute(
        "INSERT OR IGNORE INTO halts VALUES (1, ?, ?, ?)",
        (record.event.actor, _data(record)["why"], microseconds(record.at)),
    )


def _unhalted(cursor: ProjectionCursor, _record: Record) -> None:
    cursor.execute("DELETE FROM halts", ())


def _page_intended(cursor: ProjectionCursor, record: Record) -> None:
    data = _data(record)
    cursor.execute(
        "INSERT INTO pages VALUES (?, ?, ?, 'intended', ?, 0, ?, '', ?) ON CONFLICT (key) DO UPDATE SET "
        "summary = excluded.summary, state = 'intended', at_us = excluded.at_us, tries = 0, "
        "details = excluded.details, detail = '', resolved = excluded.resolved",
        (
            data["key"],
            record.event.run,
            data["summary"],
            microseconds(record.at),
            data["details"],
            int(data.get("resolved", False)),
        ),
    )


def _page_tried(cursor: ProjectionCursor, record: Record) -> None:
    data = _data(record)
    state = "accepted" if record.event.kind is EventKind.PAGE_ACCEPTED else "not_sent"
    cursor.execute(
        "UPDATE pages SET state = ?, tries = tries + 1, detail = ? WHERE key = ? AND at_us = ?",
        (state, data["detail"], data["key"], data["of_us"]),
    )


def _card(cursor: ProjectionCursor, record: Record) -> None:
    data = _data(record)
    cursor.execute(
        "INSERT OR REPLACE INTO cards VALUES (?, ?, ?)",
        (record.event.run, data["channel"], data["message"]),
    )


def _noted(cursor: ProjectionCursor, record: Record) -> None:
    for note in _data(record)["notes"]:
        cursor.execute("INSERT OR IGNORE INTO card_notes VALUES (?, ?)", (record.event.run, note))


_SIDES = {
    EventKind.LOCKS_TAKEN: _locks_taken,
    EventKind.STEP_INTENDED: _intended,
    EventKind.STEP_FINISHED: _finished,
    EventKind.STEP_RESOLVED: _finished,
    EventKind.MARK_LOST: _mark_lost,
    EventKind.HANDS_OFF_SET: _hands_off,
    EventKind.HANDS_OFF_CLEARED: _hands_on,
    EventKind.LIMIT_TRIPPED: _tripped,
    EventKind.LIMIT_CLEARED: _cleared,
    EventKind.HALT_SET: _halted,
    EventKind.HALT_CLEARED: _unhalted,
    EventKind.PAGE_INTENDED: _page_intended,
    EventKind.PAGE_ACCEPTED: _page_tried,
    EventKind.PAGE_NOT_SENT: _page_tried,
    EventKind.CARD_POSTED: _card,
    EventKind.CARD_NOTED: _noted,
}
