"""One writer: a node's link is cut while its rank writes, and Slurm's own requeue is on.

Ten minutes of a real Slurm, therefore run by `make long-tests`; the verbs behind it are tried in
tests/actions/power in every run.
"""

import shutil
import time
from collections.abc import Iterator
from functools import partial

import pytest

from bot.testbed import SlurmTestbed, TestbedOptions
from bot.testbed.redfish import BmcRack
from bot.testbed.training import CoupledJob
from tests.e2e import quiet
from tests.e2e.served import ServedBot
from tests.e2e.twins import approve_as, rests, rows, settle, state
from tests.testbed.fixture import fresh_folder

pytestmark = [pytest.mark.e2e, pytest.mark.slurm, pytest.mark.long]

NODES = tuple(f"gpu-{number:02}" for number in range(1, 7))
SICK = "gpu-02"
WATCHED = 600.0
POWER = """\
power:
      kind: redfish
      bmc: [{{nodes: "gpu-[01-06]", address: "{address}"}}]
      user: {user}
      password: file:{folder}/bmc-password
      ca_file: {ca}
    reference_hosts: ["{controller}:{port}", "{other}:22", "{third}:22"]
    units:"""


@pytest.fixture(scope="module")
def testbed() -> Iterator[SlurmTestbed]:
    """Six nodes; a silent one is given up after 15 s, and its job is requeued by Slurm."""
    if why := SlurmTestbed.missing():
        pytest.skip(why)
    options = TestbedOptions(cluster="fenced", slurmd_timeout=15)
    with fresh_folder() as folder, SlurmTestbed(folder, nodes=6, options=options) as running:
        quiet.settle(running)
        yield running


@pytest.fixture(scope="module")
def rack(testbed: SlurmTestbed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BmcRack]:
    """Their BMCs."""
    folder = tmp_path_factory.mktemp("bmc")
    with BmcRack(testbed, NODES, folder) as started:
        yield started


@pytest.fixture(scope="module")
def bot(testbed: SlurmTestbed, rack: BmcRack) -> Iterator[ServedBot]:
    """A bot that may take power, if two persons say yes."""
    served = ServedBot(testbed, testbed.folder / "served")
    ca = served.folder / "bmc.pem"
    ca.write_bytes(rack.ca_file.read_bytes())
    secret = served.folder / "bmc-password"
    secret.write_text(rack.password)
    secret.chmod(0o600)
    shutil.chown(secret, testbed.bot_user)
    ca.chmod(0o644)
    layout = testbed.layout
    power = POWER.format(
        address=rack.address_template,
        user=rack.user,
        folder=served.folder,
        ca=ca,
        controller=layout.controller_address,
        port=layout.controller_port,
        other=layout.address("gpu-05"),
        third=layout.address("gpu-06"),
    )
    text = served.config.read_text().replace("units:", power).replace("gpu-[11-12]", "gpu-06")
    text = text.replace("nwann", testbed.options.admin_user)
    served.config.write_text(text.replace("nwben", testbed.options.job_user))
    served.start()
    yield served
    served.stop()


def agreed(bot: ServedBot, run: str) -> str:
    """The state in which a run rests after two persons said yes to whatever it asked."""
    people = (bot.testbed.options.admin_user, bot.testbed.options.job_user)
    while settle(bot, run) == "awaiting_approval":
        for person in people:
            if state(bot, run) == "awaiting_approval":
                approve_as(bot, run, person)
        bot.testbed.wait_for(
            lambda: state(bot, run) != "awaiting_approval" or rests(bot, run), "it goes on"
        )
    return state(bot, run)


def test_no_second_has_two_writers_after_the_first_act_of_the_bot(
    testbed: SlurmTestbed, rack: BmcRack, bot: ServedBot
) -> None:
    job = testbed.queue_coupled("--nodes=2", "--comment=nw:restartable")  # by name, it never could
    testbed.wait_for_iteration(job, 20)
    assert SICK in {entry.host for entry in job.entries()}
    testbed.cut_link(SICK)
    testbed.wait_for(lambda: "DOWN" in testbed.node_states(SICK), f"{SICK} is given up")
    began = time.time()
    run = bot.json("replace", SICK, "silent", "--no-wait").run
    ended = agreed(bot, run)
    told = bot.ask("status", run).text
    print(told)
    assert ended == "succeeded", told
    assert rack.bmcs[SICK].resets == ["ForceOff"]
    acted = _first_act(bot, run)
    assert acted >= began
    _watch(testbed, job, acted)
    assert job.two_writers(since=acted) == ()
    assert {entry.restart for entry in job.entries()} == {0, 1}
    testbed.cancel(job.id)


def _first_act(bot: ServedBot, run: str) -> float:
    found = rows(bot, "SELECT min(at_us) FROM ledger WHERE run = ? AND kind = 'step.intended'", run)
    return float(found[0][0]) / 1e6


def _watch(testbed: SlurmTestbed, job: CoupledJob, since: float) -> None:
    """Ten minutes, in which the job starts again from its checkpoint and nobody else writes."""
    testbed.wait_for(
        lambda: time.time() >= since + WATCHED, "ten minutes to pass", seconds=2 * WATCHED
    )


def test_a_living_host_a_changed_key_and_a_bot_without_uplink_lose_no_power_and_no_job(
    testbed: SlurmTestbed, rack: BmcRack, bot: ServedBot
) -> None:
    node = "gpu-03"
    job = testbed.train_coupled([node], "--comment=nw:restartable")
    before = testbed.job(job.id)["Restarts"]
    told = []
    for fault, repair in (
        (testbed.stop_sshd, testbed.start_sshd),
        (testbed.change_host_key, lambda _node: testbed.trust_host_keys()),
        (lambda _node: testbed.cut_bot_uplink(), lambda _node: testbed.restore_bot_uplink()),
    ):
        fault(node)
        try:
            for words in (("replace", node, "odd"), ("requeue", str(job.id), node)):
                run = bot.json(*words, "--no-wait").run
                bot.testbed.wait_for(partial(_calm, bot, run), f"{run} stands still")
                told.append(bot.ask("status", run).text)
                bot.ask("abort", run, "tested")
        finally:
            repair(node)
    print("\n\n".join(told))
    assert rack.bmcs[node].resets == []
    assert (testbed.job(job.id)["Restarts"], testbed.job(job.id)["JobState"]) == (before, "RUNNING")
    testbed.cancel(job.id)


def _calm(bot: ServedBot, run: str) -> bool:
    """At rest, or waiting until the bot reaches anything again."""
    return rests(bot, run) or state(bot, run) == "waiting"
