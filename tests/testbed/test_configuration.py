"""What is decided before anything starts; needs neither root nor Slurm."""

import os
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.testbed import TestbedError, configuration, requirements
from bot.testbed.layout import Layout, claim_network, hardware_address, node_names
from bot.testbed.options import TestbedOptions

_NETWORK = IPv4Network("10.20.30.0/24")


def _layout(count: int) -> Layout:
    return Layout(folder=Path("/srv/t"), nodes=node_names(count), network=_NETWORK)


@given(st.integers(min_value=3, max_value=48))
def test_every_node_is_in_a_partition_and_none_is_both_train_and_spare(count: int) -> None:
    nodes = node_names(count)
    parts = configuration.partitions(nodes)

    assert set().union(*parts.values()) == set(nodes)
    assert all(parts.values())
    assert not set(parts["train"]) & set(parts["spare"])


@given(st.integers(min_value=3, max_value=48))
def test_every_machine_has_an_address_of_its_own_in_the_network(count: int) -> None:
    layout = _layout(count)
    nodes = [layout.address(node) for node in layout.nodes]
    addresses = [layout.host_address, layout.controller_address, *nodes]

    assert len(set(addresses)) == len(addresses)
    assert all(IPv4Address(address) in list(_NETWORK.hosts()) for address in addresses)
    assert len({hardware_address(address) for address in addresses}) == len(addresses)


def test_a_network_that_this_machine_has_a_route_to_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    header = "Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT"
    default = "eth0 00000000 010200C0 0003 0 0 0 00000000 0 0 0"
    ten = "eth1 0000000A 00000000 0001 0 0 0 000000FF 0 0 0"
    (tmp_path / "route").write_text("\n".join([header, default, ten, ""]))
    monkeypatch.setattr("bot.testbed.layout._ROUTES", tmp_path / "route")

    network, claim = claim_network()
    with claim:
        assert network.subnet_of(IPv4Network("172.16.0.0/12"))


def test_two_testbeds_never_claim_the_same_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bot.testbed.layout._PRIVATE", (IPv4Network("10.7.0.0/23"),))
    (first, one), (second, two) = claim_network(), claim_network()
    with one, two:
        assert {first, second} == set(IPv4Network("10.7.0.0/23").subnets(new_prefix=24))
        with pytest.raises(TestbedError, match="no 256 addresses in"):
            claim_network()


def test_a_number_of_nodes_without_room_is_refused() -> None:
    with pytest.raises(TestbedError, match="3 to 48 nodes, not 49"):
        node_names(49)


def test_private_data_is_written_only_when_asked_for() -> None:
    plain = configuration.slurm_conf(_layout(3), TestbedOptions())
    private = configuration.slurm_conf(_layout(3), TestbedOptions(private_data="jobs"))

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

    assert said.startswith(
        "the Slurm testbed needs: apt-get install iproute2 mariadb-server munge "
    )
    assert "\n" not in said
