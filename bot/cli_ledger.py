"""`nodewarden audit verify|rebuild|backup|restore FILE …`: the audit log as a file, bot or no bot."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import click

T = TypeVar("T")

_DATABASE = click.argument("database", type=click.Path(path_type=Path))
_ANCHORS = click.option(
    "--anchor",
    "anchors",
    type=click.Path(path_type=Path, exists=True),
    multiple=True,
    help="Anchor file to compare with; may be given several times.",
)


@click.group(name="audit")
def ledger() -> None:
    """The audit log as a file."""


@ledger.command()
@_DATABASE
@_ANCHORS
def verify(database: Path, anchors: tuple[Path, ...]) -> None:
    """Check every record of the chain, and the anchors' word against it."""
    from audit_log.anchors import FileSink
    from audit_log.verify import verify as check

    known = [one for path in anchors for one in FileSink(path).read()] if anchors else None
    report = _guarded(lambda: check(database, known))
    for finding in report.findings:
        click.echo(f"BROKEN record {finding.seq}: {finding.problem}", err=True)
    state = "sound" if report.sound else "BROKEN"
    click.echo(
        f"{state}: {report.records} records, head {report.head.seq} {report.head.digest[:16]}, "
        f"{report.anchors} anchors compared, {report.restores} restores"
    )
    sys.exit(0 if report.sound else 1)


@ledger.command()
@_DATABASE
@click.argument("target", type=click.Path(path_type=Path))
def backup(database: Path, target: Path) -> None:
    """Copy the ledger to TARGET while the bot runs; the copy is verified."""
    from audit_log.backup import back_up

    report = _guarded(lambda: back_up(database, target))
    click.echo(f"{target}: {report.records} records, head {report.head.seq}")


@ledger.command()
@click.argument("backup_file", metavar="BACKUP", type=click.Path(path_type=Path, exists=True))
@_DATABASE
@_ANCHORS
def restore(backup_file: Path, database: Path, anchors: tuple[Path, ...]) -> None:
    """Put BACKUP in the place of DATABASE; then an admin confirms each open run."""
    from audit_log.anchors import FileSink
    from audit_log.backup import restore as put_back

    known = [one for path in anchors for one in FileSink(path).read()]
    restored = _guarded(lambda: put_back(backup_file, database, known))
    click.echo(
        f"restored to record {restored.backup_head}; records up to {restored.lost_to} are given up."
        " Nothing acts until an admin says `nodewarden audit confirm RUN` or `… confirm all`"
    )


@ledger.command()
@_DATABASE
def rebuild(database: Path) -> None:
    """Drop every projection and make it again from the records; the bot must be stopped."""
    from audit_log.ledger import Ledger
    from audit_log.rebuild import Rebuilt
    from audit_log.rebuild import rebuild as make_again
    from config.redaction import Redactor
    from config.system_clock import SystemClock
    from runbooks.projection import RunProjector

    def work() -> Rebuilt:
        opened = Ledger.open(
            database, clock=SystemClock(), redactor=Redactor(), projectors=(RunProjector(),)
        )
        try:
            return make_again(opened)
        finally:
            opened.close()

    made = _guarded(work)
    differed = f"; these held something else before: {', '.join(made.differing)}"
    click.echo(f"rebuilt from {made.records} records{differed if made.differing else ''}")


def _guarded(work: Callable[[], T]) -> T:
    """Run it; what the store refuses is said in one line and ends the command."""
    from audit_log.errors import StoreError

    try:
        return work()
    except StoreError as problem:
        click.echo(str(problem), err=True)
        sys.exit(1)
