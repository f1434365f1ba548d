"""Fencing through the real engine: two persons, off twice, and never the power of a living host."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from actions.catalogue import ClusterSite
from actions.remote_values import Reach
from actions.simulated.client import Line
from actions.simulated.machines import BmcMood
from actions.simulated.plugs import Plugs
from actions.simulated.power import SimulatedPower, SimulatedVantage
from actions.simulated.writes import FaultKind, WriteVerb
from config.actors import Door
from config.ids import ActorId
from runbooks.engine import Engine
from runbooks.library_files import load_library, release_file
from runbooks.machine import RunState
from runbooks.requests import CannotDo, Requests
from runbooks.run import Run
from tests.actions.engine_bench import ANN, OTHERS, Bench, bench_over, whole_site
from tests.actions.simulated.small import N1, N5, small_world

FENCE = """
runbook: fence-node
version: 1
title: Take the power of a dead node
permission: node.power
parameters:
  node: {type: node, help: node}
locks: ["node:{{ node }}"]
steps:
  - id: facts
    do: node.observe
    with: {node: "{{ node }}"}
  - id: hold
    when: '"DRAIN" not in steps.facts.output.flags'
    do: node.drain
    with: {node: "{{ node }}", reason: fenced}
  - id: cut
    do: power.off
    with: {node: "{{ node }}"}
  - id: seen
    do: power.observe
    with: {node: "{{ node }}"}
on_failure: escalate
"""
REVIVE = """
runbook: revive-node
version: 1
title: Give a fenced node its power again
permission: node.power
parameters:
  node: {type: node, help: node}
steps:
  - id: give
    do: power.on
    with: {node: "{{ node }}"}
on_failure: escalate
"""
BY_WORD = """
runbook: fence-by-word
version: 1
title: Ask whether a node is dead
permission: node.read
parameters:
  node: {type: node, help: node}
steps:
  - id: sure
    do: fence.confirm
    with: {node: "{{ node }}"}
  - id: told
    do: tell
    with: {say: "{{ steps.sure.output.by }} says {{ node }} is dead: {{ steps.sure.output.why }}"}
