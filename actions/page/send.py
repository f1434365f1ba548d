"""`page.send`: wake the people on call from a runbook; and the list for `actions.catalogue`.

Called by the engine. A page cannot be seen from here once it is out, but its key makes the receiver
merge a repeat, so that doing it again after a crash wakes nobody twice.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from actions.contract import (
    Action,
    ActionSpec,
    Call,
    Done,
    Failed,
    FailureKind,
    Field,
    Observation,
    Outcome,
    Standing,
    Unknown,
    ValueType,
)
from actions.hands import Page, Pager, PageReceipt
from actions.page.messages import LONGEST_SUMMARY, LONGEST_VALUE, plain
from config.json_values import Json
from config.permissions import Permission

DEADLINE = timedelta(seconds=30)
SEVERITIES = ("critical", "warning", "info")

_SPEC = ActionSpec(
    name="page.send",
    version=1,
    summary="Wake the people on call",
    permission=Permission.PAGE_SEND,
    parameters={
        "summary": Field(type=ValueType.TEXT, help="what they read first, one line"),
        "details": Field(type=ValueType.FACTS, help="further facts, name and text", required=False),
        "severity": Field(
            type=ValueType.TEXT, help="critical (default), warning or info", required=False
        ),
        "resolved": Field(
            type=ValueType.TRUTH, help="true ends the page of this key", required=False
        ),
        "key": Field(
            type=ValueType.TEXT,
            help="the same trouble has the same key; default: this run and step",
            required=False,
        ),
    },
    output={
        "accepted_by": Field(type=ValueType.TEXT, help="the back end that took it over"),
        "receipts": Field(type=ValueType.TEXT, help="what each back end said"),
        "key": Field(type=ValueType.TEXT, help="the key that ends it"),
    },
    observable=False,
    repeatable=True,
    time_limit=2 * DEADLINE,
)


def actions(pager: Pager) -> tuple[Action, ...]:
    """Every verb on pages, over this pager."""
    return (SendPage(pager),)


@dataclass(frozen=True, slots=True)
class SendPage:
    """The verb."""

    pager: Pager

    @property
    def spec(self) -> ActionSpec:
        """What is promised."""
        return _SPEC

    def look(self, call: Call) -> Observation:
        """Nothing can be seen of a page; only what it would say."""
        problem = _problem(call)
        if problem:
            return Observation(standing=Standing.BLOCKED, why=problem)
        page = _page(call)
        return Observation(
            standing=Standing.NOT_SO,
            why=f"the people on call would be told: {plain(page.summary, LONGEST_SUMMARY)}",
            facts={"key": page.key},
        )

    def do(self, call: Call) -> Outcome:
        """Send it; accepted is not delivered, and no answer is not a refusal."""
        problem = _problem(call)
        if problem:
            return Failed(error=problem, kind=FailureKind.PERMANENT)
        page = _page(call)
        receipts = self.pager.send(page, deadline=DEADLINE)
        told = _told(receipts)
        for receipt in receipts:
            if receipt.accepted:
                output = {"accepted_by": receipt.backend, "receipts": told, "key": page.key}
                return Done(output=output)
        if any(receipt.unknown for receipt in receipts):
            return Unknown(why=f"nobody said that the page was taken over: {told}")
        return Failed(
            error=f"NOT SENT, nobody was woken: {told}; tell the people on call yourself",
            kind=FailureKind.RETRYABLE,
        )


def _page(call: Call) -> Page:
    """The page of this call; the key is that of the step, never of the attempt."""
    arguments = call.arguments
    given = arguments.get("details")
    details = given if isinstance(given, Mapping) else {}
    where = {"run": call.run, "cluster": call.cluster, "node": call.node or ""}
    return Page(
        key=_text(arguments.get("key")) or f"nodewarden/{call.instance}/{call.run}/{call.step}",
        summary=_text(arguments.get("summary")),
        details={
            **{name: _text(value) for name, value in details.items()},
            **{name: value for name, value in where.items() if value},
        },
        severity=_text(arguments.get("severity")) or SEVERITIES[0],
        resolved=arguments.get("resolved") is True,
    )


def _problem(call: Call) -> str:
    """Why this cannot be a page, for whoever wrote the runbook; empty when it can."""
    if not _text(call.arguments.get("summary")).strip():
        return "a page needs a summary: say in one line what is wrong"
    severity = call.arguments.get("severity")
    if severity is not None and severity not in SEVERITIES:
        return f"severity is one of {', '.join(SEVERITIES)}, not {severity!a}"
    return ""


def _told(receipts: tuple[PageReceipt, ...]) -> str:
    """All receipts in one line."""
    return plain("; ".join(f"{each.backend}: {each.detail}" for each in receipts), LONGEST_VALUE)


def _text(value: Json) -> str:
    """A value for people; nothing for nothing."""
    return "" if value is None else str(value)
