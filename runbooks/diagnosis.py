"""Compares facts with a table of causes and decides one, or leaves it to a person. Pure.

The engine calls it for `diagnose` steps; the doors show what it answers. All causes that match are
shown with their evidence; the most specific decides. What cannot be known is never taken as so: a
condition over a fact that was not read makes its cause "not ruled out", and a cause that is not
ruled out keeps the bot from acting by itself.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from config.json_values import Json, JsonMap
from config.policy import Autonomy
from runbooks.causes import Cause, Causes, Condition, Confidence
from runbooks.expressions import ExpressionError, evaluate, known_truth

_LONGEST_SENTENCE = 300
"""Characters of one sentence of evidence; the text in it may come from outside."""
MOST_SHOWN = 8


class Standing(StrEnum):
    """How one condition, or one cause, stands to the facts."""

    HOLDS = "holds"
    FAILS = "fails"
    NOT_KNOWN = "not_known"


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """One cause whose whole signature holds."""

    id: str
    title: str
    confidence: Confidence
    specificity: int
    autonomy: Autonomy
    """After `act_only_if` and everything else that matches."""
    evidence: tuple[str, ...]
    """Sentences for people, in the order of the table: the strongest first."""
    first_action: str
    verify: str
    escalate_when: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """What the table says of these facts."""

    matches: tuple[Match, ...]
    """The most specific first."""
    decided: Match | None
    """None: a person decides."""
    not_ruled_out: tuple[str, ...]
    """Ids of causes that may be so, because a fact was not read."""
    hints: tuple[str, ...]
    """What speaks for these, as far as it is known."""
    why: str
    """One sentence: why this one decides, or why none does."""


def diagnose(causes: Causes, facts: JsonMap) -> Diagnosis:
    """The causes that match these facts, and which of them decides."""
    rows = [(row, _signature(row.signature, facts)) for row in causes.table]
    open_rows = tuple(row for row, standing in rows if standing is Standing.NOT_KNOWN)
    matching = sorted(
        (row for row, standing in rows if standing is Standing.HOLDS),
        key=lambda row: (-row.specificity, row.id),
    )
    held_back = _held_back(causes, facts)
    decided, why = _decide(matching, open_rows, held_back)
    limit = _limit(decided, matching, open_rows, facts) if decided else ""
    matches = tuple(
        _match(row, facts, Autonomy.PROPOSE if row is decided and limit else row.autonomy)
        for row in matching
    )
    return Diagnosis(
        matches=matches,
        decided=matches[0] if decided else None,
        not_ruled_out=tuple(row.id for row in open_rows),
        hints=_hints(open_rows, facts),
        why=f"{why}; {limit}" if limit else why,
    )


def as_output(diagnosis: Diagnosis) -> JsonMap:
    """The output of a `diagnose` step, as expressions and cards read it."""
    decided = diagnosis.decided
    others = [match for match in diagnosis.matches if match is not decided]
    return {
        "id": decided.id if decided else None,
        "title": decided.title if decided else "",
        "confidence": decided.confidence.value if decided else "",
        "autonomy": (decided.autonomy if decided else Autonomy.OBSERVE).value,
        "evidence": list(decided.evidence) if decided else _all_evidence(diagnosis),
        "others": [_other(match) for match in others[:MOST_SHOWN]],
        "not_ruled_out": list(diagnosis.not_ruled_out),
        "why": diagnosis.why,
        "first_action": decided.first_action if decided else "",
        "verify": decided.verify if decided else "",
        "escalate_when": decided.escalate_when if decided else "",
    }


def _decide(
    matching: list[Cause], open_rows: tuple[Cause, ...], held_back: str
) -> tuple[Cause | None, str]:
    if not matching:
        return None, f"{held_back or _nothing_matches(open_rows)}: a person decides"
    best = matching[0]
    if held_back:
        return None, f"{held_back}: a person decides ({best.id} {best.title} would match)"
    ties = [row.id for row in matching if row.specificity == best.specificity]
    if len(ties) > 1:
        return None, f"{' and '.join(ties)} match equally well: a person decides"
    if len(matching) == 1:
        return best, f"only {best.id} matches"
    rest = ", ".join(row.id for row in matching[1:])
    return best, f"{best.id} is more specific than {rest}"


def _nothing_matches(open_rows: tuple[Cause, ...]) -> str:
    if not open_rows:
        return "no cause in the table matches"
    ids = ", ".join(row.id for row in open_rows[:MOST_SHOWN])
    return f"no cause is certain, because facts were not read; it may be {ids}"


def _hints(open_rows: tuple[Cause, ...], facts: JsonMap) -> tuple[str, ...]:
    """Conditions that hold in causes that are not ruled out; each sentence once."""
    found: dict[str, str] = {}
    for row in open_rows:
        for condition in row.signature:
            if _standing(condition, facts) is Standing.HOLDS:
                found.setdefault(_sentence(condition, facts), row.id)
    return tuple(f"{cause}?: {sentence}" for sentence, cause in found.items())


def _held_back(causes: Causes, facts: JsonMap) -> str:
    """Why nothing may decide at all; empty when the table may."""
    return "; ".join(
        _sentence(condition, facts)
        for condition in causes.decides_only_if
        if _standing(condition, facts) is not Standing.HOLDS
    )


def _limit(
    decided: Cause, matching: Iterable[Cause], open_rows: Iterable[Cause], facts: JsonMap
) -> str:
    """Why a cause that may `act` must only be proposed here; empty when it may act."""
    if decided.autonomy is not Autonomy.ACT:
        return ""
    rest = [row.id for row in matching if row is not decided]
    if rest:
        return f"not by itself, because {', '.join(rest)} match{'' if len(rest) > 1 else 'es'} too"
    missing = [
        _sentence(condition, facts)
        for condition in decided.act_only_if
        if _standing(condition, facts) is not Standing.HOLDS
    ]
    if missing:
        return f"not by itself: {'; '.join(missing)}"
    possible = [row.id for row in open_rows if row.specificity >= decided.specificity]
    return f"not by itself, because {', '.join(possible)} cannot be ruled out" if possible else ""


def _signature(conditions: Iterable[Condition], facts: JsonMap) -> Standing:
    standings = {_standing(condition, facts) for condition in conditions}
    if Standing.FAILS in standings:
        return Standing.FAILS
    return Standing.NOT_KNOWN if Standing.NOT_KNOWN in standings else Standing.HOLDS


def _standing(condition: Condition, facts: JsonMap) -> Standing:
    """One alternative that holds is enough; one that is not known keeps the rest from failing."""
    standings = {_stands(expression, facts) for expression in condition.any_of}
    for standing in (Standing.HOLDS, Standing.NOT_KNOWN):
        if standing in standings:
            return standing
    return Standing.FAILS


def _stands(expression: str, facts: JsonMap) -> Standing:
    """Null, missing and unfit facts are not known; only a plain true is a match."""
    try:
        match known_truth(expression, facts):
            case None:
                return Standing.NOT_KNOWN
            case holds:
                return Standing.HOLDS if holds else Standing.FAILS
    except ExpressionError:
        return Standing.NOT_KNOWN


def _match(row: Cause, facts: JsonMap, autonomy: Autonomy) -> Match:
    notes = [note for note in row.notes if _standing(note, facts) is Standing.HOLDS]
    return Match(
        id=row.id,
        title=row.title,
        confidence=row.confidence,
        specificity=row.specificity,
        autonomy=autonomy,
        evidence=tuple(_sentence(condition, facts) for condition in (*row.signature, *notes)),
        first_action=row.first_action,
        verify=row.verify,
        escalate_when=row.escalate_when,
    )


def _sentence(condition: Condition, facts: JsonMap) -> str:
    """The evidence as people read it; a fact that was not read is said to be so."""
    try:
        written: Json = evaluate(condition.sentence, facts)
    except ExpressionError as error:
        return f"{' or '.join(condition.any_of)} (not read: {error.where})"[:_LONGEST_SENTENCE]
    text = written if isinstance(written, str) else str(written)
    return text if len(text) <= _LONGEST_SENTENCE else f"{text[: _LONGEST_SENTENCE - 1]}…"


def _other(match: Match) -> JsonMap:
    return {
        "id": match.id,
        "title": match.title,
        "confidence": match.confidence.value,
        "evidence": list(match.evidence[:2]),
    }


def _all_evidence(diagnosis: Diagnosis) -> list[str]:
    """What a person gets where nothing decides: what matches, then what may be so."""
    found = dict.fromkeys(
        f"{match.id}: {sentence}" for match in diagnosis.matches for sentence in match.evidence
    )
    return [*found, *diagnosis.hints][:MOST_SHOWN]
