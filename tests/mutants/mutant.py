"""One promise broken in one place, and the test that has to notice."""

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """A change of one place that breaks one promise."""

    promise: str
    """What no longer holds."""
    file: str
    old: str
    """Stands exactly once in the file."""
    new: str
    test: str
    """Folder, file or single test that fails."""

    def times(self, root: Path = ROOT) -> int:
        """How often the place is found; anything but once means that the table is out of date."""
        return (root / self.file).read_text("utf-8").count(self.old)

    def place(self, root: Path = ROOT) -> str:
        """File and line, for the table."""
        before, _, _ = (root / self.file).read_text("utf-8").partition(self.old)
        skipped = len(self.old) - len(self.old.lstrip("\n"))
        return f"{self.file}:{before.count(chr(10)) + 1 + skipped}"

    def broken(self, root: Path = ROOT) -> str:
        """The whole file with the promise broken."""
        return (root / self.file).read_text("utf-8").replace(self.old, self.new)