on_failure: escalate
"""
BOOKS = {"fence-node": FENCE, "revive-node": REVIVE, "fence-by-word": BY_WORD}
POWER = {WriteVerb.POWER_OFF, WriteVerb.POWER_ON, WriteVerb.POWER_CYCLE}


class Night:
    """A bench whose bot has hands on power and these runbooks."""

    def __init__(self, bench: Bench, library: Path) -> None:
        self.bench = bench
        self._library = library
        self._read()

    def _read(self) -> None:
        bench = self.bench
        found = load_library([self._library], bench.parts.specs)
        bench.parts = replace(bench.parts, library=found)
        bench.engine, bench.requests = Engine(bench.parts), Requests(bench.parts)

    def restart(self) -> None:
        self.bench.restart()
        self._read()

    def silent_and_down(self, node: str = N1) -> None:
        """The link is cut while the ranks write; slurmctld gives the node up."""
        self.bench.plugs.pull("cut_off", node=node)
        self.bench.plugs.forward(timedelta(minutes=8))

    def fenced(self, node: str = N1) -> Run:
        """The run, with the yes of two others."""
        run = self.bench.ask("fence-node", node=node)
        self.bench.settle(run)
        self.bench.agree()
        return self.bench.settle(run)

    def switched(self) -> list[str]:
        return [verb for verb, _ in self.bench.written() if verb in POWER]


@pytest.fixture
def library(tmp_path: Path) -> Path:
    root = tmp_path / "site"
    for name, text in BOOKS.items():
        (root / "library" / name).mkdir(parents=True)
        (root / "library" / name / "v1.yaml").write_text(text)
    return root


def _pass(plugs: Plugs, span: timedelta) -> None:
    plugs.forward(span)


@pytest.fixture
def night(tmp_path: Path, library: Path) -> Iterator[Night]:
    def site(line: Line) -> ClusterSite:
        return replace(
            whole_site(line),
            vantage=SimulatedVantage(line=line),
            power=SimulatedPower(line=line),
            pause=lambda span: _pass(Plugs(path=line.path), span),
        )

    with bench_over(tmp_path, small_world(), site=site) as bench:
        for name in BOOKS:
            release_file(library, f"library/{name}/v1.yaml", [library], bench.parts.specs)
        yield Night(bench, library)


def test_a_cut_off_node_is_fenced_by_two_persons_who_did_not_ask(night: Night) -> None:
    night.silent_and_down()
    bench = night.bench
    run = bench.ask("fence-node", node=N1)
    waits = bench.settle(run)
    assert waits.state is RunState.AWAITING_APPROVAL
    assert waits.plan is not None
    assert waits.plan.approvals_needed == 2
    with pytest.raises(CannotDo, match="somebody else must approve"):
        bench.requests.approve(run, None, ANN, Door.CLI)
    bench.requests.approve(run, None, OTHERS[0], Door.CLI)
    with pytest.raises(CannotDo, match="needs another person"):
        bench.requests.approve(run, None, OTHERS[0], Door.CLI)
    assert bench.settle(run).state is RunState.AWAITING_APPROVAL
    assert bench.written() == []
    bench.requests.approve(run, None, OTHERS[1], Door.CLI)
    assert bench.settle(run).state is RunState.SUCCEEDED
    assert night.switched() == ["power_off"]
    assert str(bench.output(run, "cut")["power_evidence"]).startswith("off twice")
    assert bench.output(run, "seen")["fenced"] is True


def test_the_drain_was_older_than_ten_seconds_when_the_power_went(night: Night) -> None:
    night.silent_and_down()
    assert night.fenced().state is RunState.SUCCEEDED
    drain, off = night.bench.plugs.effects()[-2:]
    assert (drain.verb, off.verb) == ("drain", "power_off")
    assert off.at - drain.at >= timedelta(seconds=10)


@pytest.mark.parametrize(
    "reach", [Reach.REFUSED, Reach.AUTH_FAILED, Reach.HOST_KEY_CHANGED, Reach.NO_SHELL]
)
def test_a_host_that_refuses_or_has_another_key_keeps_its_power(night: Night, reach: Reach) -> None:
    bench = night.bench
    bench.plugs.pull("kill_slurmd", node=N1)
    bench.plugs.pull("set_shell", node=N1, reach=reach)
    bench.plugs.forward(timedelta(minutes=8))
    run = night.fenced()
    assert run.state is RunState.NEEDS_PERSON
    assert "is alive, so its power stays" in run.why
    assert night.switched() == []


def test_a_bot_whose_own_way_is_cut_takes_no_power(night: Night) -> None:
    bench = night.bench
    bench.plugs.pull("kill_slurmd", node=N1)
    bench.plugs.forward(timedelta(minutes=8))
    for number in range(1, 9):
        bench.plugs.pull("set_shell", node=f"gpu-{number}", reach=Reach.NOT_ASKED)
    assert night.fenced().state is RunState.NEEDS_PERSON
    assert night.switched() == []


def test_a_host_that_only_the_bot_cannot_reach_keeps_its_power(night: Night) -> None:
    bench = night.bench
    bench.plugs.pull("kill_slurmd", node=N1)
    bench.plugs.pull("set_shell", node=N1, reach=Reach.TIME_OUT)
    bench.plugs.forward(timedelta(minutes=8))
    run = night.fenced()
    assert run.state is RunState.NEEDS_PERSON
    assert "is alive" in run.why
    assert night.switched() == []


def test_a_host_that_comes_back_before_the_write_keeps_its_power(night: Night) -> None:
    night.silent_and_down()
    bench = night.bench
    run = bench.ask("fence-node", node=N1)
    bench.settle(run)
    bench.plugs.pull("cut_off", node=N1, cut=False)
    bench.agree()
    ended = bench.settle(run)
    assert ended.state is not RunState.SUCCEEDED
    assert night.switched() == []


@pytest.mark.parametrize("mood", [BmcMood.FLICKERS, BmcMood.SILENT, BmcMood.REFUSES])
def test_a_bmc_that_cannot_be_believed_leads_to_a_person(night: Night, mood: BmcMood) -> None:
    night.silent_and_down()
    night.bench.plugs.pull("set_bmc", node=N1, mood=mood)
    run = night.fenced()
    assert run.state is RunState.NEEDS_PERSON
    assert not [step for step in run.steps.values() if step.step == "seen"]


def test_a_bmc_that_accepts_and_does_nothing_is_never_called_off(night: Night) -> None:
    night.silent_and_down()
    night.bench.plugs.pull("set_bmc", node=N1, mood=BmcMood.DEAF)
    run = night.fenced()
    assert run.state is RunState.NEEDS_PERSON
    assert run.steps["cut"].state.value != "done"


def test_a_lost_answer_is_looked_up_and_not_sent_again(night: Night) -> None:
    night.silent_and_down()
    night.bench.plugs.fail_next(FaultKind.APPLIED_NO_ANSWER, WriteVerb.POWER_OFF)
    assert night.fenced().state is RunState.SUCCEEDED
    assert night.switched() == ["power_off"]


def test_a_bot_that_died_in_between_reads_off_twice_and_sends_nothing_again(night: Night) -> None:
    night.silent_and_down()
    bench = night.bench
    run = bench.ask("fence-node", node=N1)
    bench.settle(run)
    bench.agree()
    bench.plugs.fail_next(FaultKind.APPLIED_NO_ANSWER, WriteVerb.POWER_OFF)
    bench.settle(run, until=lambda: night.switched() != [])
    night.restart()
    assert bench.settle(run).state is RunState.SUCCEEDED
    assert night.switched() == ["power_off"]


def test_a_job_list_that_may_lie_keeps_the_power(night: Night) -> None:
    night.silent_and_down()
    night.bench.plugs.pull("hide_jobs")
    run = night.fenced()
    assert run.state is RunState.NEEDS_PERSON
    assert "whose jobs end" in run.why
    assert night.switched() == []


def test_a_node_that_was_revived_stays_drained_until_its_gate(night: Night) -> None:
    night.silent_and_down(N5)
    assert night.fenced(N5).state is RunState.SUCCEEDED
    bench = night.bench
    bench.plugs.pull("cut_off", node=N5, cut=False)
    run = bench.ask("revive-node", node=N5)
    bench.settle(run)
    bench.agree()
    ended = bench.settle(run)
    assert ended.state is RunState.SUCCEEDED, ended.why
    bench.plugs.forward(timedelta(minutes=5))
    node = bench.cluster.fresh_node(N5)
    assert (node.draining, node.responding) == (True, True)
    assert night.switched() == ["power_off", "power_on"]


def test_a_person_may_say_that_a_host_is_dead_and_is_named_for_it(night: Night) -> None:
    bench = night.bench
    run = bench.ask("fence-by-word", node=N1)
    asked = bench.settle(run)
    assert asked.state is RunState.NEEDS_PERSON
    assert "is it certain that gpu-1 writes nothing any more" in asked.why
    desk = replace(OTHERS[0], id=ActorId("p-desk"), name="night-desk", shared=True)
    with pytest.raises(CannotDo, match="night-desk cannot say that a machine is dead"):
        bench.requests.resume(run, desk, "it looks dead", True)
    with pytest.raises(CannotDo, match="a reason is needed"):
        bench.requests.resume(run, OTHERS[0], "", True)
    bench.requests.resume(run, OTHERS[0], "pulled both plugs", True)
    ended = bench.settle(run)
    assert ended.state is RunState.SUCCEEDED
    assert bench.output(run, "sure") == {"by": "p-bob", "why": "pulled both plugs"}
    assert bench.output(run, "told")["say"] == "p-bob says gpu-1 is dead: pulled both plugs"


def test_who_is_not_sure_leaves_the_question_open(night: Night) -> None:
    bench = night.bench
    run = bench.ask("fence-by-word", node=N1)
    bench.settle(run)
    bench.requests.resume(run, OTHERS[0], "cannot see the rack", False)
    assert bench.settle(run).state is RunState.NEEDS_PERSON
    assert "told" not in bench.run(run).steps
