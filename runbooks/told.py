"""Everything beside the run that its card tells. Filled by `runbooks.cards`; values only."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from config.ids import ActorId
from config.json_values import JsonMap
from runbooks.plan import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What the words are made from."""

    plan: Plan
    outputs: Mapping[str, JsonMap]
    """Outputs of steps by key, artefacts read."""
    name: Callable[[ActorId], str]
    page: str = ""
    """What became of the page about this run, in a few words; empty where none was owed."""
    question: str = ""
    """What a person is asked (`runbooks.stops.question`); empty where it is only whether to go on."""
    now: datetime
