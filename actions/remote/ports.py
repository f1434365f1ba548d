"""What the known TCP ports of a host say, tried from here or by another node. Pure.

Used by `actions.remote.vantage`. The program that another node runs is fixed; the address and the ports
are its arguments. It connects and closes, and sends nothing.
"""

import json
from collections.abc import Iterable, Sequence

from actions.remote_values import CommandResult
from actions.vantage import Answer, Tried

PATIENCE = 3
"""Seconds for one port; hosts of one cluster answer in milliseconds."""
_LONGEST = 160
_LIVES = frozenset({"open", "refused"})
"""What only something that lives can have answered: a refusal comes from a kernel."""

_PROGRAM = f"""
import errno, json, socket, sys
tried = []
for port in map(int, sys.argv[2:]):
    try:
        socket.create_connection((sys.argv[1], port), {PATIENCE}).close()
        word, said = "open", "accepted"
    except socket.timeout:
        word, said = "silent", "no answer within {PATIENCE} s"
    except OSError as error:
        refused = error.errno in (errno.ECONNREFUSED, errno.ECONNRESET)
        word = "refused" if refused else "silent" if error.errno == errno.ETIMEDOUT else "no_route"
        said = error.strerror or "error %s" % error.errno
    tried.append({{"port": port, "answer": word, "evidence": "port %d: %s" % (port, said)}})
print(json.dumps({{"host": sys.argv[1], "tried": tried}}))
"""


def command(address: str, ports: Sequence[int]) -> tuple[str, ...]:
    """What the other node runs."""
    return ("python3", "-I", "-c", _PROGRAM, address, *(str(port) for port in ports))


def told(place: str, result: CommandResult, ports: Sequence[int]) -> Tried:
    """What the other node found; anything but a whole answer means that it did not ask."""
    if not result.ok:
        said = result.lost or result.errors.strip() or f"exit code {result.exit_code}"
        return _tried(place, Answer.NOT_ASKED, [" ".join(said.split())])
    try:
        entries = json.loads(result.output)["tried"]
        found = [(int(one["port"]), str(one["answer"]), str(one["evidence"])) for one in entries]
    except (ValueError, KeyError, TypeError):
        return _tried(place, Answer.NOT_ASKED, ["its answer cannot be read"])
    if sorted(port for port, _, _ in found) != sorted(ports):
        return _tried(place, Answer.NOT_ASKED, ["it tried other ports than those asked for"])
    return judged(place, ((answer, evidence) for _, answer, evidence in found))


def judged(place: str, found: Iterable[tuple[str, str]]) -> Tried:
    """From a word and its evidence for each port to one answer.

    A port without a route is silent: a router that knows no way says nothing of the host.
    """
    answers = list(found)
    lives = [evidence for word, evidence in answers if word in _LIVES]
    if lives:
        return _tried(place, Answer.ANSWERED, lives)
    if not answers or any(word not in {"silent", "no_route"} for word, _ in answers):
        return _tried(place, Answer.NOT_ASKED, ["no port was tried"])
    return _tried(place, Answer.SILENT, [evidence for _, evidence in answers])


def _tried(place: str, answer: Answer, evidence: list[str]) -> Tried:
    return Tried(place=place, answer=answer, evidence="; ".join(evidence)[:_LONGEST])
