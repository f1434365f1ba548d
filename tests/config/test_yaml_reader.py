"""YAML is read one way only: what has two readings is refused, with its line and what to write."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from config.yaml_reader import LARGEST_FILE, YamlProblems, read


def problems(text: str) -> list[str]:
    """What is wrong with `text`, one line each."""
    with pytest.raises(YamlProblems) as caught:
        read(text, "f.yaml")
    return [str(problem) for problem in caught.value.problems]


def test_plain_values_are_null_truth_whole_numbers_and_text() -> None:
    """The four readings that are left."""
    text = "a: null\nb: true\nc: -12\nd: gpu-017\ne:\nf: '010'\ng: 127.0.0.1\nh: 60s\ni: |\n  no\n"
    assert read(text, "f").value == {
        "a": None,
        "b": True,
        "c": -12,
        "d": "gpu-017",
        "e": None,
        "f": "010",
        "g": "127.0.0.1",
        "h": "60s",
        "i": "no\n",
    }


@pytest.mark.parametrize(
    "scalar",
    "1:30 no No YES on off y N True NULL ~ 010 00 1.10 1. .5 1e3 0x1F 0o17 0b1 1_000 1,000 +5 -0 "
    "10:30:00 .inf -.INF .nan 2026-11-30 2026-1-3T10:00:00Z".split(),
)
def test_a_scalar_with_two_readings_must_be_quoted(scalar: str) -> None:
    """Refused bare, in its line, with the quoted form offered; accepted in quotes."""
    (problem,) = problems(f"x: 1\nkey: {scalar}\n")
    assert problem.startswith("f.yaml:2:6: ")
    assert f'"{scalar}"' in problem
    assert read(f'key: "{scalar}"\n', "f").value == {"key": scalar}


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        ("%YAML 1.2\n---\na: 1\n", "2:1", "directive"),
        ("%TAG ! tag:x,1:\n---\na: 1\n", "2:1", "directive"),
        ("a: &x 1\n", "1:4", "anchor (&x)"),
        ("a: !!python/object:os.system 1\n", "1:4", "tag"),
        ("a: !x [1]\n", "1:4", "tag"),
        ("a: 1\n<<: {b: 1}\n", "2:1", "merge key"),
        ("a: 1\nb: 2\na: 3\n", "3:1", "the key a stands twice; first in line 1"),
        ("a: 1\n---\nb: 2\n", "2:1", "second document"),
        ("1: x\n", "1:1", 'write "1" in quotes'),
        ("no: x\n", "1:1", "no can be read as a truth value"),
        ("? [a]\n: x\n", "1:3", "a key must be text"),
        ("a: {{ node }}\n", "1:5", "template }} must stand in quotes"),
        ("a: 9007199254740993\n", "1:4", "beyond 2**53"),
        ("a: [\n", "2:1", "not YAML"),
        ("a: \x01\n", "1:1", "not YAML"),
    ],
)
def test_what_is_refused_names_its_place(text: str, place: str, said: str) -> None:
    """Each refusal has line, column and words."""
    (problem,) = problems(text)
    assert problem.startswith(f"f.yaml:{place}: ")
    assert said in problem


def test_an_alias_is_not_followed() -> None:
    """Both the anchor and the alias are named."""
    assert [line.split(" (")[0] for line in problems("a: &x 1\nb: *x\n")] == [
        "f.yaml:1:4: an anchor",
        "f.yaml:2:4: an alias",
    ]


def test_all_problems_of_a_file_are_told_at_once() -> None:
    """In the order of the file."""
    found = problems("a: no\nb: [010, {c: 1.10, c: 2}]\nd: 1:30\n")
    assert [line.split(": ")[0] for line in found] == [
        "f.yaml:1:4",
        "f.yaml:2:5",
        "f.yaml:2:14",
        "f.yaml:2:20",
        "f.yaml:3:4",
    ]


def test_a_file_above_the_limit_is_refused_unread() -> None:
    """The limit is in bytes."""
    assert "larger than 1,048,576 bytes" in problems("é" * (LARGEST_FILE // 2 + 1))[0]


def test_deep_nesting_is_refused_and_not_followed() -> None:
    """A hostile file costs no recursion."""
    assert "nested deeper than 50 levels" in problems("[" * 100_000)[0]


def test_positions_are_those_of_keys_and_items() -> None:
    """A missing key is placed at the nearest thing above it."""
    document = read("a: 1\nb:\n  - x\n  - c: 2\n", "f")
    assert document.position(("b",)) == (2, 1)
    assert document.position(("b", 0)) == (3, 5)
    assert document.position(("b", 1, "c")) == (4, 5)
    assert document.position(("b", 1, "missing", "deeper")) == (4, 5)
    assert document.position(("missing",)) == (1, 1)


@given(st.text(max_size=200))
def test_any_text_is_a_document_or_a_list_of_problems(text: str) -> None:
    """Nothing else comes out, whatever goes in."""
    try:
        read(text, "f")
    except YamlProblems as error:
        assert error.problems  # noqa: PT017  the other outcome is no error


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers(-(2**53), 2**53)
        | st.text("abc: 019.-no", max_size=8),
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.text("ab1-", min_size=1), inner)
        ),
    )
)
def test_json_text_reads_back_as_itself(value: object) -> None:
    """JSON quotes every text and key, so nothing in it is ambiguous."""
    assert read(json.dumps(value), "f").value == value
