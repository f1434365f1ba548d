"""Makes the canary that a site's configuration describes. Used by `actions.catalogue`."""

from collections.abc import Mapping

from actions.canary.plan import KEPT
from actions.canary.sbatch import CanarySettings, Runs, SbatchCanary
from actions.canary.settings import CanaryRules
from config.canary_settings import Canary


def rules_of(canary: Canary | None) -> CanaryRules | None:
    """What the verbs must know of it; None where the site has none."""
    return None if canary is None else CanaryRules(user=canary.user, time_limit=canary.time_limit)


def open_canary(
    canary: Canary | None, environment: Mapping[str, str], runner: Runs
) -> SbatchCanary | None:
    """The hands of a real cluster, whose tools have that environment; None where the site has none."""
    if canary is None:
        return None
    wanted = CanarySettings(
        user=canary.user,
        command=canary.command,
        time_limit=canary.time_limit,
        pending_limit=KEPT,
        account=canary.account or "",
        partition=canary.partition or "",
        output=canary.output,
        environment=environment,
    )
    return SbatchCanary(wanted, runner)
