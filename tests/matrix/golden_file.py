"""The golden files of the matrix: read in review, written by `python -m tests.matrix.write`."""

from pathlib import Path

FOLDER = Path(__file__).parent / "golden"


def golden(name: str) -> str:
    """What was found to be right."""
    return (FOLDER / name).read_text("utf-8")


def write(name: str, text: str) -> None:
    """Write it anew; the diff is the argument."""
    (FOLDER / name).write_text(text, "utf-8")
