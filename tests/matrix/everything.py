"""Everything that is found out by asking, in one go: the tests compare it, `write` keeps it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from config.actors import Door
from tests.matrix.alone import Alone
from tests.matrix.driving import Cell, Driver
from tests.matrix.people import ROWS, UIDS, Nodes
from tests.matrix.shells import Shell
from tests.matrix.site import Spot, asked_by, at_slack, at_the_socket, ground, spot


@contextmanager
def served() -> Iterator[tuple[Spot, dict[str, Shell]]]:
    """The served bot and everybody's shell."""
    with ground() as (folder, shells), spot(folder) as site:
        yield site, shells


def matrix() -> dict[Door, list[Cell]]:
    """Every cell of every door."""
    found: dict[Door, list[Cell]] = {}
    with ground() as (folder, shells):
        with spot(folder) as site:
            found[Door.SLACK] = list(_slack(site).cells())
            found[Door.CLI] = list(_cli(site, shells).cells())
        found[Door.STANDALONE] = list(_alone(folder, shells).cells())
    return found


def _slack(site: Spot) -> Driver:
    nodes = Nodes(0, 3)
    return Driver(
        site=site, door=Door.SLACK, say=lambda who, text: at_slack(site, who, text), nodes=nodes
    )


def _cli(site: Spot, shells: dict[str, Shell]) -> Driver:
    return Driver(
        site=site,
        door=Door.CLI,
        say=lambda who, text: at_the_socket(site, shells[who], text),
        nodes=Nodes(1, 3),
    )


def _alone(folder: Path, shells: dict[str, Shell]) -> Alone:
    return Alone(folder=folder, shells=shells, nodes=Nodes(2, 3))


def help_per_role(site: Spot) -> str:
    """What `help` lists for each role."""
    lines = []
    for name in dict.fromkeys(row.person for row in ROWS if row.person in UIDS and row.role):
        role = next(row.role for row in ROWS if row.person == name)
        shown = asked_by(site, name, "help", Door.CLI).lines[:-1]
        lines.append(f"{role}: {' '.join(line.split()[0] for line in shown)}")
    nobody = asked_by(site, "nora", "help", Door.CLI).lines[:-1]
    return "\n".join([f"(no role): {' '.join(line.split()[0] for line in nobody)}", *lines, ""])


QUESTIONS = (
    "can @otto node.drain gpu-100",
    "can @otto node.drain gpu-[100-104]",
    "can @otto halt.clear",
    "can @rita node.drain gpu-100",
    "can @rita node.drain gpu-401",
    "can @rita node.drain gpu-441",
    "can @rita node.drain gpu-[401,441]",
    "can @rita node.drain gpu-[401-405]",
    "can @vic node.drain gpu-100",
    "can @nora node.read",
    "can @audrey audit.read",
    "can @audrey node.read gpu-100",
    "can @adm runbook.release",
)


def verdicts(site: Spot) -> str:
    """What `can` says of somebody else."""
    said = [(text, asked_by(site, "vic", text, Door.CLI).lines[0]) for text in QUESTIONS]
    return "".join(f"{text}\n  {told}\n" for text, told in said)
