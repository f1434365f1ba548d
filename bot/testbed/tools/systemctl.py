#!/usr/bin/python3 -IS
"""systemctl of a virtual node: is-active, is-failed, show, start, stop, restart of one unit.

Asks process 1 of the node over its socket, which decides by the caller's uid. Output and exit
codes are those of systemd 252; properties come in systemd's order, not in that of the question.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from typing import Any

_SOCKET = "/run/nodewarden-node/init.socket"
_CHANGES = ("start", "stop", "restart")
_FLAGS = ("--no-pager", "--quiet", "-q", "--no-ask-password", "--system", "--value", "--plain")
_IGNORED_OPTIONS = ("--job-mode=", "--lines=", "--output=")

Json = dict[str, Any]


class UsageError(Exception):
    """The words are not ones that this tool knows."""


class Question:
    """The command line, read."""

    def __init__(self, arguments: list[str]) -> None:
        self.properties: list[str] = []
        self.words: list[str] = []
        self.flags: set[str] = set()
        self.style = "pretty"
        rest = iter(arguments)
        for word in rest:
            if word in {"-p", "--property"}:
                self.properties += next(rest, "").split(",")
            elif word == "--":
                self.words += rest
            else:
                self._one(word)

    def _one(self, word: str) -> None:
        if word.startswith("--property="):
            self.properties += word.partition("=")[2].split(",")
        elif word.startswith("--timestamp="):
            self.style = word.partition("=")[2]
        elif word.startswith("-p"):
            self.properties += word[2:].split(",")
        elif word in _FLAGS:
            self.flags.add(word)
        elif word.startswith("-") and not word.startswith(_IGNORED_OPTIONS):
            raise UsageError(f"systemctl: unrecognized option '{word}'")
        elif not word.startswith("-"):
            self.words.append(word)


def ask(verb: str, unit: str) -> Json:
    """The answer of process 1."""
    with socket.socket(socket.AF_UNIX) as stream:
        stream.connect(_SOCKET)
        stream.sendall(json.dumps({"verb": verb, "unit": unit}).encode() + b"\n")
        with stream.makefile("rb") as answer:
            reply: Json = json.loads(answer.readline())
    return reply


def stamp(microseconds: int, style: str) -> str:
    """A time as `systemctl show` prints it; empty where it never happened."""
    seconds = microseconds // 1_000_000
    if not seconds:
        return ""
    if style == "unix":
        return f"@{seconds}"
    parts = time.gmtime(seconds) if style == "utc" else time.localtime(seconds)
    return time.strftime("%a %Y-%m-%d %H:%M:%S %Z", parts)


def properties(unit: str, facts: Json, style: str) -> dict[str, str]:
    """All properties that this tool knows of one unit."""
    found = "error" not in facts
    known: Json = facts if found else {"state": "inactive", "sub": "dead", "result": "success"}
    active = stamp(known.get("active_since", 0), style)
    inactive = stamp(known.get("inactive_since", 0), style)
    running = known["state"] == "active"
    code = {"signal": "2", "exit-code": "1"}.get(known["result"], "0" if running else "1")
    return {
        "Type": "simple",
        "Restart": "no",
        "MainPID": str(known.get("pid", 0)),
        "ControlPID": "0",
        "Result": known["result"],
        "NRestarts": "0",
        "ExecMainStartTimestamp": active,
        "ExecMainExitTimestamp": "" if running else inactive,
        "ExecMainCode": code if active else "0",
        "ExecMainStatus": str(known.get("exit_status", 0)),
        "Delegate": "yes" if unit == "slurmd" else "no",
        "KillMode": "process" if found else "control-group",
        "Id": f"{unit}.service",
        "Names": f"{unit}.service",
        "LoadState": "loaded" if found else "not-found",
        "ActiveState": known["state"],
        "SubState": known["sub"],
        "StateChangeTimestamp": active if running else inactive,
        "InactiveExitTimestamp": active,
        "ActiveEnterTimestamp": active,
        "ActiveExitTimestamp": inactive,
        "InactiveEnterTimestamp": inactive,
        "UnitFileState": "enabled" if found else "",
    }


def show(unit: str, question: Question) -> int:
    """Print the wanted properties; an unknown unit is shown too, with exit code 0."""
    for name, value in properties(unit, ask("show", unit), question.style).items():
        if not question.properties or name in question.properties:
            _print(value if "--value" in question.flags else f"{name}={value}")
    return 0


def is_state(wanted: str, unit: str, question: Question) -> int:
    """Print the state; the exit code says whether it is the wanted one."""
    state = ask("show", unit).get("state", "inactive")
    if not question.flags & {"--quiet", "-q"}:
        _print(state)
    if state == wanted:
        return 0
    return 3 if wanted == "active" else 1


def change(verb: str, unit: str) -> int:
    """Start, stop or restart."""
    reply = ask(verb, unit)
    if "error" not in reply:
        return 0
    sys.stderr.write(f"Failed to {verb} {unit}.service: {reply['error']}\n")
    return int(reply.get("code", 1))


def answer(arguments: list[str]) -> int:
    """Do what the command line says; the result is the exit code."""
    question = Question(arguments)
    if len(question.words) != 2:
        raise UsageError("this node's systemctl takes one verb and one unit")
    verb, unit = question.words[0], question.words[1].removesuffix(".service")
    if verb == "show":
        return show(unit, question)
    if verb in {"is-active", "is-failed"}:
        return is_state(verb[3:], unit, question)
    if verb in _CHANGES:
        return change(verb, unit)
    raise UsageError(f"Unknown command verb {verb}.")


def _print(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def main() -> int:
    """The exit code, with errors on standard error."""
    try:
        return answer(sys.argv[1:])
    except UsageError as error:
        sys.stderr.write(f"{error}\n")
    except OSError as error:
        sys.stderr.write(f"Failed to connect to bus: {os.strerror(error.errno or 0)}\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
