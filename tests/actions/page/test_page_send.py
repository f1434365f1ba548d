"""The action `page.send`."""

from dataclasses import replace

import pytest

from actions.contract import Call, Done, Failed, FailureKind, Standing, Unknown
from actions.page.chain import PagerChain
from actions.page.send import SendPage, actions
from config.ids import ClusterName, InstanceId, RunId, StepId
from config.json_values import Json
from config.node_names import NodeName
from config.permissions import Permission
from tests.actions.page.receivers import CLOCK, MAYBE, NO, NOW, YES, Fake


def call(**arguments: Json) -> Call:
    return Call(
        run=RunId("run-7"),
        step=StepId("tell"),
        attempt=1,
        instance=InstanceId("abcd0123"),
        cluster=ClusterName("sim"),
        node=NodeName("gpu-017"),
        arguments={"summary": "node gpu-017 is dead", **arguments},
        cause="A2",
        now=NOW,
    )


def sender(*backends: Fake) -> SendPage:
    return SendPage(PagerChain(backends, CLOCK))


def test_it_is_listed_with_its_promises() -> None:
    (action,) = actions(PagerChain([Fake("a", YES)], CLOCK))
    spec = action.spec
    assert (spec.name, spec.permission) == ("page.send", Permission.PAGE_SEND)
    assert (spec.observable, spec.repeatable, spec.looks_only) == (False, True, False)


def test_a_look_sends_nothing() -> None:
    fake = Fake("a", YES)
    seen = sender(fake).look(call())
    assert seen.standing is Standing.NOT_SO
    assert fake.pages == []


def test_a_page_that_is_taken_over_is_done_and_names_who_took_it() -> None:
    fake = Fake("b", YES)
    outcome = sender(Fake("a", NO), fake).do(call(details={"gpus": 512}))
    assert isinstance(outcome, Done)
    assert outcome.output["accepted_by"] == "b"
    assert outcome.output["receipts"] == "a: HTTP 500; b: taken over"
    assert outcome.output["key"] == "nodewarden/abcd0123/run-7/tell"
    (page,) = fake.pages
    assert page.details == {"gpus": "512", "run": "run-7", "cluster": "sim", "node": "gpu-017"}


def test_a_second_attempt_has_the_same_key() -> None:
    fake = Fake("a", YES)
    sender(fake).do(call())
    sender(fake).do(replace(call(), attempt=2))
    assert fake.pages[0].key == fake.pages[1].key


def test_a_total_failure_is_said_to_be_not_sent() -> None:
    outcome = sender(Fake("a", NO)).do(call())
    assert isinstance(outcome, Failed)
    assert outcome.kind is FailureKind.RETRYABLE
    assert outcome.error.startswith("NOT SENT, nobody was woken: a: HTTP 500")


def test_no_answer_is_unknown_and_never_failed() -> None:
    outcome = sender(Fake("a", MAYBE), Fake("b", NO)).do(call())
    assert isinstance(outcome, Unknown)


def test_a_resolve_ends_the_page_of_the_key_that_is_given() -> None:
    fake = Fake("a", YES)
    sender(fake).do(call(resolved=True, key="nodewarden/x", severity="warning"))
    (page,) = fake.pages
    assert (page.resolved, page.key, page.severity) == (True, "nodewarden/x", "warning")


@pytest.mark.parametrize(
    "arguments, words", [({"summary": " "}, "summary"), ({"severity": "panic"}, "critical")]
)
def test_a_page_that_cannot_be_one_is_refused_before_anybody_is_asked(
    arguments: dict[str, Json], words: str
) -> None:
    fake = Fake("a", YES)
    assert sender(fake).look(call(**arguments)).standing is Standing.BLOCKED
    outcome = sender(fake).do(call(**arguments))
    assert isinstance(outcome, Failed)
    assert outcome.kind is FailureKind.PERMANENT
    assert words in outcome.error
    assert fake.pages == []
