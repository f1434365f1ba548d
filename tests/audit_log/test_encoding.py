import base64
import json
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from audit_log.chain import FIRST_PREV
from audit_log.encoding import LARGEST_INTEGER, LARGEST_RECORD, Encoded, decode, encode
from audit_log.ledger import Ledger
from audit_log.records import Event, EventKind
from config.ids import ActorId, ClusterName, RunId, StepId
from config.node_names import NodeName
from config.redaction import Redactor
from tests.audit_log.ledgers import START, append, event

any_text = st.text(st.characters(codec=None), max_size=40)
"""With lone surrogates, NUL and everything else that a str can hold."""

plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-LARGEST_INTEGER, LARGEST_INTEGER)
    | st.text(st.characters(codec="utf-8"), max_size=30),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=9), inner, max_size=4)
    ),
    max_leaves=20,
)
anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | any_text
    | st.binary(max_size=60)
    | st.datetimes()
    | st.complex_numbers()
    | st.sets(st.integers(), max_size=4),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.dictionaries(any_text | st.integers() | st.binary(max_size=4), inner, max_size=4)
    ),
    max_leaves=20,
)


def encoded(data: Any, **names: str) -> Encoded:
    happened = Event(
        kind=EventKind.STEP_FINISHED,
        actor=ActorId(names.get("actor", "p-1")),
        run=RunId(names["run"]) if "run" in names else None,
        step=StepId(names["step"]) if "step" in names else None,
        cluster=ClusterName(names["cluster"]) if "cluster" in names else None,
        node=NodeName(names["node"]) if "node" in names else None,
        data=data,
    )
    return encode(happened, seq=7, at=START, prev="a" * 64, redactor=Redactor())


def check(made: Encoded) -> dict[str, Any]:
    """What holds for every stored text; the payload."""
    assert made.text.isascii()
    assert len(made.text) <= LARGEST_RECORD
    assert made.digest == sha256(made.text.encode()).hexdigest()
    payload: dict[str, Any] = json.loads(made.text, parse_float=refuse, parse_constant=refuse)
    assert json.dumps(payload, sort_keys=True, separators=(",", ":")) == made.text
    assert made.text.endswith(',"prev":"' + "a" * 64 + '","seq":7,"v":1}')
    json.dumps(payload, ensure_ascii=False).encode("utf-8")  # no lone surrogates
    return payload


def refuse(text: str) -> None:
    raise AssertionError(f"a float in the record: {text}")


@given(st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=9), plain, max_size=5))
def test_plain_data_comes_back_as_it_was(data: dict[str, Any]) -> None:
    made = encoded(data)
    check(made)
    if not made.spilled:
        assert decode(made.text, made.digest).event.data == data


@given(st.dictionaries(any_text, anything, max_size=5))
def test_any_data_becomes_a_record(data: dict[str, Any]) -> None:
    check(encoded(data))


class NotJustADict(dict[str, Any]):
    """No short cut knows this type."""


@given(st.dictionaries(any_text, anything, max_size=5))
def test_plain_data_has_the_record_that_a_closer_look_would_make(data: dict[str, Any]) -> None:
    assert encoded(data) == encoded(NotJustADict(data))


@pytest.mark.parametrize("depth", [30, 31, 32, 33, 40])
def test_deep_data_has_the_record_that_a_closer_look_would_make(depth: int) -> None:
    deep: Any = "x"
    for _ in range(depth):
        deep = [deep]
    assert encoded({"deep": deep}) == encoded(NotJustADict(deep=deep))


@given(any_text, any_text, any_text, any_text, any_text)
def test_any_names_become_a_record_that_reads_back(
    actor: str, run: str, step: str, cluster: str, node: str
) -> None:
    made = encoded({}, actor=actor, run=run, step=step, cluster=cluster, node=node)
    check(made)
    assert decode(made.text, made.digest).event.run is not None


@given(st.binary(max_size=200))
def test_bytes_survive_as_text_or_as_base64(data: bytes) -> None:
    kept = check(encoded({"output": data}))["event"]["data"]["output"]
    if isinstance(kept, str):
        assert kept.encode("utf-8") == data
    else:
        assert base64.b64decode(kept["base64"]) == data


@pytest.mark.parametrize("size", [7000, 8192, 20_000, 5_000_000])
def test_what_is_too_long_is_named_by_its_digest_and_handed_back(size: int) -> None:
    output = "ü" * size
    made = encoded({"output": output, "exit_code": 3, "state": "failed"})
    data = check(made)["event"]["data"]
    assert data["exit_code"] == 3
    assert data["state"] == "failed"
    assert made.spilled == (output.encode(),)
    assert data["output"]["artefact"] == sha256(output.encode()).hexdigest()
    assert data["output"]["bytes"] == 2 * size


def test_many_small_values_that_are_too_long_together_are_kept_as_one_artefact() -> None:
    made = encoded({f"key-{number}": number for number in range(3000)})
    data = check(made)["event"]["data"]
    (content,) = made.spilled
    assert data["left_out"]["artefact"] == sha256(content).hexdigest()
    assert json.loads(content)["key-2999"] == 2999


def test_long_names_leave_room_and_stay_distinct() -> None:
    long = ["🔥" * 5000 + ending for ending in "ab"]
    made = [encoded({"x": "y" * 9000}, actor=name, run=name, node=name) for name in long]
    actors = {check(one)["event"]["actor"] for one in made}
    assert len(actors) == 2


def test_floats_and_numbers_that_json_readers_round_become_text() -> None:
    data = check(encoded({"f": 0.1, "nan": float("nan"), "big": 2**53 + 1, "huge": 10**5000}))
    kept = data["event"]["data"]
    assert kept["f"] == "0.1"
    assert kept["nan"] == "nan"
    assert kept["big"] == hex(2**53 + 1)
    assert isinstance(kept["huge"], str) or "artefact" in kept["huge"]


def test_cyclic_deep_and_endless_data_become_a_record() -> None:
    cyclic: dict[str, Any] = {"a": 1}
    cyclic["self"] = [cyclic] * 5
    check(encoded(cyclic))
    deep: Any = "x"
    for _ in range(5000):
        deep = [deep]
    check(encoded({"deep": deep}))


class Hostile:
    def __repr__(self) -> str:
        raise RuntimeError("no")


class HostileMap(dict[str, int]):
    def items(self) -> Any:
        raise RuntimeError("no")


class HostileText(str):
    def __str__(self) -> str:
        return "\ud800" * 9000

    def encode(self, *_: Any) -> bytes:
        raise RuntimeError("no")


def test_values_whose_code_fails_become_a_record() -> None:
    data = {"o": Hostile(), "m": HostileMap(a=1), "t": HostileText("quiet"), "k": {Hostile(): 1}}
    kept = check(encoded(data))["event"]["data"]
    assert kept["o"] == "(unreadable Hostile: RuntimeError)"
    assert kept["t"] == "quiet"


@pytest.mark.parametrize("shift", [timedelta(days=-50_000), timedelta(days=2_000_000)])
def test_any_time_of_a_wrong_clock_comes_back(shift: timedelta) -> None:
    at: datetime = START + shift
    made = encode(event(), seq=1, at=at, prev=FIRST_PREV, redactor=Redactor())
    assert decode(made.text, made.digest).at == at


def test_what_did_not_fit_is_kept_beside_the_ledger(ledger: Ledger) -> None:
    record = append(ledger, event(output="long output " * 1000))
    note = record.event.data["output"]
    assert isinstance(note, dict)
    assert ledger.artefacts.get(str(note["artefact"])) == b"long output " * 1000
