"""What the snapshot child prints is what the bot reads."""

import json
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from actions.cluster import Controller, Job, Node, NodeBase, Partition, Reservation
from actions.slurm.wire import from_packed, to_line
from config.ids import ClusterName, JobId
from config.node_names import NodeName

moments = st.none() | st.integers(1, 2**32).map(lambda at: datetime.fromtimestamp(at, UTC))
names = st.from_regex(r"[a-z][a-z0-9-]{0,8}", fullmatch=True).map(NodeName)
texts = st.text(max_size=20)
words = st.frozensets(texts, max_size=4)
numbers = st.integers(0, 2**40)
spans = st.integers(0, 10**7).map(lambda seconds: timedelta(seconds=seconds))

nodes = st.builds(
    Node,
    name=names,
    base=st.sampled_from(NodeBase),
    flags=words,
    reason=texts,
    reason_at=moments,
    boot_time=moments,
    partitions=words,
    gpus_used=st.none() | numbers,
    cpus=numbers,
)
jobs = st.builds(
    Job,
    id=texts.map(JobId),
    slurm_id=numbers,
    name=st.text(st.characters(), max_size=20),
    user=texts,
    state=texts,
    state_flags=words,
    nodes=st.lists(names, max_size=4).map(tuple),
    batch=st.booleans(),
    requeue=st.booleans(),
    started_at=moments,
    time_limit=st.none() | spans,
    array_job=st.none() | numbers,
    batch_host=texts,
    eligible_at=moments,
    extra=texts,
    work_dir=texts,
    stdout=texts,
    features=texts,
    shared=st.booleans(),
)
others = st.one_of(
    st.builds(
        Partition,
        name=texts,
        state=texts,
        nodes=st.lists(names).map(tuple),
        priority_tier=numbers,
        preempt_mode=texts,
    ),
    st.builds(
        Reservation,
        name=texts,
        nodes=st.lists(names).map(tuple),
        starts_at=moments,
        ends_at=moments,
        users=st.lists(texts).map(tuple),
    ),
    st.builds(
        Controller,
        cluster=texts.map(ClusterName),
        version=texts,
        booted_at=moments,
        slurmd_timeout=spans,
        return_to_service=numbers,
        reboot_program=texts,
        resume_timeout=spans,
        preempt_type=texts,
    ),
)


@given(st.one_of(nodes, jobs, others))
def test_every_value_comes_back_whole(value: Node | Job | Partition) -> None:
    line = to_line("value", value)
    assert "\n" not in line
    assert line.isascii()
    kind, packed = json.loads(line)
    assert kind == "value"
    assert from_packed(type(value), packed) == value
    assert len(line.splitlines()) == 1
