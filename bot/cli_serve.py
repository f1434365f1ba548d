"""`nodewarden serve`, `config check`, `completion`."""

import logging
import sys
from pathlib import Path

import click

from bot.terminal import plain

_CONFIG = click.option(
    "--config",
    "paths",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    multiple=True,
    required=True,
    help="Configuration file; may be given several times.",
)


@click.command()
@_CONFIG
@click.option("--verbose", is_flag=True, help="Log what is decided, not only what is wrong.")
def serve(paths: tuple[Path, ...], verbose: bool) -> None:
    """Run the bot until it is told to stop."""
    from audit_log.errors import StoreError
    from bot.bot_sockets import CannotListen
    from bot.cluster_checks import ClusterRefused
    from bot.serve import serve as run
    from config.load import ConfigErrors
    from config.secret_store import SecretError
    from runbooks.problems import Problems

    logging.basicConfig(
        level=logging.INFO if verbose else logging.WARNING,
        format="%(asctime)s %(levelname)s %(name)s %(message)s",
        stream=sys.stderr,
    )
    try:
        run(list(paths), lambda line: click.echo(plain(line), err=True))
    except (
        CannotListen,
        ConfigErrors,
        SecretError,
        StoreError,
        ClusterRefused,
        Problems,
    ) as problem:
        for text in f"nodewarden does not start:\n{problem}".splitlines():
            click.echo(plain(text), err=True)
        sys.exit(1)


@click.group()
def config() -> None:
    """The configuration."""


@config.command()
@_CONFIG
def check(paths: tuple[Path, ...]) -> None:
    """Say everything that is wrong with these files, all at once."""
    from config.load import ConfigErrors, load

    try:
        settings = load(list(paths))
    except ConfigErrors as problem:
        for one in problem.problems:
            click.echo(plain(str(one)), err=True)
        sys.exit(1)
    people = len(settings.people)
    click.echo(
        f"good: {len(settings.clusters)} clusters, {people} people, {len(settings.roles)} roles"
    )


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script: `eval "$(nodewarden completion bash)"`."""
    from click.shell_completion import get_completion_class

    from bot.cli import main

    found = get_completion_class(shell)
    if found is not None:
        click.echo(found(main, {}, "nodewarden", "_NODEWARDEN_COMPLETE").source())
