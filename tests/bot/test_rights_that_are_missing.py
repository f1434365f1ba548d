"""A whole bot whose Slurm user lacks a right: doctor says so, and a run that needs it is only told."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from actions.catalogue import ClusterSite, Ground, Rights, open_clusters
from bot import wiring
from config.ids import ClusterName
from config.node_names import NodeName
from config.settings import Settings
from runbooks.engine import Engine
from tests.bot.whole import whole

LACKS = "nodewarden has AdminLevel=Operator, so Slurm will refuse node.drain: `sacctmgr modify ...`"


def underprivileged(settings: Settings, ground: Ground) -> Mapping[ClusterName, ClusterSite]:
    rights = Rights(said=("Slurm will refuse node.drain",), lacks={"node.drain": LACKS})
    return {
        name: replace(site, rights=lambda: rights)
        for name, site in open_clusters(settings, ground).items()
    }


@pytest.mark.parametrize("lacking", [True, False])
def test_a_drain_without_the_right_is_only_told(
    lacking: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if lacking:
        monkeypatch.setattr(wiring, "open_clusters", underprivileged)
    with whole(tmp_path) as there:
        assert ("Slurm will refuse node.drain" in there.told("ann", "doctor")) is lacking
        run = there.says("ann", 'drain gpu-001 "fans"').run
        assert run is not None
        Engine(there.bot.parts).advance(run)
        shown = there.told("ann", f"status {run}")
        assert ("only told, nothing done" in shown) is lacking
        assert ("nodewarden has AdminLevel=Operator" in shown.replace("\n", " ")) is lacking
        clusters = there.bot.parts.clusters.values()
        node = next(iter(clusters)).fresh_node(NodeName("gpu-001"))
        assert node.draining is not lacking
