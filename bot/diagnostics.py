"""`doctor`: what is wrong with the bot itself, one line for each thing, the worst first.

Reads only. Each line says what, where, and what to do next.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from audit_log.anchoring import Anchoring
from bot.inventory import Inventory
from bot.replies import Reply, done
from config.settings import Settings
from runbooks.parts import Parts

OLD_SNAPSHOT = timedelta(minutes=2)
"""A cluster that was not read for so long is not seen any more."""
OLD_ANCHOR = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    good: bool
    text: str


class Doctor:
    """Looks at the bot's own surroundings."""

    def __init__(
        self, settings: Settings, parts: Parts, inventory: Inventory, anchoring: Anchoring
    ) -> None:
        """`doors` may add findings later (Slack)."""
        self._settings = settings
        self._parts = parts
        self._inventory = inventory
        self._anchoring = anchoring
        self.doors: list[Callable[[], tuple[Finding, ...]]] = []

    def examine(self) -> Reply:
        """All findings; `ok` in the data is whether nothing is wrong."""
        findings = [
            *self._clusters(),
            *self._ledger(),
            *self._stops(),
            *self._pages(),
            *(finding for door in self.doors for finding in door()),
        ]
        findings.sort(key=lambda finding: finding.good)
        bad = sum(1 for finding in findings if not finding.good)
        lines = [f"{'ok ' if finding.good else 'BAD'} {finding.text}" for finding in findings]
        summary = f"{bad} of {len(findings)} need attention" if bad else "nothing is wrong"
        return done(*lines, summary, data={"ok": bad == 0, "findings": lines})

    def _clusters(self) -> list[Finding]:
        now = self._parts.clock.now().wall
        found = []
        for name in self._inventory.clusters():
            snapshot = self._inventory.snapshot(name)
            if snapshot is None or now - snapshot.taken_at > OLD_SNAPSHOT:
                since = f"since {snapshot.taken_at:%H:%M} UTC" if snapshot else "since the start"
                why = self._inventory.trouble(name) or "see `scontrol ping` as the bot's user"
                text = f"cluster {name} has not answered {since}: {why}"
                found.append(Finding(False, text))
                continue
            for why in snapshot.blind:
                text = (
                    f"cluster {name}: the job list cannot be believed: {why}; nothing may end a job"
                )
                found.append(Finding(False, text))
            strange = sorted(node.name for node in snapshot.nodes.values() if node.unknown_flags)
            if strange:
                text = f"cluster {name}: {strange[0]} has a state this version does not know"
                found.append(Finding(False, text))
            version = snapshot.controller.version
            text = f"cluster {name}: {len(snapshot.nodes)} nodes, Slurm {version}"
            found.append(Finding(True, text))
        return found

    def _ledger(self) -> list[Finding]:
        status = self._anchoring.status()
        found = []
        if not status.leaves_host:
            text = (
                "no anchor of the audit log leaves this host: whoever owns it can rewrite history; "
                "set anchors.files to a file on another host"
            )
            found.append(Finding(False, text))
        if status.age > OLD_ANCHOR:
            text = f"{status.records_behind} records are newer than the newest anchor"
            found.append(Finding(False, text))
        found.extend(Finding(False, f"anchor {why}") for why in status.failing)
        found.append(Finding(True, f"audit log: {self._parts.ledger.head.seq} records"))
        return found

    def _stops(self) -> list[Finding]:
        found = []
        halted = self._parts.halt.reason()
        if halted is not None:
            found.append(Finding(False, f"halted: {halted or 'no reason given'}; `halt --clear`"))
        rows = self._parts.ledger.query("SELECT name, why FROM latches ORDER BY name")
        for name, why in rows:
            text = f"the limit {name} is latched: {why}; `halt --clear-limit {name}`"
            found.append(Finding(False, text))
        return found

    def _pages(self) -> list[Finding]:
        rows = self._parts.ledger.query(
            "SELECT summary, detail FROM pages WHERE state = 'not_sent' ORDER BY at_us"
        )
        found = [Finding(False, f"page NOT SENT: {summary} ({detail})") for summary, detail in rows]
        kinds = ", ".join(backend.kind.value for backend in self._settings.pages)
        return [*found, Finding(True, f"pages go by {kinds}")]
