"""Which rights the bot's Slurm user has, as far as that shows without acting.

Called by `actions.catalogue` for `doctor`. Asks slurmdbd alone, which knows the AdminLevel; changes
nothing.
"""

from datetime import timedelta

from actions.shell import Command
from actions.slurm.tools import Runs, SlurmSettings, words_of_controller

_LIMIT = timedelta(seconds=10)
_ADMIN, _OPERATOR = "administrator", "operator"


def missing_rights(settings: SlurmSettings, runner: Runs) -> tuple[str, ...]:
    """One sentence for each right that is missing or could not be proven; empty when all are there."""
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
        return (
            f"accounting does not answer, so neither the rights of {user} nor a Reason that was "
            f"written in the second of our own write can be seen: {why}",
        )
    levels = [line.partition("|")[2].lower() for line in done.stdout.splitlines()]
    level = levels[0] if levels else ""
    if level == _ADMIN:
        return ()
    grant = f"`sacctmgr modify user {user} set adminlevel=Admin`"
    if not levels:
        grant = f"`sacctmgr add user {user} account=... adminlevel=Admin`"
    verbs = "node.drain and node.return"
    if level != _OPERATOR:
        verbs += "; with PrivateData=jobs it sees no other user's job"
    return (f"{user} has AdminLevel={level or 'none'}: Slurm will refuse {verbs}: {grant}",)
