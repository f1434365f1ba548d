"""From what `ssh -v` said to a verdict on the host, with the line that proves it (hands 2).

Pure. Used by `actions.remote.nodes`. It must never call a host alive on a guess: a verdict needs a
line, and what no rule knows is a time-out only if ssh or our own limit says so.
"""

import re

from actions.remote.wire import Answer
from actions.remote_values import Reach, Reachability

ALIVE_MARK = "nodewarden-shell-runs"
"""What the harmless command prints; only a shell on the node can have printed it to stdout."""

_LONGEST = 200

# In this order: the first rule with a matching line decides, because later lines are often
# consequences ("Host key verification failed" is also followed by "Connection closed").
_RULES: tuple[tuple[Reach, re.Pattern[str]], ...] = tuple(
    (reach, re.compile(pattern))
    for reach, pattern in (
        (
            Reach.HOST_KEY_CHANGED,
            r"REMOTE HOST IDENTIFICATION HAS CHANGED|Host key verification failed"
            r"|No \S+ host key is known for|Host certificate (?:invalid|authority revoked)"
            r"|Certificate invalid",
        ),
        (
            Reach.AUTH_FAILED,
            r"Permission denied|Too many authentication failures|Access denied",
        ),
        (Reach.REFUSED, r"Connection refused"),
        (
            Reach.NO_ROUTE,
            r"No route to host|Network is unreachable|Host is (?:down|unreachable)"
            r"|Could not resolve hostname|Name or service not known",
        ),
    )
)
_BANNER = re.compile(r"Remote protocol version|Authenticated to ")
_CLOSED = re.compile(r"Connection (?:closed|reset)|closed by remote host|reset by peer|Broken pipe")
_TIMED_OUT = re.compile(r"[Tt]imed out|Timeout, server")


def verdict(answer: Answer) -> Reachability:
    """What the attempt to run one harmless command says about the host."""
    if ALIVE_MARK in answer.output:
        return Reachability(reach=Reach.ALIVE, evidence="a command ran")
    lines = answer.errors.splitlines()
    if answer.exit_code is not None:
        return _no_shell(f"login ended with code {answer.exit_code} and ran nothing", lines)
    for reach, rule in _RULES:
        line = _first(rule, lines)
        if line:
            return _found(reach, line)
    return _broken_off(answer, lines)


def _broken_off(answer: Answer, lines: list[str]) -> Reachability:
    """No refusal of any kind: how far did it come?"""
    banner = _first(_BANNER, lines)
    closed, timed_out = _first(_CLOSED, lines), _first(_TIMED_OUT, lines)
    if banner:
        return _no_shell(closed or timed_out or answer.lost, lines)
    if closed:
        return _found(Reach.REFUSED, closed)
    if timed_out or answer.lost.startswith("no answer"):
        return _found(Reach.TIME_OUT, timed_out or answer.lost)
    return _found(Reach.NOT_ASKED, answer.lost or "ssh gave no reason")


def _no_shell(why: str, lines: list[str]) -> Reachability:
    banner = _first(_BANNER, lines)
    return _found(Reach.NO_SHELL, f"{why} ({banner})" if banner else why)


def _found(reach: Reach, line: str) -> Reachability:
    return Reachability(reach=reach, evidence=line.removeprefix("debug1: ")[:_LONGEST])


def _first(rule: re.Pattern[str], lines: list[str]) -> str:
    """The first line that a rule matches. The banner is the other side's text and proves only
    that there is one, so no other rule may look into it.
    """
    for line in lines:
        if rule.search(line) and (rule is _BANNER or not _BANNER.search(line)):
            return line.strip()
    return ""
