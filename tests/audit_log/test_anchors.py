from datetime import timedelta
from pathlib import Path

import pytest

from audit_log.anchoring import Anchoring
from audit_log.anchors import Anchor, FileSink, contradiction, refuse_ahead
from audit_log.chain import Head
from audit_log.errors import ChainBroken
from audit_log.ledger import Ledger
from audit_log.records import EventKind
from audit_log.restoration import Restore
from audit_log.verify import verify
from config.ids import InstanceId
from tests.audit_log.ledgers import START, HandClock, append, event, fill, open_ledger, unlocked


class Sink:
    """Keeps anchors in memory; fails while `trouble` is set."""

    name = "memory"
    leaves_host = True

    def __init__(self) -> None:
        self.anchors: list[Anchor] = []
        self.trouble = ""

    def send(self, anchor: Anchor) -> None:
        if self.trouble:
            raise OSError(self.trouble)
        self.anchors.append(anchor)


def test_an_anchor_goes_out_every_interval_or_so_many_records_and_not_when_nothing_happened(
    ledger: Ledger, clock: HandClock
) -> None:
    sink = Sink()
    anchoring = Anchoring(ledger, clock, [sink], timedelta(seconds=60), records=10)
    anchoring.tick()
    assert sink.anchors == []
    clock.move(60)
    anchoring.tick()
    assert [anchor.seq for anchor in sink.anchors] == [1]
    clock.move(3600)
    anchoring.tick()
    assert len(sink.anchors) == 1
    fill(ledger, 9)
    anchoring.tick()
    assert len(sink.anchors) == 1
    fill(ledger, 1)
    anchoring.tick()
    assert [anchor.seq for anchor in sink.anchors] == [1, 11]
    append(ledger, event())
    clock.move(59)
    anchoring.tick()
    assert len(sink.anchors) == 2
    clock.move(1)
    anchoring.tick()
    assert [anchor.seq for anchor in sink.anchors] == [1, 11, 12]


def test_an_anchor_on_demand_holds_the_head_of_that_moment(
    ledger: Ledger, clock: HandClock
) -> None:
    sink = Sink()
    status = Anchoring(ledger, clock, [sink]).anchor_now()
    (anchor,) = sink.anchors
    assert (anchor.seq, anchor.digest) == (ledger.head.seq, ledger.head.digest)
    assert anchor.instance == ledger.instance
    assert anchor.at == START
    assert status.newest == anchor
    assert status.records_behind == 0


def test_the_age_says_how_long_records_have_been_waiting(ledger: Ledger, clock: HandClock) -> None:
    sink = Sink()
    anchoring = Anchoring(ledger, clock, [sink])
    anchoring.anchor_now()
    clock.move(500)
    assert anchoring.status().age == timedelta(0)
    append(ledger, event())
    sink.trouble = "no route"
    clock.move(100)
    anchoring.tick()
    status = anchoring.status()
    assert status.age >= timedelta(seconds=100)
    assert status.records_behind >= 1
    assert status.failing == ("memory: no route",)


def test_a_sink_that_fails_is_recorded_once_and_again_when_it_works(
    ledger: Ledger, clock: HandClock
) -> None:
    good, bad = Sink(), Sink()
    bad.name, bad.trouble = "other", "no route to host"
    anchoring = Anchoring(ledger, clock, [bad, good])
    for _ in range(3):
        anchoring.anchor_now()
    bad.trouble = ""
    anchoring.anchor_now()
    told = [
        record.event.data for record in ledger.records() if record.event.kind is EventKind.ANCHORED
    ]
    assert told == [
        {"sink": "other", "works": False, "problem": "no route to host"},
        {"sink": "other", "works": True, "problem": ""},
    ]
    assert len(good.anchors) == 4


def test_a_file_sink_only_appends_and_reads_back(tmp_path: Path) -> None:
    sink = FileSink(tmp_path / "anchors")
    assert sink.read() == ()
    anchors = [
        Anchor(instance=InstanceId("aabbccdd"), seq=seq, digest=f"{seq:064x}", at=START)
        for seq in (1, 2, 3)
    ]
    sink.send(anchors[0])
    with (tmp_path / "anchors").open("a") as file:
        file.write('{"torn by a crash')
    sink.send(anchors[1])
    sink.send(anchors[2])
    assert sink.read() == tuple(anchors)
    assert (tmp_path / "anchors").read_text().startswith(anchors[0].line() + "\n")


