"""A canary runs once, inside a reservation of this run, and what cannot be seen has not passed."""

import hashlib
from dataclasses import dataclass, field, replace
from datetime import timedelta

import pytest

from actions.canary.settings import CanaryRules, Hands
from actions.canary.verbs import actions
from actions.cluster import Reservation, Snapshot
from actions.contract import (
    Action,
    Call,
    Done,
    Failed,
    FailureKind,
    Refusal,
    Rejected,
    Standing,
    Unknown,
    Unreadable,
    Wait,
    WriteUnknown,
)
from actions.hands import Canary, CanaryWord
from config.node_names import NodeName
from tests.actions.fakes import (
    CLUSTER,
    INSTANCE,
    NODE,
    NOW,
    RUN,
    FakeCluster,
    make_call,
    make_mark,
)

HOLD = f"nw-{RUN}-canary_{hashlib.sha256(NODE.encode()).hexdigest()[:8]}_1-{INSTANCE}"
TEN = timedelta(minutes=10)


@dataclass(slots=True)
class Birds:
    """`CanaryHands` in memory."""

    seen: dict[str, Canary] = field(default_factory=dict)
    started: list[tuple[str, str, str]] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)
    error: Exception | None = None
    silent: bool = False

    def start(self, node: NodeName, reservation: str, effect_id: str) -> None:
        if self.error:
            raise self.error
        self.started.append((node, reservation, effect_id))
        self.seen[effect_id] = Canary(word=CanaryWord.PENDING)

    def state(self, effect_id: str) -> Canary:
        if self.silent:
            raise Unreadable("squeue gives no answer")
        return self.seen.get(effect_id, Canary(word=CanaryWord.NONE))

    def end(self, effect_id: str) -> None:
        self.ended.append(effect_id)


@dataclass(slots=True)
class Cage:
    """The verbs over one node that is held by our reservation."""

    birds: Birds = field(default_factory=Birds)
    cluster: FakeCluster = field(default_factory=FakeCluster)
    configured: bool = True

    def __post_init__(self) -> None:
        self.hold()

    def hold(self, *nodes: str, name: str = HOLD) -> None:
        given = tuple(NodeName(node) for node in nodes) or (NODE,)
        held = Reservation(name=name, nodes=given, starts_at=NOW, ends_at=NOW + TEN)
        self.cluster.reservations = (held,)

    def verb(self, name: str) -> Action:
        rules = {CLUSTER: CanaryRules(user="nwcanary", time_limit=TEN)}
        hands = Hands(
            clusters={CLUSTER: self.cluster},
            jobs={CLUSTER: self.cluster},  # type: ignore[dict-item]  # of all of it only the reading
            canaries={CLUSTER: self.birds} if self.configured else {},
            rules=rules if self.configured else {},
        )
        return next(verb for verb in actions(hands) if verb.spec.name == name)


def call(**changes: object) -> Call:
    mark = make_mark(kind="reservation", node=HOLD)
    return make_call(**{"marks": (mark,), "arguments": {"reservation": HOLD}, **changes})


def test_the_plan_names_user_and_reservation_and_keeps_the_node_longer_than_it_may_run() -> None:
    done = Cage().verb("canary.plan").do(make_call())
    assert isinstance(done, Done)
    assert (done.output["enabled"], done.output["user"]) == (True, "nwcanary")
    assert done.output["reservation"] == HOLD
    assert done.output["length"] == "130m"
    assert done.output["flags"] == "maint,ignore_jobs"


def test_a_site_without_a_canary_is_told_so() -> None:
    done = Cage(configured=False).verb("canary.plan").do(make_call())
    assert isinstance(done, Done)
    assert done.output["enabled"] is False
    assert "no canary configured" in str(done.output["why"])
    with pytest.raises(Refusal, match="no canary configured"):
        Cage(configured=False).verb("canary.start").look(call())


def test_two_nodes_of_one_run_have_two_reservations() -> None:
    verb = Cage().verb("canary.plan")
    names = [verb.do(make_call(node=NodeName(node))) for node in ("gpu-01", "gpu-02")]
    assert len({str(done.output["reservation"]) for done in names if isinstance(done, Done)}) == 2


def test_a_second_canary_of_a_run_on_a_node_does_not_take_the_first_ones_verdict() -> None:
    cage = Cage()
    cage.birds.seen[HOLD] = Canary(word=CanaryWord.PASSED)
    done = cage.verb("canary.plan").do(make_call())
    assert isinstance(done, Done)
    assert done.output["reservation"] == HOLD.replace("_1-", "_2-")


