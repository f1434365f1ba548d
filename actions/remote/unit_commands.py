"""Command lines about systemd units, and what `systemctl show` answers.

Pure. Used by `actions.remote.nodes`. Units and effect ids are checked here before they become part
of a command line; nothing else from outside may get into one.
"""

import re
import shlex
from datetime import UTC, datetime

from actions.contract import Refusal
from actions.remote.settings import RemoteSettings
from actions.remote_values import CommandResult, Service, ServiceState

LOCK_HELD = 75
"""Exit code when another start or restart of the unit holds the lock on the node (EX_TEMPFAIL)."""

_UNIT = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.@-]{0,127}", re.ASCII)
_EFFECT = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}", re.ASCII)
_PROPERTIES = (
    "LoadState,ActiveState,SubState,MainPID,KillMode,Delegate,Result,"
    "InactiveEnterTimestamp,ActiveEnterTimestamp,StateChangeTimestamp"
)
_STAMP = re.compile(r"(?:[A-Z][a-z]{2} )?(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)(?:\.\d+)? UTC", re.ASCII)
_STATES = {
    state.value: state
    for state in ServiceState
    if state not in {ServiceState.NOT_FOUND, ServiceState.UNKNOWN}
}


def checked_unit(unit: str, settings: RemoteSettings) -> str:
    """The unit, if the site allows it. Raises Refusal."""
    if unit not in settings.units or not _UNIT.fullmatch(unit):
        raise Refusal(
            f"unit {unit[:60]!r} is not in the list of units of the configuration "
            f"({', '.join(sorted(settings.units)) or 'which is empty'}): add it there or name another"
        )
    return unit


def checked_effect(effect_id: str) -> str:
    """The effect id, if it can name a unit. Raises Refusal."""
    if not _EFFECT.fullmatch(effect_id):
        raise Refusal(f"effect id {effect_id[:60]!r} cannot name a unit")
    return effect_id


def show_command(unit: str) -> tuple[str, ...]:
    """Reads the state; TZ makes systemctl print UTC, whatever the node's zone is."""
    return ("env", "TZ=UTC", "LC_ALL=C", "systemctl", "show", "-p", _PROPERTIES, "--", unit)


def change_command(
    verb: str, unit: str, effect_id: str, settings: RemoteSettings
) -> tuple[str, ...]:
    """Starts or restarts: under a lock on the node and, where systemd runs, as a transient unit
    named by the effect, so that the effect can be found there even when our connection is gone.
    """
    checked_effect(effect_id)
    seconds = str(int(settings.start_limit.total_seconds()))
    # The name of the lock is the one word that the node's own shell fills in.
    locked = f'flock -n -E {LOCK_HELD} "$lock" ' + shlex.join(
        ("timeout", "-k", "5", seconds, "systemctl", verb, "--", unit)
    )
    transient = shlex.join(
        (
            *("systemd-run", f"--unit={effect_id}", "--collect", "--wait", "--quiet"),
            f"--property=RuntimeMaxSec={seconds}",
        )
    )
    script = (
        f"lock=/run/lock/nodewarden-{unit}; test -d /run/lock || lock=/tmp/nodewarden-{unit}; "
        "if test -d /run/systemd/system && command -v systemd-run >/dev/null 2>&1; "
        f"then exec {transient} {locked}; else exec {locked}; fi"
    )
    return ("sh", "-c", script)


def parse_show(unit: str, result: CommandResult) -> Service:
    """The unit's state; UNKNOWN when there is no answer that says it."""
    fields = dict(line.split("=", 1) for line in result.output.splitlines() if "=" in line)
    if not result.ok or "ActiveState" not in fields:
        return Service(unit=unit, state=ServiceState.UNKNOWN, detail=_why(result))
    state = _STATES.get(fields["ActiveState"], ServiceState.UNKNOWN)
    if fields.get("LoadState") == "not-found":
        state = ServiceState.NOT_FOUND
    pid = fields.get("MainPID", "")
    return Service(
        unit=unit,
        state=state,
        since=_since(state, fields),
        main_pid=int(pid) if pid.isdecimal() else 0,
        kill_mode=fields.get("KillMode", ""),
        delegate=fields.get("Delegate", ""),
        detail=", ".join(
            f"{name}={fields[name][:60]}"
            for name in ("LoadState", "SubState", "Result")
            if fields.get(name)
        ),
    )


def _since(state: ServiceState, fields: dict[str, str]) -> datetime | None:
    name = {
        ServiceState.ACTIVE: "ActiveEnterTimestamp",
        ServiceState.INACTIVE: "InactiveEnterTimestamp",
        ServiceState.FAILED: "InactiveEnterTimestamp",
    }.get(state, "StateChangeTimestamp")
    return parse_stamp(fields.get(name, ""))


def parse_stamp(text: str) -> datetime | None:
    """A time as systemctl prints it; None for `n/a`, nothing, or a form not known."""
    if re.fullmatch(r"@\d{1,11}", text, re.ASCII):
        return datetime.fromtimestamp(int(text[1:]), UTC)
    found = _STAMP.fullmatch(text.strip())
    if found is None:
        return None
    try:
        return datetime.strptime(found[1], "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC)
    except ValueError:
        return None


def _why(result: CommandResult) -> str:
    """Why no state could be read, in a few words from the node."""
    said = result.lost or result.errors.strip() or result.output.strip() or "no answer"
    return said[:200]