def test_a_start_reads_only_the_end_of_a_long_anchor_file(tmp_path: Path) -> None:
    lines = [
        Anchor(instance=InstanceId("aabbccdd"), seq=seq, digest=f"{seq:064x}", at=START).line()
        for seq in range(1, 2001)
    ]
    sink = FileSink(tmp_path / "anchors")
    assert sink.recent() == ()
    (tmp_path / "anchors").write_text("\n".join(lines) + "\n")
    recent = sink.recent()
    assert recent[-1].seq == 2000
    assert 100 < len(recent) < 2000
    assert sink.read()[-len(recent) :] == recent


def test_a_file_sink_that_cannot_write_says_so_and_stops_nothing(
    ledger: Ledger, clock: HandClock, tmp_path: Path
) -> None:
    anchoring = Anchoring(ledger, clock, [FileSink(tmp_path / "nowhere" / "anchors")])
    status = anchoring.anchor_now()
    assert "No such file" in status.failing[0]
    assert status.newest is None


def test_a_cut_tail_refuses_the_start(path: Path, clock: HandClock) -> None:
    sink, ledger = Sink(), open_ledger(path)
    fill(ledger, 5)
    Anchoring(ledger, clock, [sink]).anchor_now()
    refuse_ahead(ledger, sink.anchors)
    ledger.close()
    raw = unlocked(path)
    raw.execute("DELETE FROM ledger WHERE seq > 4")
    raw.close()
    again = open_ledger(path)
    with pytest.raises(ChainBroken, match=r"knows record 6, the ledger ends at 4.*restore"):
        refuse_ahead(again, sink.anchors)
    again.close()


def test_an_older_copy_that_went_on_differently_refuses_the_start(
    path: Path, clock: HandClock
) -> None:
    sink, ledger = Sink(), open_ledger(path)
    fill(ledger, 5)
    Anchoring(ledger, clock, [sink]).anchor_now()
    ledger.close()
    raw = unlocked(path)
    raw.execute("DELETE FROM ledger WHERE seq > 4")
    raw.close()
    again = open_ledger(path)
    for _ in range(9):
        append(again, event(other=True))
    with pytest.raises(ChainBroken, match="knows another record 6"):
        refuse_ahead(again, sink.anchors)
    again.close()


@pytest.mark.parametrize(
    "seq, minutes, explained",
    [(8, 0, True), (12, 0, True), (12, 5, True), (7, 0, False), (13, 0, False), (9, 6, False)],
)
def test_a_restore_explains_only_anchors_of_what_it_gave_up(
    seq: int, minutes: int, explained: bool
) -> None:
    """Records 8 to 12 were lost to a restore five minutes after the start."""
    given_up = Restore(seq=8, at=START + timedelta(minutes=5), lost_to=12)
    anchor = Anchor(
        instance=InstanceId("aabbccdd"),
        seq=seq,
        digest="a" * 64,
        at=START + timedelta(minutes=minutes),
    )
    said = contradiction(anchor, Head(seq=30, digest="c" * 64), "b" * 64, [given_up])
    assert (said is None) == explained


def test_anchors_of_other_ledgers_do_not_matter_at_the_start(ledger: Ledger) -> None:
    foreign = Anchor(instance=InstanceId("00000000"), seq=900, digest="f" * 64, at=START)
    refuse_ahead(ledger, [foreign])


def test_every_anchor_ever_sent_agrees_with_the_ledger(
    ledger: Ledger, clock: HandClock, tmp_path: Path
) -> None:
    sink = FileSink(tmp_path / "anchors")
    anchoring = Anchoring(ledger, clock, [sink], records=3)
    for number in range(30):
        append(ledger, event(number=number))
        anchoring.tick()
    report = verify(ledger.path, sink.read())
    assert report.sound
    assert report.anchors == 10
