"""A person's word that a machine writes nothing any more: `fence.confirm` (hands 2).

Called by `runbooks.requests` when somebody answers such a step. It takes the word of an account that is
one person's own, with the reason, and keeps both as the step's output, so that a later step and the
card name who answers for it.
"""

import json

from config.actors import Actor, ActorKind
from config.json_values import JsonMap
from runbooks.builtin import FENCE_CONFIRM
from runbooks.definition import Definition
from runbooks.parts import Parts
from runbooks.run import Run, StepRecord
from runbooks.stops import CannotDo


def word_of(parts: Parts, run: Run, step: StepRecord, actor: Actor, reason: str) -> JsonMap:
    """What the step gives when it is answered `done`; empty for every other step. Raises CannotDo."""
    if _verb(parts, run, step) != FENCE_CONFIRM.name:
        return {}
    if actor.kind is not ActorKind.PERSON or actor.shared:
        raise CannotDo(
            f"{actor.name} cannot say that a machine is dead: it must be one person's own account, "
            "because two writers on one file are answered for by name"
        )
    return {"by": actor.id, "why": reason[:500]}


def _verb(parts: Parts, run: Run, step: StepRecord) -> str:
    """What this step does, by the definition that the run pins."""
    whole = Definition.from_json(json.loads(parts.artefacts.get(run.definition)))
    own = run.runbook == whole.runbook.name
    found = (whole.runbook if own else whole.called[run.runbook]).step(step.step)
    return "" if found is None else str(found.do)
