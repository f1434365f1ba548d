"""The verbs: one table from which parsing, help, permissions and the docs are made. Pure.

Every door speaks these words: `/ops …` in Slack, `nodewarden …` on the command line, the text of a
mention. A verb that is not here does not exist.
"""

from dataclasses import dataclass
from enum import StrEnum

from config.permissions import Permission


class Verb(StrEnum):
    """What can be asked."""

    RUN = "run"
    PLAN = "plan"
    STATUS = "status"
    LIST = "list"
    ABORT = "abort"
    PAUSE = "pause"
    RESUME = "resume"
    APPROVE = "approve"
    DENY = "deny"
    DRAIN = "drain"
    RETURN = "return"
    REBOOT = "reboot"
    REPLACE = "replace"
    REQUEUE = "requeue"
    TAKEOVER = "takeover"
    HALT = "halt"
    HANDS_OFF = "hands-off"
    NODE = "node"
    AUDIT = "audit"
    WHOAMI = "whoami"
    CAN = "can"
    DOCTOR = "doctor"
    HELP = "help"


class Kind(StrEnum):
    """What a word of a command names."""

    RUNBOOK = "<runbook>"
    NODE = "<node>"
    RUN = "<run>"
    PERSON = "<person>"
    PERMISSION = "<permission>"
    STATE = "<state>"
    """Of a node, as Slurm writes it."""
    VERB = "<verb>"


@dataclass(frozen=True, slots=True, kw_only=True)
class VerbSpec:
    """How a verb is written and what it needs."""

    verb: Verb
    usage: str
    summary: str
    example: str
    permission: Permission | None
    """None: everybody may."""
    changes: bool = False
    """Whether it can change anything; such a command is committed before it is acknowledged."""
    changing: frozenset[str] = frozenset()
    """First words with which a verb that only asks changes something after all."""
    words: tuple[int, int] = (0, 0)
    """At least and at most so many words after the verb."""
    flags: frozenset[str] = frozenset()
    """Options without a value."""
    options: frozenset[str] = frozenset()
    """Options with a value."""
    takes: tuple[tuple[str, ...], ...] = ()
    """For each word what may stand there, for completion: kinds and words as they are typed. The last
    holds for every word after it."""


