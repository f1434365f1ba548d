"""Two writers are seen in the journal whenever two starts of a job wrote in one second."""

from hypothesis import given
from hypothesis import strategies as st

from bot.testbed.journal import Entry, entries, two_writers

_ENTRIES = st.builds(
    Entry,
    time=st.integers(0, 20_000).map(lambda thousandths: thousandths / 1000),
    host=st.sampled_from(["gpu-01", "gpu-02"]),
    rank=st.integers(0, 1),
    restart=st.integers(0, 2),
    step=st.integers(0, 9),
)


def _line(entry: Entry) -> str:
    words = (f"{entry.time:.3f}", entry.host, entry.rank, entry.restart, entry.step)
    return " ".join(str(word) for word in words) + "\n"


@given(st.lists(_ENTRIES))
def test_what_was_written_is_read_back(written: list[Entry]) -> None:
    assert entries("".join(map(_line, written))) == tuple(written)


def test_a_line_that_is_not_whole_yet_is_left_out() -> None:
    assert entries("7.000 gpu-01 0 0 3\n8.000 gpu-01 0") == entries("7.000 gpu-01 0 0 3\n")


@given(st.lists(_ENTRIES, max_size=30), st.integers(0, 20))
def test_it_is_two_writers_exactly_where_two_restarts_share_a_second(
    written: list[Entry], since: int
) -> None:
    found = {entry.second for entry in two_writers(written, since)}
    pairs = ((one, two) for one in written for two in written if one.restart != two.restart)

    assert found == {
        int(one.time)
        for one, two in pairs
        if int(one.time) == int(two.time) and min(one.time, two.time) >= since
    }


def test_the_writers_are_named() -> None:
    old = Entry(time=9.1, host="gpu-01", rank=0, restart=0, step=4)
    new = Entry(time=9.8, host="gpu-11", rank=0, restart=1, step=2)

    assert two_writers([new, old])[0].hosts == ((0, "gpu-01"), (1, "gpu-11"))
