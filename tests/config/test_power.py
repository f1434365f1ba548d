"""The section `power` of a cluster: what each kind needs, and that no BMC is that of two machines."""

from pathlib import Path

import pytest

from config.load import ConfigErrors, load
from config.node_names import NodeName
from config.power_settings import PowerKind, address_of, read_address

REST = """
people:
  ann: {os_users: [ann], roles: [admin]}
pages:
  - {kind: webhook, url: "https://pages.example/hook"}
clusters:
  train:
    kind: slurm
    pools: {all: {nodes: "gpu-[01-12]", max_out: 2}}
    protected: ctl
    reference_hosts: [ctl:6817, login:22, files:2049]
    power:
"""
REDFISH = """
      kind: redfish
      user: bot
      password: env:BMC_PASSWORD
      bmc:
        - {nodes: "gpu-[01-12]", address: "{node}-bmc.example"}
"""


def problems(tmp_path: Path, power: str, rest: str = REST) -> list[str]:
    path = tmp_path / "site.yaml"
    path.write_text(rest + power)
    with pytest.raises(ConfigErrors) as found:
        load([path])
    return [f"{problem.key}: {problem.message}" for problem in found.value.problems]


def test_each_node_has_the_bmc_that_its_entry_names(tmp_path: Path) -> None:
    path = tmp_path / "site.yaml"
    path.write_text(
        REST
        + REDFISH.replace('"gpu-[01-12]"', '"gpu-[01-08]"')
        + '        - {nodes: "gpu-[09-12]", address: "10.1.0.{number}:8443"}\n'
    )
    power = load([path]).clusters["train"].power
    assert power is not None
    assert power.kind is PowerKind.REDFISH
    asked = [power.bmc_of(NodeName(name)) for name in ("gpu-01", "gpu-09", "gpu-13")]
    assert asked == ["gpu-01-bmc.example", "10.1.0.9:8443", ""]


def test_two_machines_never_share_a_bmc(tmp_path: Path) -> None:
    (said,) = problems(tmp_path, REDFISH.replace("{node}-bmc", "rack-bmc"))
    assert said == (
        "clusters.train.power.bmc.0.address: gpu-01 and gpu-02 would share rack-bmc.example; "
        "a BMC is of one node"
    )


def test_a_node_has_one_bmc(tmp_path: Path) -> None:
    again = '        - {nodes: "gpu-01", address: "other-{node}"}\n'
    (said,) = problems(tmp_path, REDFISH + again)
    assert "gpu-01 has a BMC already" in said


def test_power_without_reference_hosts_is_refused(tmp_path: Path) -> None:
    rest = REST.replace("ctl:6817, login:22, files:2049", "ctl:6817")
    (said,) = problems(tmp_path, REDFISH, rest)
    assert "power needs three reference_hosts" in said


@pytest.mark.parametrize(
    "power, words",
    [
        ("      kind: redfish\n", "kind redfish needs bmc"),
        ("      kind: ipmitool\n", "kind ipmitool needs password"),
        ("      kind: script\n", "kind script needs script"),
        ("      kind: simulated\n", "kind simulated is for a simulated cluster"),
        (REDFISH + "      script: /usr/local/sbin/power\n", "only for kind script: remove it"),
        (REDFISH.replace("{node}", "{host}"), "only {node} and {number}"),
        (REDFISH.replace("{node}-bmc.example", "https://{node}/"), "a host name or address"),
        (REDFISH.replace("user: bot", "user: '-Uroot'"), "a user name of letters"),
        (REDFISH.replace("env:BMC_PASSWORD", "calvin"), "as env:NAME or file:/path"),
    ],
)
def test_what_is_wrong_is_said_with_what_would_be_right(
    tmp_path: Path, power: str, words: str
) -> None:
    assert any(words in said for said in problems(tmp_path, power))


@pytest.mark.parametrize("address", ["-oProxy", "a b", "a/b", "user@host", "", "host:0", "a\nb", 7])
def test_an_address_that_could_be_something_else_is_refused(address: object) -> None:
    with pytest.raises(ValueError, match="expected"):
        read_address(address)


def test_a_number_is_the_digits_at_the_end_of_the_name() -> None:
    assert address_of("bmc-{number}", NodeName("rack2-gpu017")) == "bmc-17"
    assert address_of("bmc-{number}", NodeName("gpu-a")) == ""
