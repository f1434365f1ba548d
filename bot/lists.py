"""`list …`: what there is of runs, runbooks, nodes, people, marks and limits.

Called by `bot.answers` after the permission check. Reads projections and the last snapshots; it never
asks a cluster.
"""

import difflib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from actions.cluster import KNOWN_FLAGS, Node, NodeBase, Overview
from bot.commands import VERBS, Verb
from bot.identities import Identities
from bot.inventory import Inventory
from bot.left_marks import LeftMarks
from bot.phrases import Command, Misread
from bot.replies import Reply, done
from config.clock import from_microseconds
from config.ids import ClusterName
from config.json_values import Json
from config.node_names import NodeName, fold
from runbooks.cards import Cards
from runbooks.parts import Parts
from runbooks.run import Run, run_nodes

MOST_ROWS = 40
"""Rows of a list; more are counted, not shown."""
OUT = "out"
"""Beside Slurm's own words: every node that is unavailable, for whatever reason."""
_MOST_JOBS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """Lines for people, rows for programs."""

    lines: list[str]
    rows: list[Json] = field(default_factory=list)


class Lists:
    """Every list."""

    def __init__(
        self, parts: Parts, identities: Identities, inventory: Inventory, cards: Cards
    ) -> None:
        """Over the parts of the bot."""
        self._parts = parts
        self._identities = identities
        self._inventory = inventory
        self._cards = cards
        self._lists: Mapping[str, Callable[[Command], Listed]] = {
            "runs": self._runs,
            "approvals": lambda _command: self._runs_where("state = 'awaiting_approval'"),
            "runbooks": self._runbooks,
            "nodes": self._nodes,
            "people": self._people,
            "marks": self._marks,
            "limits": lambda _command: _same([f"{name}: {why}" for name, why in self.latches()]),
            "hands-off": self._hands_off,
        }

    def answer(self, command: Command) -> Reply:
        """One list. Raises Misread."""
        what = command.words[0] if command.words else "runs"
        found = self._lists.get(what)
        if found is None:
            near = difflib.get_close_matches(what, list(self._lists), n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise Misread(f"cannot list {what!r}{hint or '.'} Usage: {VERBS[Verb.LIST].usage}")
        if len(command.words) > 1 and what != "nodes":
            raise Misread(f"{what} takes no further word. Usage: {VERBS[Verb.LIST].usage}")
        listed = found(command)
        lines = listed.lines
        more = (f"… and {len(lines) - MOST_ROWS} more",) if len(lines) > MOST_ROWS else ()
        shown = lines[:MOST_ROWS] or [f"no {what}"]
        return done(*shown, *more, data={what: listed.rows})

    def one_line(self, run: Run) -> str:
        """A run in one line."""
        asker = self._identities.name(run.requested_by)
        why = f": {run.why}" if run.why else ""
        where = fold(run_nodes(run))
        return f"{run.id} {run.runbook} {where} {run.state} (asked by {asker}){why}"

    def latches(self) -> list[tuple[str, str]]:
        """Limits that are latched, and why."""
        rows = self._parts.ledger.query("SELECT name, why FROM latches ORDER BY name")
        return [(str(name), str(why)) for name, why in rows]

    def _runs(self, command: Command) -> Listed:
        return self._runs_where("1 = 1" if "all" in command.flags else "open = 1")

    def _runs_where(self, condition: str) -> Listed:
        return _same([self.one_line(run) for run in reversed(self._cards.runs(condition))])

    def _runbooks(self, _command: Command) -> Listed:
        lines = []
        for name in self._parts.library.names():
            book = self._parts.library.definition(name).runbook
            given = " ".join(parameter.name.upper() for parameter in book.parameters)
            lines.append(f"{name} v{book.version} {given}: {book.title} ({book.permission})")
        return _same(lines)

    def _people(self, _command: Command) -> Listed:
        people = sorted(self._identities.everybody(), key=lambda person: person.name)
        lines = [
            f"{person.name}: {', '.join(sorted(person.roles)) or 'no role'}" for person in people
        ]
        return _same(lines)

    def _marks(self, _command: Command) -> Listed:
        rows = self._parts.ledger.query(
            "SELECT cluster, node, kind, run, at_us FROM marks ORDER BY cluster, node"
        )
        lines = [
            f"{cluster}/{node} {kind} by {run} since {from_microseconds(at):%Y-%m-%d %H:%M} UTC"
            for cluster, node, kind, run, at in rows
        ]
        left = LeftMarks(self._parts.ledger, self._inventory.clusters, self._inventory.snapshot)
        return _same([*lines, *left.lines()])

    def _hands_off(self, _command: Command) -> Listed:
        rows = self._parts.ledger.query(
            "SELECT cluster, node, why, at_us FROM hands_off ORDER BY cluster, node"
        )
        lines = [
            f"{cluster}/{node} since {from_microseconds(at):%Y-%m-%d %H:%M} UTC: {why}"
            for cluster, node, why, at in rows
        ]
        return _same(lines)

    # -- nodes --------------------------------------------------------------------------------

    def _nodes(self, command: Command) -> Listed:
        """As last seen; equal ones on one line for people, one row each for programs."""
        wanted = _state_named(command.words[1]) if len(command.words) > 1 else ""
        named = command.options.get("cluster")
        clusters = (self._inventory.cluster(named),) if named else self._inventory.clusters()
        lines, rows = list[str](), list[Json]()
        for cluster in clusters:
            found = list(self._rows(cluster, wanted, command.options.get("like", "")))
            rows.extend(found)
            lines.extend(_lines(cluster if len(clusters) > 1 else "", found))
            trouble = self._inventory.trouble(cluster)
            if trouble:
                lines.append(f"{cluster} does not answer: {trouble}; this is as it was last seen")
        return Listed(lines=lines, rows=rows)

    def _rows(self, cluster: ClusterName, wanted: str, like: str) -> Iterator[dict[str, Json]]:
        snapshot = self._inventory.snapshot(cluster)
        if snapshot is None:
            return
        owners, jobs = self._owners(cluster), Overview.of(snapshot).jobs
        for name, node in snapshot.nodes.items():
            if not name.startswith(like) or not _fits(node, wanted):
                continue
            yield {
                "cluster": cluster,
                "node": name,
                "state": node.state,
                "reason": node.reason,
                "owner": owners.get(name) or (node.reason_by if node.out else ""),
                "jobs": [{"id": job.id, "user": job.user} for job in jobs.get(name, ())],
            }

    def _owners(self, cluster: ClusterName) -> dict[NodeName, str]:
        """Who holds a node by our own ledger: the label goes before the mark."""
        marks = self._parts.ledger.query(
            "SELECT node, run FROM marks WHERE cluster = ? AND kind = 'drain'", (cluster,)
        )
        labels = self._parts.ledger.query(
            "SELECT node, why FROM hands_off WHERE cluster = ?", (cluster,)
        )
        return {
            **{NodeName(node): str(run) for node, run in marks},
            **{NodeName(node): f"hands off: {why}" for node, why in labels},
        }


def _same(lines: list[str]) -> Listed:
    """For programs the same as for people."""
    return Listed(lines=lines, rows=list(lines))


def _lines(cluster: str, rows: list[dict[str, Json]]) -> Iterator[str]:
    """Nodes of which the same is to be said stand together."""
    said: dict[str, list[NodeName]] = {}
    for row in rows:
        said.setdefault(_said(row), []).append(NodeName(str(row["node"])))
    where = f"{cluster}/" if cluster else ""
    for text, names in said.items():
        yield f"{where}{fold(names)} {text}"


def _said(row: dict[str, Json]) -> str:
    owner = f" by {row['owner']}" if row["owner"] else ""
    reason = f": {row['reason']}" if row["reason"] else ""
    entries = row["jobs"] if isinstance(row["jobs"], list) else []
    jobs = [f"{job['id']} ({job['user']})" for job in entries if isinstance(job, dict)]
    more = f" and {len(jobs) - _MOST_JOBS} more" if len(jobs) > _MOST_JOBS else ""
    work = f"; job {', '.join(jobs[:_MOST_JOBS])}{more}" if jobs else ""
    return f"{row['state']}{owner}{reason}{work}"


def _state_named(word: str) -> str:
    """A base word or flag of Slurm, or `out`. Raises Misread."""
    known = [OUT, *(base.value for base in NodeBase), *sorted(KNOWN_FLAGS)]
    for name in known:
        if word.upper() == name.upper():
            return name
    near = difflib.get_close_matches(word.upper(), known, n=2)
    hint = f"; did you mean {' or '.join(near).lower()}?" if near else ""
    raise Misread(f"no node state is called {word!r}{hint or '.'} Usage: {VERBS[Verb.LIST].usage}")


def _fits(node: Node, wanted: str) -> bool:
    if wanted == OUT:
        return node.out
    return not wanted or wanted == node.base.value or wanted in node.flags
