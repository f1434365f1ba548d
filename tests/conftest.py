"""What every test starts from: an environment that points nowhere. Markers are in pyproject.toml."""

import os

import pytest
from hypothesis import settings

# A slow machine is no failure; where CI is set, hypothesis' own "ci" settings stay beneath.
settings.register_profile("patient", settings(), deadline=None)
settings.load_profile("patient")

_FOREIGN = ("SLACK_", "SLURM_", "SQUEUE_", "SINFO_", "SACCT_", "SCONTROL_", "NODEWARDEN_BOT")


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No proxy, token or Slurm setting of the machine reaches a test or a program that it starts."""
    for name in os.environ:
        if name.startswith(_FOREIGN) or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
