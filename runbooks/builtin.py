"""The verbs that the engine carries out itself; runbooks write them after `do:` like actions.

They touch nothing outside. The engine looks here before it asks the registry of actions.
"""

from collections.abc import Mapping
from typing import Final

from actions.contract import ActionSpec, Field, ValueType
from config.permissions import Permission

DIAGNOSE: Final = ActionSpec(
    name="diagnose",
    version=1,
    summary="Compares facts with a causes file; decides one cause or leaves it to a person.",
    permission=Permission.NODE_READ,
    parameters={
        "causes": Field(type=ValueType.TEXT, help="name of a causes file, written out"),
        "facts": Field(type=ValueType.FACTS, help="output of a step that looked, node.observe"),
    },
    output={
        "id": Field(type=ValueType.TEXT, help="id of the cause that decides, or null"),
        "title": Field(type=ValueType.TEXT, help="its title; empty when none decides"),
        "confidence": Field(type=ValueType.TEXT, help="high, medium or low; empty when none"),
        "autonomy": Field(type=ValueType.TEXT, help="observe, propose or act, after all limits"),
        "evidence": Field(type=ValueType.FACTS, help="list of sentences, the strongest first"),
        "others": Field(type=ValueType.FACTS, help="list of the other causes that match"),
        "not_ruled_out": Field(type=ValueType.FACTS, help="list of ids that may be so as well"),
        "why": Field(type=ValueType.TEXT, help="one sentence: why this one, or why none"),
        "first_action": Field(type=ValueType.TEXT, help="what the table says to do first"),
        "verify": Field(type=ValueType.TEXT, help="how it is known that it helped"),
        "escalate_when": Field(type=ValueType.TEXT, help="when somebody else must be asked"),
    },
    looks_only=True,
)

DECIDE_PERSON: Final = ActionSpec(
    name="decide.person",
    version=1,
    summary="Ends the bot's part: the run needs a person, who is told what and why.",
    permission=Permission.NODE_READ,
    parameters={
        "say": Field(type=ValueType.TEXT, help="one sentence: what is to be decided"),
        "suggest": Field(type=ValueType.TEXT, help="the first action to consider", required=False),
        "evidence": Field(type=ValueType.FACTS, help="list of sentences", required=False),
    },
    looks_only=True,
)

FENCE_CONFIRM: Final = ActionSpec(
    name="fence.confirm",
    version=1,
    summary="Asks a person whether a machine certainly writes nothing any more; goes on once one says so.",
    permission=Permission.NODE_READ,
    parameters={
        "node": Field(type=ValueType.NODE, help="node whose host is silent"),
        "evidence": Field(type=ValueType.FACTS, help="list of sentences", required=False),
    },
    output={
        "by": Field(type=ValueType.TEXT, help="id of the person who said so"),
        "why": Field(type=ValueType.TEXT, help="how that person knows"),
    },
    looks_only=True,
)

TELL: Final = ActionSpec(
    name="tell",
    version=1,
    summary="Says what was found where nothing is for the bot to do; wakes nobody.",
    permission=Permission.NODE_READ,
    parameters={"say": Field(type=ValueType.TEXT, help="one sentence")},
    output={"say": Field(type=ValueType.TEXT, help="the sentence")},
    looks_only=True,
)

BUILTINS: Final[Mapping[str, ActionSpec]] = {
    DIAGNOSE.name: DIAGNOSE,
    DECIDE_PERSON.name: DECIDE_PERSON,
    FENCE_CONFIRM.name: FENCE_CONFIRM,
    TELL.name: TELL,
}
"""By name."""

ASKED: Final = frozenset({DECIDE_PERSON.name, FENCE_CONFIRM.name})
"""Those at which a run stops until a person has answered."""
