"""What is decided before anything starts; needs neither root nor Slurm."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.testbed import TestbedError, configuration, requirements
from bot.testbed.layout import Layout, node_names
from bot.testbed.options import TestbedOptions


def _layout(count: int) -> Layout:
    return Layout(folder=Path("/srv/t"), nodes=node_names(count), first_port=20_000)


@given(st.integers(min_value=3, max_value=48))
def test_every_node_is_in_a_partition_and_none_is_both_train_and_spare(count: int) -> None:
    nodes = node_names(count)
    parts = configuration.partitions(nodes)

    assert set().union(*parts.values()) == set(nodes)
    assert all(parts.values())
    assert not set(parts["train"]) & set(parts["spare"])


@given(st.integers(min_value=3, max_value=48))
def test_every_port_is_used_once(count: int) -> None:
    layout = _layout(count)
    ports = [
        layout.controller_port,
        layout.accounting_port,
        layout.database_port,
        *(layout.slurmd_port(node) for node in layout.nodes),
        *(layout.ssh_port(node) for node in layout.nodes),
    ]

    assert len(set(ports)) == len(ports)
    assert max(ports) < layout.first_port + 100


def test_a_number_of_nodes_without_room_is_refused() -> None:
    with pytest.raises(TestbedError, match="3 to 48 nodes, not 49"):
        node_names(49)


def test_private_data_is_written_only_when_asked_for() -> None:
    plain = configuration.slurm_conf(_layout(3), TestbedOptions(), "vm")
    private = configuration.slurm_conf(_layout(3), TestbedOptions(private_data="jobs"), "vm")

    assert "PrivateData" not in plain
    assert "PrivateData=jobs\n" in private
    assert "SlurmUser=slurm\n" in plain


def test_without_root_one_line_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)

    assert requirements.find_missing() == "the Slurm testbed needs root; run it as root"


def test_absent_packages_are_named_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(requirements, "program", lambda name: "")

    said = requirements.find_missing()

    assert said.startswith("the Slurm testbed needs: apt-get install mariadb-server munge ")
    assert "\n" not in said
