"""A library of the name pyslurm that plays a recording, for the child that imports it.

Its values have the kinds of the real one: counted resources and flags are objects of its own, and a
text that is not UTF-8 raises when it is read. `trouble` is code that runs in it on import.
"""

from pathlib import Path

_PACKAGE = '''
import json, os, sys
from pathlib import Path
{trouble}
__version__ = {version!r}
FOLDER = Path({recording!r})


class Resources:
    """As TrackableResources: no GPU is counted in the recorded scene."""

    def __init__(self, gres):
        self.gres = gres


class Count:
    def __init__(self, count):
        self.count = count


class Flags:
    def __init__(self, text):
        self.text = text

    def __str__(self):
        return self.text


class Record:
    def __init__(self, told):
        self._told = told

    def __getattr__(self, name):
        if name not in self._told:
            raise AttributeError(name)
        value = self._told[name]
        if isinstance(value, str) and value.startswith("<pyslurm.db.tres."):
            return Resources({{}})
        if isinstance(value, dict) and "count" in value:
            return Resources({{key: Count(number) for key, number in value["count"].items()}})
        if isinstance(value, str) and value.startswith("bytes:"):
            return bytes.fromhex(value[6:]).decode()
        return Flags(value) if name == "flags" else value


def collection(kind):
    class Collection(dict):
        @staticmethod
        def load():
            if os.environ.get("SLURM_CONF") is None:
                sys.exit(1)
            told = json.loads((FOLDER / f"pyslurm-{{kind}}.json").read_text())
            changes = json.loads((Path(__file__).parent / "changes.json").read_text())
            for name, change in changes.get(kind, {{}}).items():
                told[name] = told.get(name, {{}}) | change
            return Collection({{name: Record(one) for name, one in told.items()}})

    return Collection


Nodes, Jobs = collection("nodes"), collection("jobs")
Partitions, Reservations = collection("partitions"), collection("reservations")
'''


def install(
    folder: Path,
    recording: Path,
    *,
    changes: str = "{}",
    trouble: str = "",
    version: str = "25.11.2",
) -> Path:
    """Make a folder in which `import pyslurm` finds the player; `changes`: JSON by kind and name."""
    package = folder / "pyslurm"
    package.mkdir(parents=True, exist_ok=True)
    (package / "changes.json").write_text(changes)
    (package / "__init__.py").write_text(
        _PACKAGE.format(recording=str(recording), trouble=trouble, version=version)
    )
    return folder
