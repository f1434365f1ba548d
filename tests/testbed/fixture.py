"""A running Slurm testbed, one per test session; tests/conftest.py makes it known to all.

A test that changes a node puts it back, or takes nodes of its own.
"""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bot.testbed import SlurmTestbed


@contextmanager
def fresh_folder() -> Iterator[Path]:
    """A short path that other users can pass, unlike pytest's own; removed afterwards."""
    parent = Path(tempfile.mkdtemp(prefix="nwtb-"))
    parent.chmod(0o755)
    try:
        yield parent / "t"
    finally:
        SlurmTestbed.stop_folder(parent / "t")
        shutil.rmtree(parent)


@pytest.fixture(scope="session")
def slurm_testbed() -> Iterator[SlurmTestbed]:
    """Twelve nodes, all idle."""
    if why := SlurmTestbed.missing():
        pytest.skip(why)
    with fresh_folder() as folder, SlurmTestbed(folder) as testbed:
        yield testbed
