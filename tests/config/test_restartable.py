"""The rules `restartable` of a cluster: for named jobs only, with a path that nobody can leave."""

from pathlib import Path

import pytest

from config.job_settings import CheckpointFormat
from config.load import ConfigErrors, load

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
    restartable:
"""


def problems(tmp_path: Path, rule: str) -> list[str]:
    path = tmp_path / "site.yaml"
    path.write_text(f"{REST}      - {rule}\n")
    with pytest.raises(ConfigErrors) as found:
        load([path])
    return [f"{problem.key}: {problem.message}" for problem in found.value.problems]


def test_a_rule_says_for_which_jobs_it_is_and_where_they_resume(tmp_path: Path) -> None:
    path = tmp_path / "site.yaml"
    rule = '{accounts: [pre], names: ["llama-*"], checkpoint: "/s/{user}/{name}", format: dcp}'
    path.write_text(f"{REST}      - {rule}\n")
    (found,) = load([path]).clusters["train"].restartable
    assert (found.accounts, found.names, found.min_nodes) == (("pre",), ("llama-*",), 1)
    assert (found.checkpoint, found.format) == ("/s/{user}/{name}", CheckpointFormat.DCP)


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ('{checkpoint: "/s", format: dcp}', "name the jobs that it is for"),
        ('{accounts: [], checkpoint: "/s", format: dcp}', "name the jobs that it is for"),
        ('{accounts: [a], checkpoint: "s/ck", format: dcp}', "an absolute path is expected"),
        ('{accounts: [a], checkpoint: "/s/../etc", format: dcp}', "a path has no '..'"),
        ('{accounts: [a], checkpoint: "/s/{comment}", format: dcp}', "have a value in a path"),
        ('{accounts: [a], checkpoint: "/s/{user", format: dcp}', "have a value in a path"),
        ('{accounts: [a], checkpoint: "/s/{work_dir}", format: dcp}', "stands at the beginning"),
        ('{accounts: [a], checkpoint: "/s", format: marker}', "belong together"),
        ('{accounts: [a], checkpoint: "/s", format: dcp, marker: DONE}', "belong together"),
        ('{accounts: [a], checkpoint: "/s", format: dcp, min_nodes: 0}', "1"),
    ],
)
def test_a_rule_that_promises_too_much_is_refused(tmp_path: Path, rule: str, said: str) -> None:
    assert said in "\n".join(problems(tmp_path, rule))
