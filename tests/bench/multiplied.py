"""A library of the name pyslurm whose answer is a recorded one many times over, for the snapshot child.

No Slurm of the release for which the real library is built runs here. So its own share, decoding
the controller's answer, is not in these numbers: what is measured is the program's.
"""

from pathlib import Path

RECORDED = Path(__file__).parents[1] / "recordings" / "25.11"

_PACKAGE = """
import json
from pathlib import Path

__version__ = "25.11.2"
FOLDER = Path({recorded!r})
WIDTH = 5


class Resources:
    gres = {{}}


class Record:
    __slots__ = ("told",)

    def __init__(self, told):
        self.told = told

    def __getattr__(self, name):
        value = self.told[name]
        return Resources if name.endswith("_tres") and isinstance(value, str) else value


def recorded(kind):
    return list(json.loads((FOLDER / f"pyslurm-{{kind}}.json").read_text()).values())


class Nodes:
    @staticmethod
    def load():
        one = next(node for node in recorded("nodes") if node["state"] == "IDLE")
        names = (f"gpu-{{n:0{{WIDTH}}}}" for n in range(1, {nodes} + 1))
        return {{name: Record(one | {{"name": name}}) for name in names}}


class Jobs:
    @staticmethod
    def load():
        one = next(job for job in recorded("jobs") if job["state"] == "PENDING")
        return {{n: Record(one | {{"id": n}}) for n in range(1, {jobs} + 1)}}


class Partitions:
    @staticmethod
    def load():
        return {{one["name"]: Record(one) for one in recorded("partitions")}}


class Reservations:
    @staticmethod
    def load():
        return {{}}
"""


def install(folder: Path, *, nodes: int, jobs: int) -> Path:
    """Make a folder in which `import pyslurm` finds it."""
    package = folder / "library" / "pyslurm"
    package.mkdir(parents=True)
    text = _PACKAGE.format(recorded=str(RECORDED), nodes=nodes, jobs=jobs)
    (package / "__init__.py").write_text(text)
    return package.parent
