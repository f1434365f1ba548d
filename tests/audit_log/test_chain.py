from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from audit_log.chain import Head, Row, walk
from audit_log.encoding import encode
from config.redaction import Redactor
from tests.audit_log.ledgers import START, event

texts = st.lists(st.text(max_size=20), min_size=1, max_size=12)


def chained(contents: Sequence[str]) -> list[Row]:
    """A sound chain over these."""
    rows: list[Row] = []
    prev = Head().digest
    for seq, text in enumerate(contents, 1):
        made = encode(event(text=text), seq=seq, at=START, prev=prev, redactor=Redactor())
        rows.append((seq, made.text.encode(), made.digest.encode()))
        prev = made.digest
    return rows


@given(texts)
def test_a_chain_is_sound_and_ends_in_its_last_digest(contents: list[str]) -> None:
    rows = chained(contents)
    walked = walk(rows, Head())
    assert walked.found is None
    assert walked.count == len(rows)
    assert walked.head == Head(seq=len(rows), digest=rows[-1][2].decode())


@given(texts, st.data())
def test_walking_in_pieces_is_walking_at_once(contents: list[str], data: st.DataObject) -> None:
    rows = chained(contents)
    cut = data.draw(st.integers(0, len(rows)))
    first = walk(rows[:cut], Head())
    assert walk(rows[cut:], first.head).head == walk(rows, Head()).head


@given(texts, st.data())
def test_any_changed_byte_is_found_where_it_is(contents: list[str], data: st.DataObject) -> None:
    rows = chained(contents)
    index = data.draw(st.integers(0, len(rows) - 1))
    seq, text, digest = rows[index]
    place = data.draw(st.integers(0, len(text) - 1))
    bit = 1 << data.draw(st.integers(0, 7))
    changed = text[:place] + bytes([text[place] ^ bit]) + text[place + 1 :]
    walked = walk([*rows[:index], (seq, changed, digest), *rows[index + 1 :]], Head())
    assert walked.found is not None
    assert walked.found.seq == seq


@given(texts, st.data())
def test_a_changed_order_is_found(contents: list[str], data: st.DataObject) -> None:
    rows = chained([*contents, "last"])
    order = data.draw(st.permutations(rows))
    assert (walk(order, Head()).found is None) == (order == rows)


@given(texts, st.data())
def test_a_row_left_out_is_found_unless_it_is_the_tail(
    contents: list[str], data: st.DataObject
) -> None:
    rows = chained([*contents, "last"])
    index = data.draw(st.integers(0, len(rows) - 2))
    walked = walk(rows[:index] + rows[index + 1 :], Head())
    assert walked.found is not None
    assert walked.found.seq == index + 1


def test_a_link_that_only_stands_inside_the_data_is_no_link() -> None:
    """Text from outside may look like the end of a record."""
    rows = chained(["a", "b"])
    wrong = encode(
        event(text=f'","prev":"{rows[0][2].decode()}","seq":2,"v":1}}'),
        seq=2,
        at=START,
        prev="f" * 64,
        redactor=Redactor(),
    )
    walked = walk([rows[0], (2, wrong.text.encode(), wrong.digest.encode())], Head())
    assert walked.found is not None


def test_a_number_left_out_of_a_linked_chain_is_found() -> None:
    rows = chained(["a"])
    skips = encode(event(), seq=3, at=START, prev=rows[0][2].decode(), redactor=Redactor())
    walked = walk([rows[0], (3, skips.text.encode(), skips.digest.encode())], Head())
    assert walked.found is not None
    assert walked.found.seq == 2
