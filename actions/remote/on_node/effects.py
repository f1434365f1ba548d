"""Effects on the node: start or restart of a unit.

One at a time, by a lock. Each has the bot's name of it, which is noted before it begins and when it
has ended: the same name a second time does nothing and tells what the first became. Where systemd
runs, the effect is a transient unit of that name, so it lives on when the connection is gone.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from actions.remote.on_node import processes, words
from actions.remote.on_node.answers import Answer
from actions.remote.on_node.locks import folder, held
from actions.remote.on_node.site import Site

LIMIT = 60.0
_SYSTEMD = "/run/systemd/system"
_KEPT = 512
_LONGEST = 4000
_LOCK = "effect"

if TYPE_CHECKING:
    Json = dict[str, object]
    Work = Callable[[int], processes.Ended]
    """Does it; gets the lock, so that what it starts can hold it on."""


@dataclass(frozen=True)
class Effect:
    """One thing to do once."""

    id: str
    verb: str
    arguments: tuple[str, ...]

    @property
    def what(self) -> list[str]:
        """As it is noted."""
        return [self.verb, *self.arguments]


def ask(effect: Effect, work: Work, site: Site) -> Answer:
    """Do it as a unit of its own where there is systemd, else here; or tell what it became before."""
    before = _before(effect, site)
    if before is not None:
        return before
    argv = ["systemd-run", f"--unit={effect.id}", "--collect", "--wait", "--quiet"]
    argv += [f"--property=RuntimeMaxSec={LIMIT + 10:g}", "--", site.program]
    argv += ["carry-out", *effect.what, effect.id]
    if not os.path.isdir(_SYSTEMD):
        return carry_out(effect, work, site)
    ended = processes.run(argv, site.environment(), LIMIT + 20)
    noted = _noted(effect, site)
    if noted is None:
        code = words.TIMED_OUT if ended.code is None else ended.code or 1
        return Answer(code, "", f"systemd-run: {ended.said()}")
    return _told(noted)


def carry_out(effect: Effect, work: Work, site: Site) -> Answer:
    """Do it here and now, under the lock, noted before and after."""
    with held(site.state, _LOCK) as lock:
        if lock is None:
            return Answer(words.BUSY, "", "another effect is under way: nothing was done")
        noted = _noted(effect, site)
        if noted is not None:
            return _repeated(noted)
        begun: Json = {"what": effect.what, "began": _now()}
        _note(effect, site, begun)
        ended = work(lock)
        code = words.TIMED_OUT if ended.code is None else ended.code
        said, out = "" if ended.ok else ended.said(), ended.text()[-_LONGEST:]
        _note(effect, site, {**begun, "ended": _now(), "code": code, "said": said, "out": out})
        return Answer(code, out, said)


def change_unit(verb: str, unit: str, site: Site) -> Work:
    """`systemctl start` or `restart` of an allowed unit."""
    argv = ["systemctl", "--no-ask-password", verb, "--", unit]
    return lambda lock: processes.run(argv, site.environment(), LIMIT, keep=(lock,))


def _before(effect: Effect, site: Site) -> Answer | None:
    """What became of it, if it was begun before and is not under way now."""
    noted = _noted(effect, site)
    if noted is None:
        return None
    if "ended" not in noted:
        with held(site.state, _LOCK) as lock:
            if lock is None:
                return Answer(words.BUSY, "", f"effect {effect.id} is under way: nothing was done")
    return _repeated(_noted(effect, site) or noted)


def _repeated(noted: Json) -> Answer:
    told = _told(noted)
    if told.code == words.OUTCOME_UNKNOWN:
        return told
    first = f"this effect was carried out at {noted['ended']} with exit code {told.code}"
    return Answer(told.code, told.out, f"nothing was done now: {first} {told.err}".strip())


def _told(noted: Json) -> Answer:
    if "ended" not in noted:
        why = f"it began at {noted['began']} and its end was never noted: what it became is unknown"
        return Answer(words.OUTCOME_UNKNOWN, "", f"nothing was done now: {why}")
    code = noted["code"]
    return Answer(code if isinstance(code, int) else 1, str(noted["out"]), str(noted["said"]))


def _noted(effect: Effect, site: Site) -> Json | None:
    """The note of this effect. Raises Refused where its name was used for another."""
    try:
        noted: Json = json.loads(_place(effect, site).read_bytes())
    except FileNotFoundError:
        return None
    except ValueError:
        noted = {"what": effect.what, "began": "an unknown time"}
    if noted["what"] != effect.what:
        raise words.Refused(f"effect id {effect.id} was used for another effect: {noted['what']}")
    return noted


def _note(effect: Effect, site: Site, note: Json) -> None:
    """On the file system as a whole or not at all."""
    place = _place(effect, site)
    _forget(place.parent)
    fresh = place.with_name(f".{place.name}")
    with fresh.open("w", encoding="ascii") as stream:
        json.dump(note, stream)
        stream.flush()
        os.fsync(stream.fileno())
    fresh.replace(place)


def _place(effect: Effect, site: Site) -> Path:
    return Path(folder(f"{folder(site.state)}/effects")) / effect.id


def _forget(notes: Path) -> None:
    """The oldest notes beyond so many; an effect id is never used again by the bot."""
    entries = sorted(notes.iterdir(), key=lambda entry: entry.stat().st_mtime_ns)
    for entry in entries[:-_KEPT]:
        with contextlib.suppress(FileNotFoundError):
            entry.unlink()


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
