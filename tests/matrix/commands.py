"""The commands of the matrix: for each permission one or more that need exactly it.

Each says how its ground is prepared, what is typed, and by which words an answer shows that it was
let through.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from bot.commands import Verb
from config.permissions import Permission


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One thing to type."""

    permission: Permission | None
    """None: everybody may."""
    text: str
    """`{node}`: a node that nothing has used; `{run}`: a run as `run` says; `{n}`: a fresh number."""
    proof: str
    """A pattern of the answer to somebody who may."""
    run: str = ""
    """What is prepared: `open` a drain that waits for approval, `held` one that needs a person."""
    ground: str = ""
    """`halted`: everything stands still before."""
    step: str = ""
    """The plug after which node-dropped comes to the step that needs the permission."""

    @property
    def verb(self) -> Verb:
        """The verb that is driven."""
        return Verb(self.text.split()[0])


P = Permission
COMMANDS = (
    Command(permission=P.NODE_READ, text="status", proof=r"sim: \d+ nodes"),
    Command(permission=P.NODE_READ, text="list runbooks", proof="drain-node v"),
    Command(permission=P.NODE_READ, text="list nodes --like {node}", proof="{node} "),
    Command(permission=P.NODE_READ, text="node {node}", proof="{node} on sim"),
    Command(permission=P.NODE_READ, text="plan drain-node {node} reason=x", proof="nothing was"),
    Command(permission=P.NODE_READ, text="can adm halt.clear", proof="adm may halt.clear"),
    Command(permission=P.NODE_READ, text="doctor", proof="audit log: "),
    Command(permission=P.NODE_DRAIN, text="drain {node} r{n}", proof=r"run-\d+ started"),
    Command(permission=P.NODE_RETURN, text="return {node}", proof=r"run-\d+ started"),
    Command(permission=P.NODE_REPAIR, text="run node-dropped {node}", proof=r"run-\d+ started"),
    Command(permission=P.NODE_REPAIR, text="replace {node} r{n}", proof=r"run-\d+ started"),
    Command(permission=P.NODE_REBOOT, text="reboot {node} r{n}", proof=r"run-\d+ started"),
    Command(
        permission=P.RESERVATION_HOLD,
        text="run hold-spares {node} user=nobody",
        proof=r"run-\d+ started",
    ),
    Command(permission=P.JOB_REQUEUE, text="requeue 4711 {node}", proof=r"run-\d+ started"),
    Command(
        permission=P.NODE_REBOOT, text="run reboot-node {node} reason=x", proof=r"run-\d+ started"
    ),
    Command(
        permission=P.SERVICE_START,
        text="run node-dropped {node}",
        proof=r"run-\d+ started",
        step="kill_slurmd",
    ),
    Command(
        permission=P.SERVICE_RESTART,
        text="run node-dropped {node}",
        proof=r"run-\d+ started",
        step="late_driver",
    ),
    Command(permission=P.RUN_APPROVE, text="approve {run}", proof="approved", run="open"),
    Command(permission=P.RUN_APPROVE, text="deny {run} n{n}", proof="denied; nothing", run="open"),
    Command(permission=P.RUN_CONTROL, text="abort {run} r{n}", proof="{run} stops", run="open"),
    Command(permission=P.RUN_CONTROL, text="pause {run} r{n}", proof="pause", run="open"),
    Command(permission=P.RUN_CONTROL, text="takeover {run} r{n}", proof="is yours", run="open"),
    Command(permission=P.RUN_CONTROL, text="resume {run} r{n}", proof="goes on", run="held"),
    Command(permission=P.HALT_SET, text="halt r{n}", proof="halted: no new effect"),
    Command(
        permission=P.HALT_CLEAR, text="halt --clear r{n}", proof="resumed: waiting", ground="halted"
    ),
    Command(permission=P.HALT_CLEAR, text="halt --clear-limit l{n}", proof="l{n} is not latched"),
    Command(permission=P.HANDS_OFF_SET, text="hands-off {node} r{n}", proof="hands off {node}"),
    Command(permission=P.HANDS_OFF_SET, text="hands-off {node} --clear", proof="label is gone"),
    Command(
        permission=P.BREAK_GLASS,
        text="approve {run} --break-glass r{n}",
        proof="the glass is broken",
        run="open",
    ),
    Command(permission=P.AUDIT_READ, text="audit since=1h", proof=r"\d+ "),
    Command(permission=P.AUDIT_READ, text="audit export since=1h", proof='"kind"'),
    Command(permission=P.AUDIT_READ, text="audit verify", proof=r"sound: \d+ records"),
    Command(permission=P.AUDIT_MANAGE, text="audit anchor", proof="anchored "),
    Command(permission=P.AUDIT_MANAGE, text="audit confirm all r{n}", proof="no restore waits"),
    Command(permission=None, text="whoami", proof="you are "),
    Command(permission=None, text="help", proof="whoami"),
)

EXEMPT: Mapping[Permission, str] = {
    P.NODE_POWER: "only a step of replace-node on a dead host; tests/actions/power drives one",
    P.PARTITION_WRITE: "only a step of take-spare, its last way, where no other spare is found",
    P.PAGE_SEND: "no door asks for it: only a runbook's page.send step does, and none that ships has one",
    P.RUNBOOK_RELEASE: "no door reaches it: `nodewarden runbook release` writes files of the checkout",
}
"""Permissions that no command at a door needs."""


def columns() -> tuple[Permission, ...]:
    """The permissions of the table, in the order in which they are declared."""
    return tuple(one for one in Permission if any(c.permission is one for c in COMMANDS))


def gaps(
    permissions: frozenset[Permission],
    verbs: frozenset[Verb],
    commands: tuple[Command, ...],
    exempt: Mapping[Permission, str],
) -> list[str]:
    """What is in neither list, or in both, or not driven."""
    driven = {command.permission for command in commands}
    tried = {command.verb for command in commands}
    said: list[tuple[Callable[[Permission], bool], str]] = [
        (lambda one: one not in driven and one not in exempt, "is neither driven nor exempted"),
        (lambda one: one in driven and one in exempt, "is driven and exempted"),
        (lambda one: one in exempt and not exempt[one], "is exempted without a reason"),
    ]
    found = [f"{one} {word}" for wrong, word in said for one in sorted(permissions) if wrong(one)]
    return found + [f"verb {verb} is not driven" for verb in sorted(verbs - tried)]