RUNBOOK_OF = {
    Verb.DRAIN: "drain-node",
    Verb.RETURN: "return-node",
    Verb.REBOOT: "reboot-node",
    Verb.REPLACE: "replace-node",
    Verb.REQUEUE: "requeue-job",
}
"""Verbs that are a shorter word for one runbook, and need its permission."""
_READ = Permission.NODE_READ
_A_RUN = ((Kind.RUN,), ())
_NODES = ((Kind.NODE,), ())
_AUDIT = ("query", "export", "verify", "anchor", "confirm", "rebuild", "backup", "restore")
_FILTERS = ("actor=", "target=", "run=", "action=", "since=", "until=")
_LISTS = ("runs", "approvals", "runbooks", "nodes", "people", "marks", "limits", "hands-off")
VERBS: dict[Verb, VerbSpec] = {
    spec.verb: spec
    for spec in (
        VerbSpec(
            verb=Verb.RUN,
            usage='run RUNBOOK NODES [NAME=VALUE …] [--reason "…"] [--cluster C] [--dry-run]',
            summary="Run a runbook on nodes.",
            example="run node-dropped gpu-017",
            permission=None,  # the runbook's own, checked with its targets
            changes=True,
            words=(1, 30),
            flags=frozenset({"dry-run"}),
            options=frozenset({"reason", "cluster", "version"}),
            takes=((Kind.RUNBOOK,), (Kind.NODE,)),
        ),
        VerbSpec(
            verb=Verb.PLAN,
            usage="plan RUNBOOK NODES [NAME=VALUE …] [--cluster C]",
            summary="Show what a run would do, and change nothing.",
            example="plan drain-node gpu-[001-004] reason=RMA",
            permission=_READ,
            words=(1, 30),
            options=frozenset({"cluster", "version"}),
            takes=((Kind.RUNBOOK,), (Kind.NODE,)),
        ),
        VerbSpec(
            verb=Verb.STATUS,
            usage="status [RUN | NODE]",
            summary="What the bot is doing, one run, or one node.",
            example="status run-12",
            permission=_READ,
            words=(0, 1),
            options=frozenset({"cluster"}),
            takes=((Kind.RUN, Kind.NODE), ()),
        ),
        VerbSpec(
            verb=Verb.LIST,
            usage="list [runs | approvals | runbooks | people | marks | limits | hands-off] [--all]"
            " | list nodes [STATE | out] [--like gpu-01] [--cluster C]",
            summary="Runs, plans that wait, runbooks, nodes with state and owner, nodes we hold.",
            example="list nodes drain",
            permission=_READ,
            words=(0, 2),
            flags=frozenset({"all"}),
            options=frozenset({"like", "cluster"}),
            takes=(_LISTS, (Kind.STATE,), ()),
        ),
        VerbSpec(
            verb=Verb.ABORT,
            usage='abort RUN ["reason"]',
            summary="Stop a run at its next step boundary.",
            example='abort run-12 "wrong node"',
            permission=Permission.RUN_CONTROL,
            changes=True,
            words=(1, 30),
            takes=_A_RUN,
        ),
        VerbSpec(
            verb=Verb.PAUSE,
            usage='pause RUN ["reason"]',
            summary="Hold a run at its next step boundary; its locks stay.",
            example="pause run-12",
            permission=Permission.RUN_CONTROL,
            changes=True,
            words=(1, 30),
            takes=_A_RUN,
        ),
        VerbSpec(
            verb=Verb.RESUME,
            usage='resume RUN ["reason"] [--done | --not-done] [--step STEP:ATTEMPT]',
            summary="Go on with a paused run, or say what happened where a person was needed.",
            example='resume run-12 --done "drained it by hand"',
            permission=Permission.RUN_CONTROL,
            changes=True,
            words=(1, 30),
            flags=frozenset({"done", "not-done"}),
            options=frozenset({"step"}),
            takes=_A_RUN,
        ),
        VerbSpec(
            verb=Verb.APPROVE,
            usage='approve RUN [--break-glass "reason"]',
            summary="Say yes to the plan of somebody else's run.",
            example="approve run-12",
            permission=Permission.RUN_APPROVE,
            changes=True,
            words=(1, 1),
            options=frozenset({"break-glass", "plan"}),
            takes=_A_RUN,
        ),
        VerbSpec(
            verb=Verb.DENY,
            usage='deny RUN "reason"',
            summary="Say no to a plan; nothing is done.",
            example='deny run-12 "job ends at 05:00, wait"',
            permission=Permission.RUN_APPROVE,
            changes=True,
            words=(1, 30),
            options=frozenset({"plan"}),
            takes=_A_RUN,
        ),
        VerbSpec(
            verb=Verb.DRAIN,
            usage='drain NODES "reason"',
            summary="Take nodes out of service; running jobs go on.",
            example='drain gpu-[001-002] "RMA 4711"',
            permission=None,  # as `run drain-node`
            changes=True,
            words=(1, 30),
            flags=frozenset({"dry-run"}),
            options=frozenset({"cluster"}),
            takes=_NODES,
        ),
        VerbSpec(
            verb=Verb.RETURN,
            usage="return NODE",
            summary="Give a node that the bot drained back to service, behind its gate.",
            example="return gpu-001",
            permission=None,  # as `run return-node`
            changes=True,
            words=(1, 1),
            flags=frozenset({"dry-run"}),
            options=frozenset({"cluster"}),
            takes=_NODES,
        ),
        VerbSpec(
            verb=Verb.REBOOT,
            usage='reboot NODE "reason"',
            summary="Restart a node once its jobs have ended, and return it through its gate.",
            example='reboot gpu-001 "new driver"',
            permission=None,  # as `run reboot-node`
            changes=True,
            words=(1, 30),
            flags=frozenset({"dry-run"}),
            options=frozenset({"cluster"}),
            takes=_NODES,
        ),
        VerbSpec(
            verb=Verb.REPLACE,
            usage='replace NODE "reason"',
            summary="Take a sick or dead node out, and let a spare take its place.",
            example='replace gpu-001 "GPU 3 fell off"',
            permission=None,  # as `run replace-node`
            changes=True,
            words=(1, 30),
            flags=frozenset({"dry-run"}),
            options=frozenset({"cluster"}),
            takes=_NODES,
        ),
        VerbSpec(
            verb=Verb.REQUEUE,
            usage="requeue JOB NODE",
            summary="Start a job again without a sick node, on ground that is held for it.",
            example="requeue 4711 gpu-001",
            permission=None,  # as `run requeue-job`
            changes=True,
            words=(2, 2),
            flags=frozenset({"dry-run"}),
            options=frozenset({"cluster"}),
            takes=((), (Kind.NODE,), ()),
        ),
        VerbSpec(
            verb=Verb.TAKEOVER,
            usage='takeover RUN ["reason"]',
            summary="Take a run out of the bot's hands; its locks stay until you resume or abort it.",
            example='takeover run-12 "I am on the console"',
            permission=Permission.RUN_CONTROL,
            changes=True,
            words=(1, 30),
            takes=_A_RUN,
        ),
        VerbSpec(
            verb=Verb.HALT,
            usage='halt ["reason"] | halt --clear "reason" | halt --clear-limit LIMIT "reason"',
            summary="Stop every new effect at once; --clear resumes, --clear-limit opens a limit.",
            example='halt "power work in row 4"',
            permission=Permission.HALT_SET,
            changes=True,
            words=(0, 30),
            flags=frozenset({"clear"}),
            options=frozenset({"clear-limit"}),
        ),
        VerbSpec(
            verb=Verb.HANDS_OFF,
            usage='hands-off NODES "reason" | hands-off NODES --clear',
            summary="Label nodes that no runbook touches, or take the label away.",
            example='hands-off gpu-[001-004] "firmware test"',
            permission=Permission.HANDS_OFF_SET,
            changes=True,
            words=(1, 30),
            flags=frozenset({"clear"}),
            options=frozenset({"cluster"}),
            takes=_NODES,
        ),
        VerbSpec(
            verb=Verb.NODE,
            usage="node NODE [--cluster C]",
            summary="Everything the bot can see of a node, asked now.",
            example="node gpu-017",
            permission=_READ,
            words=(1, 1),
            options=frozenset({"cluster"}),
            takes=_NODES,
        ),
        VerbSpec(
            verb=Verb.AUDIT,
            usage="audit [query | export] [actor=… target=… run=… action=… since=7d] [--csv]"
            ' | audit verify | audit anchor | audit confirm RUN|all ["reason"]',
            summary="Who did what; whether the log is whole; after a restore, let runs act again.",
            example="audit target=gpu-017 since=7d",
            permission=Permission.AUDIT_READ,
            changing=frozenset({"anchor", "confirm"}),
            words=(0, 30),
            flags=frozenset({"csv"}),
            takes=(_AUDIT, (Kind.RUN, *_FILTERS)),
        ),
        VerbSpec(
            verb=Verb.WHOAMI,
            usage="whoami",
            summary="Who you are to the bot: person, roles, door.",
            example="whoami",
            permission=None,
        ),
        VerbSpec(
            verb=Verb.CAN,
            usage="can PERSON PERMISSION [NODES]",
            summary="Whether somebody may do something, and why.",
            example="can @ann node.drain gpu-017",
            permission=_READ,
            words=(2, 3),
            options=frozenset({"cluster"}),
            takes=((Kind.PERSON,), (Kind.PERMISSION,), (Kind.NODE,), ()),
        ),
        VerbSpec(
            verb=Verb.DOCTOR,
            usage="doctor",
            summary="What is wrong with the bot itself: clusters, rights, anchors, pages, Slack.",
            example="doctor",
            permission=_READ,
        ),
        VerbSpec(
            verb=Verb.HELP,
            usage="help [VERB]",
            summary="What you may do here.",
            example="help run",
            permission=None,
            words=(0, 1),
            takes=((Kind.VERB,), ()),
        ),
    )
}
