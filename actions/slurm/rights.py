"""Which rights the bot's Slurm user has, as far as that shows without acting.

Called by `actions.catalogue`, for `doctor` and for the policy: a verb whose right is missing is only
told (hands 1). Asks slurmdbd alone, which knows the AdminLevel; changes nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import IntEnum

from actions.shell import Command
from actions.slurm.tools import Runs, SlurmSettings, words_of_controller

_LIMIT = timedelta(seconds=10)


class AdminLevel(IntEnum):
    """As slurmdbd knows them, each with what the one below may."""

    NONE = 0
    """Sees; with PrivateData=jobs its own jobs only."""
    OPERATOR = 1
    """Requeue, job updates, reservations."""
    ADMINISTRATOR = 2
    """Updates of nodes and partitions, reboot."""


_OF_AREA = {
    "node": AdminLevel.ADMINISTRATOR,
    "partition": AdminLevel.ADMINISTRATOR,
    "job": AdminLevel.OPERATOR,
    "reservation": AdminLevel.OPERATOR,
}
"""What Slurm wants for the verbs of each area; others write nothing into Slurm."""
_OF_EMPTY_NODES = frozenset({"node.reboot"})
"""Ends no job, if the node is as empty as it was shown to be: so what was shown needs its proof too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rights:
    """What is missing."""

    said: tuple[str, ...] = ()
    """One sentence for each thing that is missing or could not be proven."""
    lacks: Mapping[str, str] = field(default_factory=dict)
    """Why a verb must not be tried, by its name."""


def rights(settings: SlurmSettings, runner: Runs, verbs: Mapping[str, bool]) -> Rights:
    """What the bot's user lacks for these verbs; the value of each: whether it may end a job."""
    user = settings.own_user
    done = runner.run(
        Command(
            argv=(
                *("sacctmgr", "--readonly", "--noheader", "--parsable2", "show", "user"),
                *(user, "format=User,AdminLevel"),
            ),
            time_limit=_LIMIT,
            environment=settings.environment,
        )
    )
    if not done.ok:
        why = done.lost or words_of_controller(done).replace("\n", " ")
        return _unproven(user, why, verbs)
    levels = [line.partition("|")[2].upper() for line in done.stdout.splitlines()]
    level = levels[0] if levels else ""
    has = AdminLevel.__members__.get(level, AdminLevel.NONE)
    return _missing(user, has, known=bool(levels), verbs=verbs)


def _unproven(user: str, why: str, verbs: Mapping[str, bool]) -> Rights:
    """Slurm itself refuses what it must; but what can end a job waits for proof (hands 1)."""
    said = (
        f"accounting does not answer, so neither the rights of {user} nor a Reason that was "
        f"written in the second of our own write can be seen: {why}"
    )
    short = (
        f"accounting does not answer, so nothing proves that {user} may do it: see `sacctmgr ping`"
    )
    lacks = {verb: f"{verb} could end jobs, and {short}" for verb in _could_end_jobs(verbs)}
    return Rights(said=(said,), lacks=lacks)


def _could_end_jobs(verbs: Mapping[str, bool]) -> tuple[str, ...]:
    return tuple(verb for verb, ends in verbs.items() if ends or verb in _OF_EMPTY_NODES)


def _missing(user: str, has: AdminLevel, *, known: bool, verbs: Mapping[str, bool]) -> Rights:
    wants = {verb: _OF_AREA.get(verb.partition(".")[0], AdminLevel.NONE) for verb in verbs}
    refused = {verb: level for verb, level in wants.items() if level > has}
    if not refused and has is AdminLevel.ADMINISTRATOR:
        return Rights()
    level = "Admin" if AdminLevel.ADMINISTRATOR in refused.values() else "Operator"
    grant = f"`sacctmgr modify user {user} set adminlevel={level}`"
    if not known:
        grant = f"`sacctmgr add user {user} account=... adminlevel={level}`"
    held = f"{user} has AdminLevel={has.name.capitalize()}"
    parts = []
    if refused:
        parts.append(f"Slurm will refuse {', '.join(sorted(refused))}: {grant}")
    if has is AdminLevel.NONE:
        parts.append("with PrivateData=jobs it sees no other user's job")
    # Fewer rights than expected may also hide jobs: then nothing is done that could end one (hands 1).
    unsafe = f"{held}, less than this bot is expected to have"
    ending = {
        verb: f"{unsafe}, so {verb}, which could end jobs, is not tried: {grant}"
        for verb in (_could_end_jobs(verbs) if refused else ())
    }
    return Rights(
        said=(f"{held}: {'; '.join(parts)}",) if parts else (),
        lacks=ending | {verb: f"{held}, so Slurm will refuse {verb}: {grant}" for verb in refused},
    )
