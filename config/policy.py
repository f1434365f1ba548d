"""What the bot may do by itself, and the limits it keeps: the part of the configuration that a plan
is bound to.

Its canonical text is stored with each run and its digest enters the plan's hash, so a changed policy
voids what was approved under the old one. Pure: the shipped defaults stand in the fields.
"""

import hashlib
import json
from enum import StrEnum

from config.durations import format_duration, parse_duration
from config.fields import Count, Duration, Key, Section


class Autonomy(StrEnum):
    """How far the bot goes without a person."""

    OBSERVE = "observe"
    """Tell what it sees."""
    PROPOSE = "propose"
    """Show the plan with a button; a person approves."""
    ACT = "act"
    """Act within the limits, and tell."""


class AskedBy(StrEnum):
    """Whose request a rule of autonomy is for."""

    ANYONE = "anyone"
    """Persons and machines."""
    PERSON = "person"
    """Only when a person asked."""


class AutonomyRule(Section):
    """One exception from the default."""

    runbook: Key
    """Name of the runbook."""
    cause: Key | None = None
    """Id of the cause (`A1`). Default: none, the rule is for every cause."""
    asked_by: AskedBy = AskedBy.ANYONE
    """`person`: only when a person asked; `anyone`: also for machines. Default: anyone."""
    level: Autonomy
    """observe, propose or act."""


SHIPPED_RULES = (
    AutonomyRule(runbook="node-dropped", cause="A1", level=Autonomy.ACT),
    AutonomyRule(runbook="drain-node", asked_by=AskedBy.PERSON, level=Autonomy.ACT),
    AutonomyRule(runbook="return-node", asked_by=AskedBy.PERSON, level=Autonomy.ACT),
)
"""A1 acts because jobs die at SlurmdTimeout and nobody presses a button that fast (design 6)."""


class AutonomySettings(Section):
    """Autonomy per runbook and cause."""

    default: Autonomy = Autonomy.PROPOSE
    """For whatever no rule names. Default: propose."""
    rules: tuple[AutonomyRule, ...] = SHIPPED_RULES
    """Exceptions; of several that fit, the one with a cause decides, then the more careful one. A list
    given here replaces the shipped one. Default: node-dropped/A1, and drain-node and return-node
    when a person asked: act."""

    def level(self, runbook: str, cause: str | None, *, asked_by_person: bool) -> Autonomy:
        """How far the bot may go here."""
        fits = [
            rule
            for rule in self.rules
            if rule.runbook == runbook
            and rule.cause in {None, cause}
            and (asked_by_person or rule.asked_by is AskedBy.ANYONE)
        ]
        named = [rule for rule in fits if rule.cause is not None]
        levels = [rule.level for rule in named or fits]
        return min(levels, key=list(Autonomy).index, default=self.default)


class Limits(Section):
    """Rails that latch until a person clears them (hands 5)."""

    ending_actions_per_hour: Count = 5
    """Actions that can end a job, per hour, over the whole bot. Default: 5."""
    ending_actions_per_hour_per_pool: Count = 5
    """The same for one pool. Default: 5."""
    gpus_two_persons: Count = 64
    """A plan that ends jobs with more GPUs than this needs two approvers. Default: 64 GPUs."""
    correlated_nodes: Count = 3
    """So many nodes with the same trouble are one incident and stop automatic action. Default: 3."""
    correlated_within: Duration = parse_duration("10m")
    """Time in which they are counted together. Default: 10m."""
    starts_per_node: Duration = parse_duration("1h")
    """A service is started by the bot alone at most once per node in this time. Default: 1h."""


class Approvals(Section):
    """What an approval is worth."""

    expiry: Duration = parse_duration("15m")
    """A plan that nobody has approved by then expires. Default: 15m."""
    replans: Count = 3
    """So often a plan is made again because the world moved; then a person is needed. Default: 3."""


class Policy(Section):
    """Limits, approvals and autonomy together."""

    limits: Limits = Limits()
    """Limits that stop the bot."""
    approvals: Approvals = Approvals()
    """Expiry of approvals and repeats of plans."""
    autonomy: AutonomySettings = AutonomySettings()
    """What is done without asking."""

    def text(self) -> str:
        """The canonical text, as it is stored with a run."""
        return json.dumps(
            self.model_dump(mode="python"),
            default=format_duration,
            sort_keys=True,
            separators=(",", ":"),
        )

    def digest(self) -> str:
        """SHA-256 (hex) of the canonical text, for the plan's hash."""
        return hashlib.sha256(self.text().encode("ascii")).hexdigest()
