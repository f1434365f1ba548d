"""What the node's program is asked, and what its answers say. Pure.

Used by `actions.remote.ways` and `actions.remote.nodes`. An answer that is none of the program's is
never read as one: sudo's no, a missing program and a refusal each have a sentence of their own.
"""

import json
import re
from collections.abc import Mapping, Sequence
from datetime import datetime

from actions.contract import Refusal, Unreadable
from actions.node_readings import (
    FileTail,
    Folder,
    FolderEntry,
    PortAnswer,
    PortTried,
    StackedThread,
)
from actions.remote.visit import Span, facts_in
from actions.remote_values import CommandResult, HostFacts
from config.clock import EPOCH, MICROSECOND
from config.json_values import Json
from config.node_access import NodeAccess
from config.node_names import NodeName

PROGRAM = "/usr/local/sbin/nodewarden-helper"
_REFUSED = frozenset({64, 78})
_NOT_RUN = frozenset({126, 127})
_OUTCOME_UNKNOWN = 76
_SUDO_SAID = re.compile(
    r"^(?:sudo:|Sorry, user|\S+ is not (?:allowed|in the sudoers))|a password is required", re.M
)
_HOW = "run `nodewarden helper install` on the node, and `helper check`"


def asking(access: NodeAccess, words: Sequence[str]) -> tuple[str, ...]:
    """The command line for the node. Words stay words: the login shell gets them quoted."""
    return tuple(words) if access is NodeAccess.FORCED else ("sudo", "-n", PROGRAM, *words)


def refusal(node: NodeName, result: CommandResult) -> str:
    """Why nothing was done on the node, where the program or sudo said so; else empty."""
    said = (result.errors.strip() or result.output.strip())[:300]
    if result.exit_code in _REFUSED:
        return f"{node} {said or 'refused'}"
    if result.exit_code in _NOT_RUN:
        return f"{node} has no {PROGRAM} or no sudo ({said}): {_HOW}"
    if result.exit_code == 1 and _SUDO_SAID.search(result.errors):
        return f"sudo on {node} does not let the bot's user run {PROGRAM} ({said}): {_HOW}"
    return ""


def believed(result: CommandResult) -> CommandResult:
    """An effect that began before and whose end nobody noted has no exit code to believe."""
    if result.exit_code != _OUTCOME_UNKNOWN:
        return result
    return CommandResult(exit_code=None, lost=result.errors.strip()[:300] or "unknown")


def fields(node: NodeName, result: CommandResult) -> Mapping[str, Json]:
    """The structured answer. Raises Refusal, Unreadable."""
    no = refusal(node, result)
    if no:
        raise Refusal(no)
    said = result.lost or result.errors.strip() or f"exit code {result.exit_code}"
    if not result.ok:
        raise Unreadable(f"{node}: {said[:200]}")
    try:
        found = json.loads(result.output)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise Unreadable(f"{node}: its program answered in a form that this version does not know")
    return found


def host_facts(node: NodeName, result: CommandResult, span: Span) -> HostFacts:
    """The facts of one visit. Raises Unreadable: a look that finds no way to look is no refusal."""
    try:
        parts = _map(fields(node, result).get("parts"))
    except Refusal as error:
        raise Unreadable(str(error)) from error
    read = {
        name: _text(_map(part).get("text")) for name, part in parts.items() if "text" in _map(part)
    }
    return facts_in(read, span)


def file_tail(found: Mapping[str, Json]) -> FileTail:
    """The end of a file."""
    return FileTail(
        size=_number(found.get("size")),
        modified=_moment(found.get("mtime_ns")),
        offset=_number(found.get("offset")),
        text=_text(found.get("text")),
    )


def folder(found: Mapping[str, Json]) -> Folder:
    """Entries of a folder."""
    entries = tuple(
        FolderEntry(
            name=_text(entry.get("name")),
            kind=_text(entry.get("kind")),
            size=_number(entry.get("size")),
            modified=_moment(entry.get("mtime_ns")),
            leads_to=_text(entry.get("leads_to")),
        )
        for entry in map(_map, _list(found.get("entries")))
    )
    return Folder(real=_text(found.get("real")), entries=entries, more=found.get("more") is True)


def stacks(found: Mapping[str, Json]) -> tuple[StackedThread, ...]:
    """Processes, each followed by its threads in D state."""
    shown = []
    for process in map(_map, _list(found.get("processes"))):
        shown.append(_stacked(process, _number(process.get("pid"))))
        threads = map(_map, _list(process.get("threads")))
        shown.extend(_stacked(thread, _number(thread.get("tid"))) for thread in threads)
    return tuple(shown)


def ports(found: Mapping[str, Json]) -> tuple[PortTried, ...]:
    """What each port answered."""
    return tuple(
        PortTried(
            port=_number(one.get("port")),
            answer=PortAnswer(_text(one.get("answer"))),
            evidence=_text(one.get("evidence"))[:200],
        )
        for one in map(_map, _list(found.get("tried")))
    )


def _stacked(found: Mapping[str, Json], number: int) -> StackedThread:
    return StackedThread(
        pid=number,
        name=_text(found.get("name")),
        state=_text(found.get("state")),
        wait_channel=_text(found.get("wait_channel")),
        stack=tuple(_text(line) for line in _list(found.get("stack"))),
        command=_text(found.get("command")),
    )


def _map(value: Json) -> Mapping[str, Json]:
    return value if isinstance(value, Mapping) else {}


def _list(value: Json) -> Sequence[Json]:
    return value if isinstance(value, list) else ()


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""


def _number(value: Json) -> int:
    return value if isinstance(value, int) else 0


def _moment(value: Json) -> datetime:
    """Nanoseconds since 1970; a file system may claim any, and what no date holds is 1970."""
    try:
        return EPOCH + _number(value) // 1000 * MICROSECOND
    except OverflowError:
        return EPOCH
