"""What would end every process of a namespace refuses to begin outside of one of its own."""

import subprocess
import sys
from pathlib import Path

import pytest

from bot.testbed import supervisor


def test_outside_a_namespace_of_its_own_it_refuses_before_it_reads_anything() -> None:
    argv = [sys.executable, "-I", "-S", str(Path(supervisor.__file__)), "/absent.json"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("supervisor.py is not process 1 of a PID namespace")


def test_ending_everything_is_refused_where_that_would_be_the_host(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sent: list[int] = []
    monkeypatch.setattr("os.kill", lambda pid, _number: sent.append(pid))
    machine = object.__new__(supervisor.Machine)
    machine.units = {}
    with pytest.raises(SystemExit, match="not process 1"):
        machine._end_all()
    assert sent == []
