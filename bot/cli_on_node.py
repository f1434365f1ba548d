"""`nodewarden helper install|check|print`: the one program that the bot runs as root on a node."""

import os
import sys
from pathlib import Path

import click

_ROOT = click.option(
    "--root",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    default=Path("/"),
    help="Folder of a node image instead of this machine.",
)


@click.group()
def on_node() -> None:
    """The program on the nodes, and sudo's leave for it."""


@on_node.command()
@_ROOT
@click.option("--user", default="nodewarden", help="The bot's user on the node.")
@click.option("--files", multiple=True, help="Folder below which files of users may be read.")
@click.option("--hosts", multiple=True, help="Host, pattern or network that may be tried by TCP.")
@click.option("--dry-run", is_flag=True, help="Say what would be written.")
@click.option("--print-sudoers", is_flag=True, help="Print the sudoers drop-in and write nothing.")
@click.option(
    "--forced-command",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Print the authorized_keys line for this public key and write nothing.",
)
def install(  # noqa: PLR0913  each is an option of the command line
    root: Path,
    user: str,
    files: tuple[str, ...],
    hosts: tuple[str, ...],
    dry_run: bool,
    print_sudoers: bool,
    forced_command: Path | None,
) -> None:
    """Install the program, a first helper.conf and the sudoers drop-in. Run as root on each node."""
    from actions.remote import installing
    from actions.shell import Runner

    try:
        if print_sudoers or forced_command is not None:
            _print(user if print_sudoers else None, forced_command)
            return
        if os.geteuid() != 0 and not dry_run:
            raise click.ClickException("files of root are written: run as root, or with --dry-run")
        wanted = installing.Wanted(root=root, user=user, roots=files, hosts=hosts, dry_run=dry_run)
        for line in installing.install(wanted, Runner()):
            click.echo(line)
    except installing.NotInstalled as error:
        raise click.ClickException(str(error)) from error


@on_node.command()
@_ROOT
def check(root: Path) -> None:
    """Say whether the installed program is of this version and root's own."""
    from actions.remote import installing

    findings = tuple(installing.check(root))
    for good, text in findings:
        click.echo(f"{'ok ' if good else 'BAD'} {text}")
    sys.exit(0 if all(good for good, _ in findings) else 1)


@on_node.command(name="print")
def print_program() -> None:
    """Write the program to standard output, for whatever installs files on your nodes."""
    from actions.remote import packing

    sys.stdout.buffer.write(packing.program())


def _print(user: str | None, key: Path | None) -> None:
    from actions.remote import installing

    if user is not None:
        click.echo(installing.sudoers(user), nl=False)
    if key is not None:
        click.echo(installing.authorized_keys(key.read_text("utf-8", "replace")), nl=False)
