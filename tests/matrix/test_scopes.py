"""How far a grant reaches: numbers of nodes, own jobs, partitions and node sets, at their borders."""

from collections.abc import Iterator

import pytest

from audit_log.records import EventKind
from config.actors import Door
from config.ids import ClusterName
from config.node_names import NodeName
from tests.matrix.everything import served
from tests.matrix.shells import Shell
from tests.matrix.site import Spot, at_slack, at_the_socket

BAY = "  bay: {help: One partition., grants: [{permissions: [node.drain], partitions: [bay]}]}"
SET = '  set: {help: Some nodes., grants: [{permissions: [node.drain], nodes: "gpu-[101-104]"}]}'


@pytest.fixture(scope="module")
def doors() -> Iterator[tuple[Spot, dict[str, Shell]]]:
    """nora holds a role for one partition, vic one for four nodes."""
    with served() as (site, shells):
        site.shut()
        text = site.settings_text.replace("roles:\n", f"roles:\n{BAY}\n{SET}\n", 1)
        for name, role in (("nora", "bay"), ("vic", "set")):
            lines = [line for line in text.splitlines() if line.startswith(f"  {name}: ")]
            text = text.replace(lines[0], f"{lines[0].partition(' roles: ')[0]} roles: [{role}]}}")
        site.settings_text = text
        site.open()
        yield site, shells


REACH = [
    ("otto", "gpu-[001-004]", ""),
    ("otto", "gpu-[005-009]", "allows at most 4 nodes in one request, these are 5"),
    ("adm", "gpu-[005-009]", ""),
    ("rita", "gpu-[401-404]", ""),
    ("rita", "gpu-[405-409]", "allows at most 4 nodes in one request, these are 5"),
    ("rita", "gpu-[410,441]", "jobs of 1 other user"),
    ("rita", "gpu-441", "jobs of 1 other user"),
    ("rita", "gpu-010", "none is concerned here"),
    ("nora", "gpu-[485-488]", ""),
    ("nora", "gpu-[484-485]", "reaches only nodes of partition bay, not gpu-484"),
    ("nora", "gpu-001", "reaches only nodes of partition bay, not gpu-001"),
    ("vic", "gpu-[101-104]", ""),
    ("vic", "gpu-104", ""),
    ("vic", "gpu-[104-105]", "reaches only nodes gpu-[101-104], not gpu-105"),
    ("vic", "gpu-100", "reaches only nodes gpu-[101-104], not gpu-100"),
]


@pytest.mark.parametrize("door", [Door.SLACK, Door.CLI])
@pytest.mark.parametrize("reach", REACH, ids=lambda reach: " ".join(reach[:2]))
def test_a_grant_reaches_to_its_border(
    site: Spot, shells: dict[str, Shell], door: Door, reach: tuple[str, str, str]
) -> None:
    who, nodes, why = reach
    before = len(site.denials()), len(site.runs()), site.plugs.effects()
    text = f"drain {nodes} reach-{door}"
    told = (
        at_slack(site, who, text) if door is Door.SLACK else at_the_socket(site, shells[who], text)
    )
    denied = len(site.denials()) - before[0], len(site.runs()) - before[1]
    if why:
        assert "is not allowed" in told
        assert why in told
        assert "would be enough" in told
        assert denied == (1, 0)
        assert site.plugs.effects() == before[2]
    else:
        assert "started" in told
        assert denied == (0, 1)


def test_own_jobs_are_looked_at_again_when_the_step_acts(
    site: Spot, shells: dict[str, Shell]
) -> None:
    assert "started" in at_the_socket(site, shells["rita"], "drain gpu-420 mine")
    run = site.runs()[-1]
    assert site.rested(run).value == "awaiting_approval"
    before = site.plugs.effects()
    snapshot = site.bot.inventory.snapshot(ClusterName("sim"))
    assert snapshot is not None
    number = snapshot.jobs_on(NodeName("gpu-420"))[0].slurm_id
    site.plugs.pull("end_job", job=number)
    site.bot.inventory.refresh()
    site.boss(f"approve {run}")
    site.until(lambda: site.state(run) == "failed")
    assert site.plugs.effects() == before
    denied = [record.event for record in site.records(EventKind.REQUEST_DENIED)][-1]
    assert denied.run == run
    assert "none is concerned here" in str(denied.data["because"])
