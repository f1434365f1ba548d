"""A host is dead only where every sign says so; each sign that is missing makes it silent, not dead."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actions.cluster import NodeBase
from actions.host_look import Eyes, look, neighbours
from actions.host_verdict import BOT, HostVerdict, Signs, judge
from actions.remote_values import Reach, Reachability
from actions.vantage import Answer, References, Tried
from config.node_names import NodeName
from tests.actions.fakes import NODE, FakeNodes, make_node

OTHER, THIRD = NodeName("gpu-02"), NodeName("gpu-03")


def tried(place: str, answer: Answer = Answer.SILENT) -> Tried:
    return Tried(place=place, answer=answer, evidence="port 22")


DEAD = Signs(
    reach=Reachability(reach=Reach.TIME_OUT, evidence="Connection timed out"),
    responding=False,
    references=References(reached=3, named=3),
    tried=(tried(BOT), tried("gpu-02")),
)


def met(reach: Reach) -> Reachability:
    return Reachability(reach=reach, evidence="said so")


def test_a_host_that_answers_nobody_from_no_place_is_dead() -> None:
    found = judge(DEAD)
    assert found.host is HostVerdict.DEAD
    assert found.missing == ()
    assert any("gpu-02" in line for line in found.evidence)


@pytest.mark.parametrize(
    "signs, words",
    [
        (replace(DEAD, reach=met(Reach.NO_ROUTE)), "no time-out"),
        (replace(DEAD, responding=True), "has not noticed"),
        (replace(DEAD, tried=(tried(BOT),)), "no other node"),
        (
            replace(DEAD, tried=(tried(BOT), tried("gpu-02", Answer.NOT_ASKED))),
            "no other node",
        ),
        (replace(DEAD, tried=(tried("gpu-02"),)), "not tried by the bot"),
        (replace(DEAD, references=References(reached=1, named=3)), "1 of 3 reference hosts"),
        (replace(DEAD, references=References(reached=0, named=0)), "0 of 0 reference hosts"),
    ],
)
def test_one_sign_that_is_missing_leaves_it_silent(signs: Signs, words: str) -> None:
    found = judge(signs)
    assert found.host is HostVerdict.SILENT
    assert any(words in line for line in found.missing)


@pytest.mark.parametrize("reach", [reach for reach in Reach if reach.host_alive])
def test_a_host_that_refuses_or_has_another_key_is_alive(reach: Reach) -> None:
    assert judge(replace(DEAD, reach=met(reach))).host is HostVerdict.ALIVE


def test_a_port_that_answers_another_node_means_alive() -> None:
    signs = replace(DEAD, tried=(tried(BOT), tried("gpu-02", Answer.ANSWERED)))
    assert judge(signs).host is HostVerdict.ALIVE


def test_a_bot_that_reaches_nothing_has_no_verdict_on_others() -> None:
    signs = replace(DEAD, references=References(reached=0, named=3))
    assert judge(signs).host is HostVerdict.CUT_OFF


def test_who_could_not_be_asked_is_unknown() -> None:
    assert judge(replace(DEAD, reach=met(Reach.NOT_ASKED))).host is HostVerdict.UNKNOWN


_PLACES = st.sampled_from([BOT, "gpu-02", "gpu-03"])
SIGNS = st.builds(
    Signs,
    reach=st.sampled_from(Reach).map(met),
    responding=st.booleans(),
    references=st.integers(0, 3).flatmap(
        lambda named: st.integers(0, named).map(lambda n: References(reached=n, named=named))
    ),
    tried=st.lists(st.builds(tried, _PLACES, st.sampled_from(Answer)), max_size=4).map(tuple),
)


@given(SIGNS)
def test_dead_means_every_sign_and_nothing_against_it(signs: Signs) -> None:
    if judge(signs).host is not HostVerdict.DEAD:
        return
    silent = {found.place for found in signs.tried if found.answer is Answer.SILENT}
    assert signs.reach.reach is Reach.TIME_OUT
    assert not signs.responding
    assert BOT in silent
    assert silent - {BOT}
    assert not [found for found in signs.tried if found.answer is Answer.ANSWERED]
    assert 2 * signs.references.reached > signs.references.named


@dataclass(slots=True)
class FakeVantage:
    """Answers by place; remembers who was asked."""

    answers: dict[str, Answer] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    reached: int = 3

    def references(self) -> References:
        return References(reached=self.reached, named=3)

    def from_bot(self, node: NodeName, address: str) -> Tried:
        return self._tried(BOT)

    def from_node(self, neighbour: NodeName, node: NodeName, address: str) -> Tried:
        return self._tried(neighbour)

    def _tried(self, place: str) -> Tried:
        self.asked.append(place)
        return tried(place, self.answers.get(place, Answer.SILENT))


SILENT_NODE = make_node(flags=frozenset({"NOT_RESPONDING"}))


def seen_by(vantage: FakeVantage, reach: Reach, others: Sequence[NodeName]) -> HostVerdict:
    nodes = {name: make_node(name=name) for name in others}
    eyes = Eyes(nodes=FakeNodes(verdict=met(reach)), vantage=vantage)
    return look(eyes, SILENT_NODE, nodes)[1].host


def test_another_node_is_asked_only_about_a_silent_one() -> None:
    vantage = FakeVantage()
    assert seen_by(vantage, Reach.REFUSED, (OTHER,)) is HostVerdict.ALIVE
    assert vantage.asked == []
    assert seen_by(vantage, Reach.TIME_OUT, (OTHER,)) is HostVerdict.DEAD
    assert vantage.asked == [BOT, OTHER]


def test_where_the_first_neighbour_cannot_be_asked_the_next_one_is() -> None:
    vantage = FakeVantage(answers={OTHER: Answer.NOT_ASKED})
    assert seen_by(vantage, Reach.TIME_OUT, (OTHER, THIRD)) is HostVerdict.DEAD
    assert vantage.asked == [BOT, OTHER, THIRD]


def test_without_a_neighbour_in_service_no_host_is_dead() -> None:
    assert seen_by(FakeVantage(), Reach.TIME_OUT, ()) is HostVerdict.SILENT


def test_without_other_places_no_host_is_dead() -> None:
    eyes = Eyes(nodes=FakeNodes(verdict=met(Reach.TIME_OUT)))
    assert look(eyes, SILENT_NODE, {OTHER: make_node(name=OTHER)})[1].host is HostVerdict.SILENT


def test_neighbours_of_another_rack_are_asked_first_and_none_that_is_out() -> None:
    nodes = {
        node.name: node
        for node in (
            make_node(name=OTHER),
            make_node(name=THIRD, features=frozenset({"rack2"})),
            make_node(name=NodeName("gpu-04"), base=NodeBase.DOWN),
            make_node(name=NodeName("gpu-05"), flags=frozenset({"NOT_RESPONDING"})),
            make_node(name=NODE),
        )
    }
    assert neighbours(SILENT_NODE, nodes) == (THIRD, OTHER)
