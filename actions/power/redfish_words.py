"""What Redfish's answers mean: links, power states, reset types, log entries. Pure.

Used by `actions.power.redfish`. Whatever an answer holds is text from outside: a link is followed
only below the service root of the host that was asked, and a word that is not known is `unknown`.
"""

import re
from collections.abc import Iterator, Sequence

from actions.contract import Unreadable
from actions.power_hands import PowerState
from config.json_values import Json, JsonMap

SYSTEMS = "/redfish/v1/Systems"
RESET = "#ComputerSystem.Reset"
MOST_MEMBERS = 64

_PATH = re.compile(r"/redfish/v1(/[A-Za-z0-9_.:~()'-]+)+/?", re.ASCII)
_STATES = {"On": PowerState.ON, "Off": PowerState.OFF}
WANTED = {
    "off": ("ForceOff",),
    "on": ("On", "ForceOn"),
    "cycle": ("PowerCycle", "ForceRestart"),
}
"""Reset types that do what is meant, the best first. A graceful one is none: the host is dead, and
one that is not must not be asked to end its jobs by itself."""
_LOGS = ("sel", "eventlog", "log")


def link(value: Json, where: str) -> str:
    """The path of `{"@odata.id": …}`. Raises Unreadable for one that leaves the service."""
    path = value.get("@odata.id") if isinstance(value, dict) else None
    if not isinstance(path, str) or not _PATH.fullmatch(path) or ".." in path:
        raise Unreadable(f"{where} has no link that can be followed")
    return path


def members(collection: JsonMap, where: str) -> tuple[str, ...]:
    """Paths of the members. Raises Unreadable."""
    found = collection.get("Members")
    if not isinstance(found, list):
        raise Unreadable(f"{where} lists no members")
    return tuple(link(member, where) for member in found[:MOST_MEMBERS])


def only_system(paths: Sequence[str]) -> str:
    """The one system of this BMC. Raises Unreadable where it has none or more."""
    if len(paths) != 1:
        raise Unreadable(
            f"it has {len(paths)} systems, and which of them is meant cannot be told: a node needs "
            "a BMC address of its own"
        )
    return paths[0]


def power_state(system: JsonMap) -> PowerState:
    """What the system says; a word on the way (PoweringOff, Paused) is unknown."""
    return _STATES.get(str(system.get("PowerState")), PowerState.UNKNOWN)


def evidence(system: JsonMap) -> str:
    """The line that proves a reading."""
    shown = [f"PowerState {_plain(system.get('PowerState'), 20) or 'missing'}"]
    for field in ("HostName", "SerialNumber"):
        text = _plain(system.get(field), 40)
        if text:
            shown.append(f"{field} {text}")
    return ", ".join(shown)


def reset(system: JsonMap, verb: str) -> tuple[str, str]:
    """Path and reset type for this verb. Raises Unreadable where the system offers none."""
    actions = system.get("Actions")
    action = actions.get(RESET) if isinstance(actions, dict) else None
    target = action.get("target") if isinstance(action, dict) else None
    path = link({"@odata.id": target}, "its reset action")
    offered = action.get("ResetType@Redfish.AllowableValues") if isinstance(action, dict) else None
    for wanted in WANTED[verb]:
        if not isinstance(offered, list) or wanted in offered:
            return path, wanted
    raise Unreadable(f"it offers no {' or '.join(WANTED[verb])}: nothing was sent")


def event_logs(paths: Sequence[str]) -> tuple[str, ...]:
    """The log services that may hold the hardware's own log, the likeliest first."""
    named = [path.rstrip("/").rpartition("/")[2].lower() for path in paths]
    ranked = sorted(
        range(len(paths)),
        key=lambda index: next(
            (rank for rank, word in enumerate(_LOGS) if word in named[index]), len(_LOGS)
        ),
    )
    return tuple(paths[index] for index in ranked)


def entries(collection: JsonMap) -> Iterator[str]:
    """One line for each entry, as listed."""
    found = collection.get("Members")
    for entry in found if isinstance(found, list) else ():
        if isinstance(entry, dict):
            parts = (_plain(entry.get(name), 300) for name in ("Created", "Severity", "Message"))
            line = " ".join(part for part in parts if part)
            if line:
                yield line


def _plain(value: Json, most: int) -> str:
    """One line of printable text."""
    if not isinstance(value, str):
        return ""
    shown = "".join(c if c.isprintable() else " " for c in value[: 2 * most])
    return " ".join(shown.split())[:most]
