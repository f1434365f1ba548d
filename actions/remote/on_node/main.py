"""The fixed list of verbs: reads the words, checks them, does one thing, ends with its exit code.

Called by sudo as `nodewarden-helper VERB ARGUMENTS`, or by sshd as the forced command `nodewarden-helper
forced`, which takes the words of SSH_ORIGINAL_COMMAND apart itself: no shell ever sees them.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shlex
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass

from actions.remote.on_node import (
    effects,
    files,
    network,
    processes,
    readings,
    stacks,
    words,
)
from actions.remote.on_node.answers import Answer, plain
from actions.remote.on_node.site import Misconfigured, Site, open_site

ALIVE = "nodewarden-shell-runs"
_MOST_WORDS = 12
_MOST_LETTERS = 4096
_MOST_LINES = 5000
_SUDO = "/usr/bin/sudo"
_CHANGES = ("start", "restart")


@dataclass(frozen=True)
class Verb:
    """One thing that may be asked."""

    usage: str
    least: int
    most: int
    answer: Callable[[list[str], Site], Answer]


def _version(_: list[str], site: Site) -> Answer:
    with open(site.program, "rb") as stream:
        digest = hashlib.sha256(stream.read()).hexdigest()
    return plain({"digest": digest, "python": sys.version.split()[0], "verbs": sorted(VERBS)})


def _service_show(given: list[str], site: Site) -> Answer:
    return readings.show(words.unit(given[0], site.units), site)


def _change(verb: str) -> Callable[[list[str], Site], Answer]:
    def answer(given: list[str], site: Site) -> Answer:
        effect, work = _unit_effect(verb, given, site)
        return effects.ask(effect, work, site)

    return answer


def _unit_effect(verb: str, given: list[str], site: Site) -> tuple[effects.Effect, effects.Work]:
    unit = words.unit(given[0], site.units)
    effect = effects.Effect(words.effect(given[1]), f"service-{verb}", (unit,))
    return effect, effects.change_unit(verb, unit, site)


def _carry_out(given: list[str], site: Site) -> Answer:
    """What a transient unit runs: one of the effects, without another unit around it."""
    service, _, verb = given[0].partition("-")
    if service != "service" or verb not in _CHANGES:
        raise words.Refused(f"{given[0][:60]!a} is not an effect")
    effect, work = _unit_effect(verb, given[1:], site)
    return effects.carry_out(effect, work, site)


def _kernel_log(given: list[str], site: Site) -> Answer:
    if given and given != ["--previous"]:
        raise words.Refused(f"{given[0][:60]!a} is not --previous")
    return readings.kernel_log(bool(given), site)


def _logs(given: list[str], site: Site) -> Answer:
    unit = words.unit(given[0], site.units)
    lines = words.number(given[1], _MOST_LINES) if len(given) > 1 else 200
    return readings.logs(unit, lines, site)


def _file_tail(given: list[str], site: Site) -> Answer:
    user, path = words.user(given[0]), words.path(given[1])
    return files.tail(path, user, words.number(given[2], 1 << 17), site)


def _file_list(given: list[str], site: Site) -> Answer:
    user, path = words.user(given[0]), words.path(given[1])
    return files.listed(path, user, words.pattern(given[2]), site)


def _tcp_try(given: list[str], site: Site) -> Answer:
    ports = [words.number(one, 65535) for one in given[1:]]
    return network.tried(words.host(given[0]), ports, site)


VERBS = {
    "hello": Verb("", 0, 0, lambda _, __: Answer(0, f"{ALIVE}\n")),
    "version": Verb("", 0, 0, _version),
    "facts": Verb("", 0, 0, lambda _, site: readings.facts(site)),
    "boot": Verb("", 0, 0, lambda _, __: readings.boot()),
    "service-show": Verb("UNIT", 1, 1, _service_show),
    "service-start": Verb("UNIT EFFECT", 2, 2, _change("start")),
    "service-restart": Verb("UNIT EFFECT", 2, 2, _change("restart")),
    "kernel-log": Verb("[--previous]", 0, 1, _kernel_log),
    "logs": Verb("UNIT [LINES]", 1, 2, _logs),
    "stacks": Verb("pid:N|job:N", 1, 1, lambda given, _: stacks.stacks(given[0])),
    "file-tail": Verb("USER PATH BYTES", 3, 3, _file_tail),
    "file-list": Verb("USER FOLDER PATTERN", 3, 3, _file_list),
    "tcp-try": Verb("HOST PORT…", 2, 1 + network.MOST_PORTS, _tcp_try),
    "carry-out": Verb("VERB UNIT EFFECT", 3, 3, _carry_out),
}
"""In the order in which the refusal of an unknown one lists them."""


def answer(given: list[str], program: str) -> Answer:
    """The answer to these words. Never raises for what they say."""
    try:
        verb = VERBS[given[0]] if given and given[0] in VERBS else None
        if verb is None:
            raise words.Refused(f"not a verb; there are: {' '.join(VERBS)}")
        if not verb.least <= len(given) - 1 <= verb.most:
            raise words.Refused(f"usage: nodewarden-helper {given[0]} {verb.usage}")
        return verb.answer(given[1:], open_site(program))
    except words.Refused as error:
        return Answer(words.REFUSED, "", f"refused: {error}")
    except Misconfigured as error:
        return Answer(words.MISCONFIGURED, "", f"refused: {error}")
    except words.Failed as error:
        return Answer(1, "", str(error))
    except OSError as error:
        return Answer(1, "", f"{error.filename or 'the node'}: {error.strerror}")


def main() -> int:
    """Answer the command line."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # the connection may go; a note must be ended
    program = os.path.realpath(sys.argv[0])
    given = sys.argv[1:]
    if given == ["forced"]:
        given = _original()
        if os.geteuid() != 0 and given:
            processes.become([_SUDO, "-n", program, *given])
    if sum(map(len, given)) > _MOST_LETTERS or len(given) > _MOST_WORDS:
        found = Answer(words.REFUSED, "", "refused: too many words")
    elif os.geteuid() != 0:
        found = Answer(words.REFUSED, "", "refused: this program is for root; ask with sudo -n")
    else:
        found = answer(given, program)
    for stream, text in ((sys.stdout, found.out), (sys.stderr, found.err)):
        if text:
            line = text if text.endswith("\n") else f"{text}\n"
            # Whatever the locale: names and logs need not be UTF-8.
            with contextlib.suppress(BrokenPipeError):
                stream.buffer.write(line.encode("utf-8", "backslashreplace"))
                stream.buffer.flush()
    return found.code


def _original() -> list[str]:
    """The words that the other side of the connection asked for; none if they cannot be taken apart."""
    try:
        return shlex.split(os.environ.get("SSH_ORIGINAL_COMMAND", "")[:_MOST_LETTERS])
    except ValueError:
        return []
