"""Reads a causes file: what goes wrong, how it shows, what is done first. Pure.

A causes file lies beside the runbooks (`runbooks/causes/<name>/v<N>.yaml`) and is released like
them. Its expressions read facts by their bare names; `runbooks.facts` lists these.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from config.policy import Autonomy
from config.yaml_reader import YamlProblems, read
from runbooks.expression_tree import ExpressionError
from runbooks.expressions import names_used, template_names
from runbooks.facts import FACT_SETS
from runbooks.load import checked_name, digest_of
from runbooks.problems import Findings, Problems, from_reader
from runbooks.shape import Table, is_list, shown, suggestion, top
from runbooks.values import kind

_FILE_KEYS = ("causes", "version", "title", "facts", "decides_only_if", "table")
_CAUSE_KEYS = (
    "id", "title", "confidence", "specificity", "autonomy", "signature", "act_only_if", "notes",
    "first_action", "verify", "escalate_when", "kubernetes", "gpu",
)  # fmt: skip
_SENTENCE_KEYS = {
    "decides_only_if": "otherwise",
    "act_only_if": "otherwise",
    "signature": "evidence",
    "notes": "evidence",
}
MOST_CAUSES = 200
_ID = re.compile(r"[A-Z][0-9]{1,3}[a-z]?", re.ASCII)


_NAMES_OF: Final[Mapping[str, Callable[[str], frozenset[str]]]] = {
    "if": names_used,
    "any_of": names_used,
    "evidence": template_names,
    "otherwise": template_names,
}


class Confidence(StrEnum):
    """How sure the table is when the signature matches."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """One thing that must be so, and the sentence about it."""

    any_of: tuple[str, ...]
    """Expressions, one of which must hold; `if:` gives just one."""
    sentence: str
    """A template over the same facts. `evidence:` is shown where the condition holds, `otherwise:`
    where it does not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """One row of a table of causes."""

    id: str
    title: str
    confidence: Confidence
    specificity: int
    """Of several that match, the highest decides; a tie leaves it to a person."""
    autonomy: Autonomy
    signature: tuple[Condition, ...]
    act_only_if: tuple[Condition, ...] = ()
    """Further conditions of `act`; where one does not hold, the bot proposes."""
    notes: tuple[Condition, ...] = ()
    """Evidence that is shown when it is there, and decides nothing."""
    first_action: str
    verify: str
    escalate_when: str
    kubernetes: str = ""
    """The same cause as Kubernetes shows it."""
    gpu: str = ""
    """The same cause as the kernel log and the GPU tools show it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Causes:
    """One version of one causes file."""

    name: str
    version: int
    title: str
    facts: str
    """Which facts its conditions read: a key of `runbooks.facts.FACT_SETS`."""
    decides_only_if: tuple[Condition, ...] = ()
    """Where one of these does not hold, or is not known, a person decides whatever matches."""
    table: tuple[Cause, ...] = field(default=())
    text: str
    digest: str

    def cause(self, cause_id: str) -> Cause | None:
        """The row with this id."""
        return next((row for row in self.table if row.id == cause_id), None)


def load_causes(text: str, source: str) -> Causes:
    """The causes file in `text`. Raises Problems with everything that is wrong."""
    try:
        table = top(read(text, source))
    except YamlProblems as error:
        raise Problems(from_reader(error.problems)) from error
    table.allow(_FILE_KEYS)
    facts = table.text("facts")
    if facts and facts not in FACT_SETS:
        table.wrong(
            "facts", f"there is no set of facts {shown(facts)}{suggestion(facts, FACT_SETS)}"
        )
    causes = Causes(
        name=checked_name(table, "causes"),
        version=table.number("version"),
        title=table.text("title"),
        facts=facts,
        decides_only_if=_conditions(table, "decides_only_if", required=False),
        table=tuple(_cause(entry) for entry in table.tables("table", required=True)),
        text=text,
        digest=digest_of(text),
    )
    _check_ids(causes, table.findings)
    _check_names(causes, table)
    if table.findings.problems:
        raise Problems(table.findings.problems)
    return causes


def _cause(table: Table) -> Cause:
    table.allow(_CAUSE_KEYS)
    autonomy = table.word("autonomy", Autonomy, Autonomy.PROPOSE)
    if autonomy != Autonomy.ACT and "act_only_if" in table.entries:
        table.wrong("act_only_if", "means nothing unless autonomy is act: remove it")
    return Cause(
        id=_id(table),
        title=table.text("title"),
        confidence=table.word("confidence", Confidence),
        specificity=table.number("specificity"),
        autonomy=autonomy,
        signature=_conditions(table, "signature", required=True),
        act_only_if=_conditions(table, "act_only_if", required=False),
        notes=_conditions(table, "notes", required=False),
        first_action=table.text("first_action"),
        verify=table.text("verify"),
        escalate_when=table.text("escalate_when"),
        kubernetes=table.text("kubernetes", ""),
        gpu=table.text("gpu", ""),
    )


def _id(table: Table) -> str:
    found = table.text("id")
    if found and not _ID.fullmatch(found):
        table.wrong("id", f"{shown(found)} is not an id: write it as A1 or A4b")
    return found


def _conditions(table: Table, key: str, *, required: bool) -> tuple[Condition, ...]:
    sentence = _SENTENCE_KEYS[key]
    found = []
    for entry in table.tables(key, required=required):
        entry.allow(("if", "any_of", sentence))
        found.append(Condition(any_of=_expressions(entry), sentence=entry.text(sentence)))
    return tuple(found)


def _expressions(entry: Table) -> tuple[str, ...]:
    if ("if" in entry.entries) == ("any_of" in entry.entries):
        entry.wrong("if", "expected exactly one of if and any_of")
        return ()
    if "if" in entry.entries:
        return (entry.text("if"),)
    found = entry.items("any_of", required=True)
    for index, expression in enumerate(found):
        if not isinstance(expression, str):
            entry.findings.add(
                (*entry.path, "any_of", index), f"expected text, not {kind(expression)}"
            )
    return tuple(expression for expression in found if isinstance(expression, str))


def _check_ids(causes: Causes, findings: Findings) -> None:
    if len(causes.table) > MOST_CAUSES:
        findings.add(("table",), f"{len(causes.table)} causes; at most {MOST_CAUSES} are accepted")
    seen: set[str] = set()
    for index, row in enumerate(causes.table):
        if row.id in seen:
            findings.add(("table", index, "id"), f"the id {row.id} stands twice")
        seen.add(row.id)


def _check_names(causes: Causes, table: Table) -> None:
    """Hold every expression and sentence against the facts that there are."""
    facts = FACT_SETS.get(causes.facts, frozenset())
    for entry in _all_conditions(table):
        for key, names_of in _NAMES_OF.items():
            value = entry.entries.get(key)
            for text in value if is_list(value) else (value,):
                if isinstance(text, str):
                    _check_text(entry, key, (text, names_of), facts)


def _check_text(
    entry: Table,
    key: str,
    read: tuple[str, Callable[[str], frozenset[str]]],
    facts: frozenset[str],
) -> None:
    text, names_of = read
    try:
        names = names_of(text)
    except ExpressionError as error:
        entry.wrong(key, str(error))
        return
    for name in sorted(names):
        root = name.split(".", 1)[0]
        if root not in facts:
            entry.wrong(key, f"there is no fact {shown(root)}{suggestion(root, facts)}")


def _all_conditions(table: Table) -> Iterator[Table]:
    quiet = Findings(table.findings.document)  # shapes were noted before, only names are here
    yield from _of(table, ("decides_only_if",), quiet)
    for row in Table(table.entries, table.path, quiet).tables("table", required=False):
        yield from _of(
            Table(row.entries, row.path, table.findings),
            ("signature", "act_only_if", "notes"),
            quiet,
        )


def _of(table: Table, keys: Collection[str], quiet: Findings) -> Iterator[Table]:
    for key in keys:
        for entry in Table(table.entries, table.path, quiet).tables(key, required=False):
            yield Table(entry.entries, entry.path, table.findings)
