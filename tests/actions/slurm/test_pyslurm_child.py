"""The child that imports pyslurm may die, babble, hang or answer of another cluster."""

import json
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from actions.contract import Unreadable
from actions.shell import Command, CommandFinished, Runner
from actions.slurm.cli import SlurmCli
from actions.slurm.snapshot_lines import received_snapshot
from actions.slurm.tools import SlurmSettings
from config.ids import ClusterName
from tests.actions.slurm import library
from tests.actions.slurm.conftest import RECORDINGS, HandClock
from tests.actions.slurm.replay import install

AT = datetime(2026, 11, 30, 17, 0, tzinfo=UTC)
SCENE = RECORDINGS / "25.11"
DIES = "print('fatal: no slurm.conf', file=sys.stderr); os._exit(1)"


class CountingRunner(Runner):
    """Keeps which back end each child was asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.backends: list[str] = []

    def run(self, command: Command) -> CommandFinished:
        if command.stdin:
            self.backends.append(json.loads(command.stdin)["backend"])
        return super().run(command)


@pytest.fixture
def runner() -> CountingRunner:
    return CountingRunner()


@pytest.fixture
def over_library(
    tmp_path: Path, clock: HandClock, runner: CountingRunner, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., SlurmCli]:
    """A client whose child imports a library with this trouble."""

    def make(backend: str, *, limit: timedelta = timedelta(seconds=20), **how: str) -> SlurmCli:
        tools = install(tmp_path / "tools", SCENE)
        found = library.install(tmp_path / "library", SCENE, **how)
        monkeypatch.setattr(sys, "path", [str(found), *sys.path])
        settings = SlurmSettings(
            cluster=ClusterName("mini"),
            path=f"{tools}:/usr/bin:/bin",
            backend=backend,
            read_limit=limit,
        )
        return SlurmCli(settings, runner, clock, clock.pass_by)

    return make


def test_a_child_that_dies_is_no_snapshot(over_library: Callable[..., SlurmCli]) -> None:
    with pytest.raises(Unreadable, match=r"fatal: no slurm\.conf"):
        over_library("pyslurm", trouble=DIES).snapshot()


def test_where_it_dies_auto_goes_by_the_tools_and_says_why(
    over_library: Callable[..., SlurmCli], runner: CountingRunner, clock: HandClock
) -> None:
    client = over_library("auto", trouble=DIES)
    assert len(client.snapshot().nodes) == 12
    clock.pass_by(timedelta(seconds=20))
    assert len(client.snapshot().nodes) == 12
    assert runner.backends == ["auto", "cli", "cli"]
    assert "fatal: no slurm.conf" in client.remarks()[0]


def test_a_child_that_hangs_is_ended(over_library: Callable[..., SlurmCli]) -> None:
    client = over_library(
        "pyslurm", trouble="import time; time.sleep(3600)", limit=timedelta(seconds=1)
    )
    with pytest.raises(Unreadable, match="did not end"):
        client.snapshot()


def test_what_the_library_prints_is_no_part_of_the_answer(
    over_library: Callable[..., SlurmCli],
) -> None:
    babble = "print('gres None 3'); os.write(1, b'\\xff[\"end\", {}]\\n')"
    assert len(over_library("pyslurm", trouble=babble).snapshot().nodes) == 12


def test_a_library_of_another_release_is_not_used(
    over_library: Callable[..., SlurmCli],
) -> None:
    with pytest.raises(Unreadable, match=r"pyslurm 24\.11\.0 does not fit"):
        over_library("pyslurm", version="24.11.0").snapshot()
    client = over_library("auto", version="24.11.0")
    assert len(client.snapshot().nodes) == 12
    assert "24.11.0 does not fit" in client.remarks()[0]


@pytest.mark.parametrize(
    ("kind", "name"), [("nodes", "gpu-03"), ("jobs", "6"), ("partitions", "short")]
)
def test_an_answer_of_another_cluster_is_none(
    kind: str, name: str, over_library: Callable[..., SlurmCli]
) -> None:
    changes = json.dumps({kind: {name: {"cluster": "other"}}})
    with pytest.raises(Unreadable, match="of cluster other, not mini"):
        over_library("pyslurm", changes=changes).snapshot()


@pytest.mark.parametrize(
    "change",
    [{"state": None}, {"state": 5}, {"allocated_nodes": "gpu-[01"}, {"id": None}, {"id": 1}],
    ids=str,
)
def test_a_job_that_cannot_be_read_is_no_answer(
    change: dict[str, object], over_library: Callable[..., SlurmCli]
) -> None:
    changes = json.dumps({"jobs": {"6": change}})
    with pytest.raises(Unreadable, match="pyslurm's answer cannot be read"):
        over_library("pyslurm", changes=changes).snapshot()


def test_an_error_of_the_library_is_no_answer(over_library: Callable[..., SlurmCli]) -> None:
    changes = json.dumps({"nodes": {"gpu-99": {"name": "gpu-99"}}})  # it lacks all else
    with pytest.raises(Unreadable, match="pyslurm: AttributeError"):
        over_library("pyslurm", changes=changes).snapshot()


CONTROLLER = json.dumps(
    [
        "controller",
        {"cluster": "mini", "version": "25.11.7", "booted_at": 1, "slurmd_timeout": 1}
        | {"return_to_service": 1},
    ]
)
END = json.dumps(
    ["end", {"blind": [], "asked": 1, "without_json": [], "overload": "", "why_not_pyslurm": ""}]
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=6,
)
kinds = st.sampled_from(["node", "job", "partition", "reservation", "controller", "end", "x"])
garbage = st.one_of(
    st.text(max_size=40).filter(lambda text: text.strip()),
    json_values.map(json.dumps),
    st.tuples(kinds, json_values).map(json.dumps),
)


def test_the_fixed_lines_of_the_next_test_are_an_answer() -> None:
    assert received_snapshot(f"{CONTROLLER}\n{END}\n", ClusterName("mini"), AT).asked == 1


@given(st.lists(garbage, min_size=1, max_size=4))
@example(['["node", {"name": []}]'])
@example([json.dumps(["controller", {"cluster": "other"}])])
def test_garbage_between_the_lines_is_no_snapshot(lines: list[str]) -> None:
    with pytest.raises(Unreadable):
        received_snapshot("\n".join([CONTROLLER, *lines, ""]), ClusterName("mini"), AT)


def test_lines_of_another_cluster_are_no_snapshot() -> None:
    with pytest.raises(Unreadable, match="of cluster mini"):
        received_snapshot(f"{CONTROLLER}\n{END}\n", ClusterName("other"), AT)
