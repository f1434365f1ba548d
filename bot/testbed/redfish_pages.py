"""What a BMC of the testbed shows, as Redfish's schema has it. Pure.

One system per BMC, with the four resets that nearly all vendors offer and an event log.
"""

import json
from collections.abc import Sequence
from typing import Any

Json = dict[str, Any]

ROOT = "/redfish/v1"
SYSTEM = f"{ROOT}/Systems/1"
_RESET = f"{SYSTEM}/Actions/ComputerSystem.Reset"
_LOG = f"{SYSTEM}/LogServices/SEL"
RESET_TYPES = ("On", "ForceOff", "ForceRestart", "PowerCycle")


def page(path: str, node: str, power: str, log: Sequence[tuple[str, str]]) -> Json | None:
    """The resource at this path; None where there is none."""
    pages = {
        ROOT: _resource(ROOT, Name="Root Service", Systems=_link(f"{ROOT}/Systems")),
        f"{ROOT}/Systems": _collection(f"{ROOT}/Systems", [_link(SYSTEM)]),
        SYSTEM: _system(node, power),
        f"{SYSTEM}/LogServices": _collection(f"{SYSTEM}/LogServices", [_link(_LOG)]),
        _LOG: _resource(_LOG, Id="SEL", Entries=_link(f"{_LOG}/Entries")),
        f"{_LOG}/Entries": _collection(f"{_LOG}/Entries", _entries(log)),
    }
    return pages.get(path.rstrip("/"))


def reset_type(path: str, body: bytes) -> str:
    """The reset that a POST asks for; empty for anything else."""
    if path.rstrip("/") != _RESET:
        return ""
    try:
        found = json.loads(body)
    except ValueError:
        return ""
    kind = found.get("ResetType") if isinstance(found, dict) else None
    return kind if kind in RESET_TYPES else ""


def problem(words: str) -> Json:
    """The body of an answer that is no success."""
    return {"error": {"code": "Base.1.8.GeneralError", "message": words}}


def _system(node: str, power: str) -> Json:
    action = {"target": _RESET, "ResetType@Redfish.AllowableValues": list(RESET_TYPES)}
    return _resource(
        SYSTEM,
        Id="1",
        HostName=node,
        SerialNumber=f"TESTBED-{node.upper()}",
        PowerState=power.capitalize(),
        LogServices=_link(f"{SYSTEM}/LogServices"),
        Actions={"#ComputerSystem.Reset": action},
    )


def _entries(log: Sequence[tuple[str, str]]) -> list[Json]:
    return [
        _resource(f"{_LOG}/Entries/{number}", Id=str(number), Severity=severity, Message=message)
        for number, (severity, message) in enumerate(log, start=1)
    ]


def _collection(path: str, members: list[Json]) -> Json:
    return _resource(path, Members=members) | {"Members@odata.count": len(members)}


def _resource(path: str, **fields: object) -> Json:
    return {"@odata.id": path, **fields}


def _link(path: str) -> Json:
    return {"@odata.id": path}
