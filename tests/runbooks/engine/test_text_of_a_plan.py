"""A plan as plain values: everything that it holds, and the same plan when it is read again."""

import json
from dataclasses import asdict

from hypothesis import given
from hypothesis import strategies as st

from actions.contract import JobLoss
from config.ids import JobId, StepId
from config.node_names import NodeName
from runbooks.plan import Plan, PlannedStep

WORDS = st.text(max_size=5)
LOSSES = st.builds(
    JobLoss,
    job=st.just(JobId("7_3")),
    slurm_id=st.integers(0, 9),
    user=WORDS,
    name=WORDS,
    gpus=st.integers(0, 9),
    nodes=st.integers(1, 9),
    comes_back=st.booleans(),
    lost=st.booleans(),
    why=WORDS,
)
ARGUMENTS = st.dictionaries(WORDS, WORDS | st.lists(WORDS, max_size=2), max_size=2)
STEPS = st.builds(
    PlannedStep,
    key=WORDS,
    step=st.just(StepId("drain")),
    action=WORDS,
    node=st.none() | st.just(NodeName("gpu-1")),
    arguments=st.none() | ARGUMENTS,
    certain=st.booleans(),
    why=WORDS,
    boot_id=WORDS,
    jobs_end=st.lists(LOSSES, max_size=2).map(tuple),
    takes_node_out=st.booleans(),
)
PLANS = st.builds(
    Plan,
    steps=st.lists(STEPS, max_size=3).map(tuple),
    locks=st.lists(WORDS, max_size=2).map(tuple),
    pinned=ARGUMENTS,
    cause=WORDS,
    diagnosis=ARGUMENTS,
)


@given(PLANS)
def test_a_plan_as_plain_values_holds_every_field_and_is_read_as_the_same_plan(plan: Plan) -> None:
    plain = plan.to_json()
    assert plain == json.loads(json.dumps(asdict(plan)))
    assert Plan.from_json(plain) == plan
    assert Plan.from_json(plain).hash == plan.hash
