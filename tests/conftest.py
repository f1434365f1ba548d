"""What every test starts from: an environment that points nowhere. Markers are in pyproject.toml."""

import contextlib
import os
from pathlib import Path

import pytest
from hypothesis import settings

from tests.testbed.fixture import slurm_testbed

__all__ = ["slurm_testbed"]

# A slow machine is no failure; where CI is set, hypothesis' own "ci" settings stay beneath.
settings.register_profile("patient", settings(), deadline=None)
settings.load_profile("patient")

_LONG = ("sweep", "matrix", "faults", "bot")
NO_LOGIN = "4294967295"
_FOREIGN = ("SLACK_", "SLURM_", "SQUEUE_", "SINFO_", "SACCT_", "SCONTROL_", "NODEWARDEN_BOT")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the folders whose files run for minutes, so that two processes end together."""
    places = {Path(__file__).parent / name: place for place, name in enumerate(_LONG)}
    items.sort(key=lambda item: min(places.get(at, len(_LONG)) for at in item.path.parents))


@pytest.fixture(scope="session", autouse=True)
def nobody_logged_in() -> None:
    """Let the tests speak as root or as the users they become, not as whoever logged in and used sudo."""
    with contextlib.suppress(OSError):  # only root may, and only where the kernel lets it
        Path("/proc/self/loginuid").write_text(NO_LOGIN, "ascii")


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No proxy, token or Slurm setting of the machine reaches a test or a program that it starts."""
    for name in os.environ:
        if name.startswith(_FOREIGN) or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
