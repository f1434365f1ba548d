"""Short texts for people: cut to a width, times as they are read, what a run did. Pure.

Used by the modules that make cards and by the engine's own sentences. Text from outside stays as it
is; the door that shows it escapes it.
"""

import re
import textwrap
from collections.abc import Iterable, Iterator
from datetime import date, datetime

from config.node_names import NodeName, fold
from runbooks.run import Run, StepState, run_nodes

WIDTH = 80
"""Characters of a line; a phone breaks it once."""
_STAMP = re.compile(
    r"(\d{4}-\d{2}-\d{2})T(\d{2}:\d{2})(?::\d{2}(?:\.\d+)?)?(?:Z|\+00:00)", re.ASCII
)
_ZONE = re.compile(r"(?<=\d\d:\d\d) UTC(?=.*\d\d:\d\d UTC)", re.ASCII)
_WORD = re.compile(r"\w+(?:[./:@-]\w+)*")
_STEM = 5
_SAY_NOTHING = frozenset("a an the is was by of on in to and or it its slurm says reaso".split())


def cut(text: str, width: int = WIDTH) -> str:
    """Text on one line of at most `width` characters, cut between two words where there are any."""
    flat = " ".join(text.split())
    if len(flat) <= width:
        return flat
    kept = flat[: width - 1]
    at_word = kept.rpartition(" ")[0] if flat[width - 1] != " " else kept
    return f"{at_word if len(at_word) > width // 2 else kept}…"


def clocked(text: str, today: date) -> str:
    """Times in the machine's form as people read them, the zone only after the last of a line."""

    def shown(found: re.Match[str]) -> str:
        day, minute = found[1], found[2]
        return f"{minute} UTC" if day == today.isoformat() else f"{day[5:]} {minute} UTC"

    return _ZONE.sub("", _STAMP.sub(shown, text))


def effects(run: Run, state: StepState) -> list[str]:
    """What was really done, each verb once: `node.drain gpu-[017-019]`."""
    done: dict[str, list[NodeName]] = {}
    for step in run.steps.values():
        if step.attempt and step.state is state:
            nodes = done.setdefault(step.action.partition("@")[0], [])
            nodes.extend([step.node] if step.node else [])
    return [f"{verb} {fold(nodes)}".rstrip() for verb, nodes in done.items()]


def where(run: Run) -> str:
    """The nodes of the run, else its cluster."""
    return fold(run_nodes(run)) or run.cluster


def minute(moment: datetime | None) -> str:
    """HH:MM and the zone; empty for none."""
    return f"{moment:%H:%M} UTC" if moment else ""


def news(facts: Iterable[str], said: str) -> Iterator[str]:
    """The facts without those whose every word that counts was said already."""
    known = _counting(said)
    for fact in facts:
        words = _counting(fact)
        if words - known:
            known |= words
            yield fact


def _counting(text: str) -> set[str]:
    """The words that carry something; of plain words the stem, of names and numbers the whole."""
    words = _WORD.findall(re.sub("[+_]", " ", text.lower()))
    stems = {word[:_STEM] if word.isalpha() else word for word in words}
    return stems - _SAY_NOTHING


def packed(facts: Iterable[str], most: int) -> list[str]:
    """Sentences on as few lines as they need; those that find no room are left out."""
    rows: list[str] = []
    for fact in facts:
        both = f"{rows[-1]}; {fact}" if rows else fact
        if rows and len(both) <= WIDTH:
            rows[-1] = both
        elif len(rows) < most:
            rows.append(cut(fact))
    return rows


def rows_of(text: str, most: int) -> list[str]:
    """Text over at most so many lines."""
    rows = textwrap.wrap(" ".join(text.split()), WIDTH) or [""]
    return rows if len(rows) <= most else [*rows[: most - 1], cut(" ".join(rows[most - 1 :]))]