def test_it_is_started_once_inside_our_reservation() -> None:
    cage = Cage()
    verb = cage.verb("canary.start")
    assert verb.look(call()).standing is Standing.NOT_SO
    assert isinstance(verb.do(call()), Done)
    assert cage.birds.started == [(NODE, HOLD, HOLD)]
    assert verb.look(call(intended_at=NOW)).standing is Standing.OURS


class Stale(FakeCluster):
    """Its snapshot is as old as one may be: what was made a second ago is not in it."""

    def snapshot(self) -> Snapshot:
        return replace(super().snapshot(), reservations=())


def test_a_reservation_that_is_younger_than_the_shared_snapshot_is_seen() -> None:
    cage = Cage(cluster=Stale())
    assert isinstance(cage.verb("canary.start").do(call()), Done)
    assert isinstance(cage.verb("canary.await").do(call()), Wait)


@pytest.mark.parametrize("run", ["run-99", ""])
def test_without_a_reservation_of_this_run_nothing_is_started(run: str) -> None:
    marks = (make_mark(kind="reservation", node=HOLD, run=run),) if run else ()
    cage = Cage()
    outcome = cage.verb("canary.start").do(call(marks=marks))
    assert isinstance(outcome, Failed)
    assert outcome.kind is FailureKind.REFUSED
    assert cage.birds.started == []


def test_a_reservation_that_is_gone_or_holds_more_starts_nothing() -> None:
    cage = Cage()
    cage.cluster.reservations = ()
    gone = cage.verb("canary.start").do(call())
    cage.hold(NODE, "gpu-02")
    wide = cage.verb("canary.start").do(call())
    assert isinstance(gone, Failed)
    assert "is not there" in gone.error
    assert isinstance(wide, Failed)
    assert "not gpu-01 alone" in wide.error
    assert cage.birds.started == []


def test_a_lost_start_is_unknown_and_a_refused_one_is_told_in_its_own_words() -> None:
    cage = Cage()
    cage.birds.error = WriteUnknown("timed out")
    assert isinstance(cage.verb("canary.start").do(call()), Unknown)
    cage.birds.error = Rejected("Invalid account")
    outcome = cage.verb("canary.start").do(call())
    assert isinstance(outcome, Failed)
    assert "Invalid account" in outcome.error


@pytest.mark.parametrize(
    ("word", "passed"),
    [(CanaryWord.PASSED, True), (CanaryWord.FAILED, False), (CanaryWord.NONE, False)],
)
def test_only_what_is_seen_to_have_passed_has_passed(word: CanaryWord, passed: bool) -> None:
    cage = Cage()
    cage.birds.seen[HOLD] = Canary(word=word, lines="no NVLink")
    done = cage.verb("canary.await").do(call())
    assert isinstance(done, Done)
    assert (done.output["passed"], done.output["lines"]) == (passed, "no NVLink")


def test_a_silent_controller_is_no_verdict() -> None:
    cage = Cage()
    cage.birds.silent = True
    assert isinstance(cage.verb("canary.await").do(call()), Unknown)


def test_one_that_runs_is_waited_for_until_its_time_is_over() -> None:
    cage = Cage()
    cage.birds.seen[HOLD] = Canary(word=CanaryWord.RUNNING)
    verb = cage.verb("canary.await")
    just_before = call(now=NOW + 2 * TEN - timedelta(seconds=1))
    assert isinstance(verb.do(just_before), Wait)
    late = verb.do(replace(just_before, now=NOW + 2 * TEN))
    assert isinstance(late, Done)
    assert late.output["passed"] is False


def test_a_reservation_that_somebody_deleted_ends_the_wait_without_a_pass() -> None:
    cage = Cage()
    cage.birds.seen[HOLD] = Canary(word=CanaryWord.RUNNING)
    cage.cluster.reservations = ()
    done = cage.verb("canary.await").do(call())
    assert isinstance(done, Done)
    assert done.output["passed"] is False
    assert "other work may start" in str(done.output["why"])


def test_only_one_that_has_not_ended_is_ended_and_only_ours() -> None:
    cage = Cage()
    verb = cage.verb("canary.end")
    cage.birds.seen[HOLD] = Canary(word=CanaryWord.FAILED)
    assert verb.look(call()).standing is Standing.FOREIGN
    cage.birds.seen[HOLD] = Canary(word=CanaryWord.RUNNING)
    assert verb.look(call()).standing is Standing.NOT_SO
    assert isinstance(verb.do(call(marks=())), Failed)
    assert isinstance(verb.do(call()), Done)
    assert cage.birds.ended == [HOLD]
