"""`node.reboot`: restarts a node that this bot drained, and leaves the drain standing (hands 2).

Called by the engine. Plain `scontrol reboot`: ASAP and nextstate would lift the drain at the end, a
person's too. It must never restart a node on which work may be, nor one that only looks drained:
slurmctld saves its state late, so the drain is older than that and was read again.
"""

from dataclasses import dataclass

from actions.cluster import Controller, Node
from actions.contract import (
    ActionSpec,
    Call,
    Done,
    Failed,
    FailureKind,
    Field,
    Observation,
    Outcome,
    Refusal,
    Standing,
    Unreadable,
    ValueType,
)
from actions.node import readings
from actions.node.emptied import emptied
from actions.node.fitting import first
from actions.node.restart import UNDER_WAY, Boot, planned_boot, restarted
from actions.node.restore import drain_command
from actions.node.settings import NODE, Hands
from actions.node.writing import changed, last_look
from actions.ownership import UNKNOWN_BOOT, Holder, Holding, holding
from actions.reasons import mark_text
from actions.settling import saved_at
from config.durations import format_duration
from config.permissions import Permission

_NO_PROGRAM = frozenset({"", "(null)", "none"})

_SPEC = ActionSpec(
    name="node.reboot",
    version=1,
    summary="Restart a node that this bot drained and that is empty; the drain stays",
    permission=Permission.NODE_REBOOT,
    parameters={
        "node": NODE,
        "boot_id": Field(
            type=ValueType.TEXT,
            help="boot id that it must run now; another one means that somebody restarted it",
            required=False,
        ),
        "boot_time": Field(
            type=ValueType.TEXT,
            help="BootTime by the controller, for hosts whose boot id cannot be read",
            required=False,
        ),
    },
    output={
        "state": Field(type=ValueType.TEXT, help="state after the write"),
        "boot_id_before": Field(
            type=ValueType.TEXT, help="boot id that was to end, or `unknown`", required=False
        ),
    },
)


