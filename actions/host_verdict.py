"""Whether a silent host is dead, from what several places saw of it (hands 2). Pure.

Used by `actions.host_look`, which gathers the signs. "Dead" opens the way to taking its power, so it
needs every sign; one that is missing makes the host silent, which opens nothing. A dead host may
still write to shared storage: only its power says that it does not.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from actions.remote_values import Reach, Reachability
from actions.vantage import Answer, References, Tried


class HostVerdict(StrEnum):
    """What is known of a host."""

    ALIVE = "alive"
    """Something on it answered somebody."""
    DEAD = "dead"
    """It answers nobody, on no port, from no place, and slurmctld hears nothing of it."""
    SILENT = "silent"
    """It does not answer, and that it is dead is not shown."""
    CUT_OFF = "cut_off"
    """The bot itself reaches nothing: no diagnosis, no action."""
    UNKNOWN = "unknown"
    """It could not be asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Signs:
    """What was seen of one host."""

    reach: Reachability
    """What ssh met."""
    responding: bool
    """Whether slurmd answered slurmctld the last time that it was asked, which is up to 100 s ago."""
    references: References
    tried: tuple[Tried, ...] = ()
    """Its known ports, by the bot and by other nodes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The verdict, what proves it, and what keeps a silent host from counting as dead."""

    host: HostVerdict
    evidence: tuple[str, ...]
    missing: tuple[str, ...] = ()

    @property
    def why(self) -> str:
        """One sentence for people."""
        return "; ".join((*self.missing, *self.evidence))


BOT = "the bot"
"""Name of its place in `Tried`."""


def judge(signs: Signs) -> Verdict:
    """The verdict on a host."""
    met = f"ssh: {signs.reach.reach.value} ({signs.reach.evidence[:120]})"
    if signs.reach.reach.host_alive:
        return Verdict(host=HostVerdict.ALIVE, evidence=(met,))
    if signs.references.named and not signs.references.reached:
        said = f"the bot reaches none of its {signs.references.named} reference hosts"
        return Verdict(host=HostVerdict.CUT_OFF, evidence=(said,))
    if signs.reach.reach is Reach.NOT_ASKED:
        return Verdict(host=HostVerdict.UNKNOWN, evidence=(met,))
    answered = [found for found in signs.tried if found.answer is Answer.ANSWERED]
    if answered:
        shown = tuple(f"it answers {found.place}: {found.evidence[:120]}" for found in answered)
        return Verdict(host=HostVerdict.ALIVE, evidence=(*shown, met))
    evidence = (met, *(_said(found) for found in signs.tried))
    missing = tuple(_missing(signs))
    host = HostVerdict.SILENT if missing else HostVerdict.DEAD
    return Verdict(host=host, evidence=evidence, missing=missing)


def _said(found: Tried) -> str:
    word = "no answer to" if found.answer is Answer.SILENT else "not asked by"
    return f"{word} {found.place}: {found.evidence[:120]}"


def _missing(signs: Signs) -> Iterator[str]:
    """Every sign of death that is not there."""
    if signs.reach.reach is not Reach.TIME_OUT:
        yield f"ssh met {signs.reach.reach.value}, which is no time-out"
    if signs.responding:
        yield "slurmctld has not noticed its silence yet (no NOT_RESPONDING)"
    silent = {found.place for found in signs.tried if found.answer is Answer.SILENT}
    if BOT not in silent:
        yield "its known TCP ports were not tried by the bot"
    if not silent - {BOT}:
        yield "no other node could try to reach it"
    if 2 * signs.references.reached <= signs.references.named or not signs.references.named:
        yield (
            f"the bot reaches {signs.references.reached} of {signs.references.named} reference hosts"
        )
