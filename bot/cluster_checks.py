"""Whether this bot may and can work on each cluster: asked at start, then every ten minutes.

Made by `bot.wiring`, which also makes it a duty of the worker and hangs it into `doctor`. Reads only.
A bot that must not act is refused here at start; where the controller was silent then, the Slurm
client refuses each write while a fault stands.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from actions.catalogue import ClusterSite, Rights
from actions.contract import Refusal, Unreadable
from bot.diagnostics import Finding
from bot.inventory import Inventory
from config.clock import Clock
from config.ids import ClusterName

log = logging.getLogger(__name__)

EVERY = timedelta(minutes=10)


class ClusterRefused(Exception):
    """A cluster on which this bot must not act as it is set up; says what to do."""


@dataclass(frozen=True, slots=True)
class _Checked:
    """One answer of a cluster."""

    faults: tuple[str, ...]
    rights: Rights


class ClusterChecks:
    """Asks, remembers, and tells `doctor`."""

    def __init__(
        self,
        sites: Mapping[ClusterName, ClusterSite],
        inventory: Inventory,
        clock: Clock,
        own_user: str,
    ) -> None:
        """Nothing is asked yet."""
        self._sites = sites
        self._inventory = inventory
        self._clock = clock
        self._own_user = own_user
        self._last: timedelta | None = None
        self._checked: Mapping[ClusterName, _Checked] = {}

    def refuse_faulty(self) -> None:
        """At start. Raises ClusterRefused; a cluster that does not answer is no reason to stay away."""
        self._ask()
        faults = [
            f"cluster {name}: {fault}"
            for name, checked in self._checked.items()
            for fault in checked.faults
        ]
        if faults:
            raise ClusterRefused("\n".join(faults))

    def tick(self) -> None:
        """Ask again when it is time, and as long as a cluster has not answered."""
        now = self._clock.now().monotonic
        late = self._last is None or now - self._last >= EVERY
        answers = set(self._inventory.clusters()) - set(self._checked)
        if late or any(not self._inventory.trouble(name) for name in answers):
            self._ask()

    def findings(self) -> tuple[Finding, ...]:
        """For `doctor`: each fault, each missing right, and whether others' jobs are seen."""
        return tuple(
            finding for name in self._sites for finding in (*self._rights(name), *self._sight(name))
        )

    def lacks(self, name: ClusterName, verb: str) -> str:
        """Which right is missing for this verb there, as last seen; empty when none is known to be."""
        checked = self._checked.get(name)
        return checked.rights.lacks.get(verb, "") if checked is not None else ""

    def _rights(self, name: ClusterName) -> list[Finding]:
        checked = self._checked.get(name)
        if checked is None:
            text = f"cluster {name}: the bot's rights are not known, it has not answered yet"
            return [Finding(False, text)]
        return [
            *(Finding(False, f"cluster {name}: {fault}") for fault in checked.faults),
            *(Finding(False, f"cluster {name}: {right}") for right in checked.rights.said),
            *(Finding(True, f"cluster {name}: {said}") for said in self._sites[name].remarks()),
        ]

    def _sight(self, name: ClusterName) -> list[Finding]:
        snapshot = self._inventory.snapshot(name)
        if snapshot is None or snapshot.blind:
            return []  # told by the findings about the cluster itself
        others = [job.user for job in snapshot.jobs if job.user != self._own_user]
        at = f"({snapshot.taken_at:%H:%M} UTC)"
        text = f"{len(others)} jobs of {len(set(others))} other users are seen {at}"
        if not others:
            text = f"not provable now: no other user has a job, so nothing proves that one were seen {at}"
        found = [Finding(True, f"cluster {name}: {text}")]
        elsewhere = [job for job in snapshot.jobs if job.elsewhere(name)]
        if elsewhere:
            origin = ", ".join(sorted({job.federation_origin for job in elsewhere})[:3])
            text = (
                f"{len(elsewhere)} jobs were submitted on {origin}: none of them is acted on here"
            )
            found.append(Finding(True, f"cluster {name}: {text}"))
        return found

    def _ask(self) -> None:
        self._last = self._clock.now().monotonic
        found = {}
        for name, site in self._sites.items():
            try:
                found[name] = _Checked(site.faults(), site.rights())
            except (Unreadable, Refusal) as problem:
                log.warning("cluster %s could not be checked: %s", name, problem)
        self._checked = found