@dataclass(frozen=True, slots=True)
class Reboot:
    """The verb."""

    hands: Hands

    @property
    def spec(self) -> ActionSpec:
        """What is promised."""
        return _SPEC

    def look(self, call: Call) -> Observation:
        """Whether it may be restarted, or after an interruption: was. Raises Unreadable, Refusal."""
        snapshot = readings.settled_snapshot(call, self.hands)
        node = readings.fresh_node(call, self.hands)
        boot_id = readings.boot_id(call, self.hands)
        # After our own restart another boot is no reason to doubt the mark that was made before it.
        judged = boot_id if call.intended_at is None else UNKNOWN_BOOT
        found = holding(readings.scene(call, self.hands, snapshot, node, judged), call)
        standing, why = self._standing(call, snapshot.controller, node, (found, boot_id))
        return Observation(
            standing=standing,
            why=why,
            boot_id=boot_id,
            owner=found.owner,
            state=node.state,
            reason=node.reason,
        )

    def _standing(
        self, call: Call, controller: Controller, node: Node, who: tuple[Holding, str]
    ) -> tuple[Standing, str]:
        """`who`: whose node it is, and the boot that it is in. Raises Unreadable, Refusal."""
        found, boot_id = who
        if call.intended_at is not None:
            done = _was_done(call, node, boot_id)
            if done and node.draining and found.holder is Holder.US:
                return Standing.OURS, done
        cannot = (
            _not_ours(found)
            or self._not_possible(call, controller)
            or _other_boot(call, node, boot_id)
            or self._not_empty(call, found)
        )
        if cannot:
            return Standing.BLOCKED, cannot
        return Standing.NOT_SO, f"{node.name} is drained and empty ({found.why}){self._long(call)}"

    def do(self, call: Call) -> Outcome:
        """Look once more, write, read back that the drain still stands."""
        before = last_look(call, self.hands)
        if isinstance(before, Failed):
            return before
        node, controller = before.node, before.snapshot.controller
        try:
            cannot = (
                _not_ours(before.holding)
                or self._not_possible(call, controller)
                or self._not_empty(call, before.holding)
            )
        except Unreadable as error:
            return Failed(error=f"nothing was done: {error}", kind=FailureKind.RETRYABLE)
        except Refusal as error:
            return Failed(error=str(error), kind=FailureKind.REFUSED)
        if cannot:
            return Failed(error=f"nothing was done: {cannot}", kind=FailureKind.REFUSED)
        return self._restart(call, node, before.holding)

    def _restart(self, call: Call, node: Node, found: Holding) -> Outcome:
        after = changed(call, self.hands, lambda changes: changes.reboot(node.name))
        if not isinstance(after, Node):
            return after
        if not after.draining:
            text = found.mark.text if found.mark else ""
            text = text or mark_text(call.cause, call.run, call.instance)
            return Failed(
                error=f"{after.name} restarts, but its drain is gone ({after.state}): when it comes "
                "back, work starts on it unseen",
                kind=FailureKind.PERMANENT,
                restore=drain_command(after.name, text),
            )
        boot = planned_boot(call).boot_id or UNKNOWN_BOOT
        return Done(output={"state": after.state, "boot_id_before": first(boot, 64)})

    def _not_possible(self, call: Call, controller: Controller) -> str:
        """What the cluster's configuration says against a restart through Slurm. Raises Refusal."""
        if call.cluster not in self.hands.changes:
            return f"this back end of {call.cluster} cannot restart nodes"
        if controller.reboot_program.strip().lower() in _NO_PROGRAM:
            return f"{call.cluster} has no RebootProgram in slurm.conf: Slurm cannot restart a node"
        needed = self.hands.settings.boot_time(call.cluster, readings.target(call))
        if needed is not None and controller.resume_timeout < needed:
            return (
                f"ResumeTimeout is {format_duration(controller.resume_timeout)}, and a boot takes "
                f"{format_duration(needed)} here: Slurm would give the node up while it boots"
            )
        return ""

    def _long(self, call: Call) -> str:
        if self.hands.settings.boot_time(call.cluster, readings.target(call)) is not None:
            return ""
        return "; boot_time of its pool is not configured, so ResumeTimeout was not checked"

    def _not_empty(self, call: Call, found: Holding) -> str:
        """Why work may be on it. Raises Unreadable while the drain may not be saved, Refusal."""
        until = saved_at(found.mark, call.now) if found.mark is not None else None
        if until is not None:
            shown = f"{until:%H:%M:%S} UTC"
            raise Unreadable(f"slurmctld may not have saved our drain yet: wait until {shown}")
        # Drained counts only when seen twice (hands 2): the record may be on the way to COMPLETING.
        for _ in range(2):
            node = readings.fresh_node(call, self.hands)
            why = emptied(node, readings.fresh_jobs(call, self.hands))
            if why:
                return f"{node.name} is not drained and empty: {why}"
        return ""


def _not_ours(found: Holding) -> str:
    if found.holder is Holder.US and found.mark is not None:
        return ""
    if found.holder is Holder.US:
        return f"the ledger has no open drain of ours: {found.why}"
    return f"only a node that this bot drained is restarted: {found.why}"


def _other_boot(call: Call, node: Node, boot_id: str) -> str:
    """Who restarted it meanwhile did so for a reason that nobody has looked at."""
    done = restarted(planned_boot(call), Boot.of(node, boot_id))
    return f"{node.name} was restarted since it was looked at: {done}" if done else ""


def _was_done(call: Call, node: Node, boot_id: str) -> str:
    """What shows that our restart happened, or is under way; empty if nothing does."""
    if node.flags & UNDER_WAY:
        return f"the restart of {node.name} is under way ({node.state})"
    done = restarted(planned_boot(call), Boot.of(node, boot_id))
    return f"{node.name} has restarted: {done}" if done else ""
