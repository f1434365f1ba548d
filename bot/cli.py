"""`nodewarden`: the command line. Parses, hands over, prints; loads nothing that it does not need.

The verbs of `bot.commands` talk to the running bot over its socket. The others (serve, audit,
runbook, sandbox, config) are of this machine.
"""

import importlib
import sys

import click

from bot.commands import VERBS, Verb

_OF_THIS_MACHINE = {
    "serve": ("bot.cli_serve", "serve", "Run the bot."),
    "config": ("bot.cli_serve", "config", "Check a configuration file."),
    "helper": ("bot.cli_on_node", "on_node", "Install and check the program on the nodes."),
    "runbook": ("bot.cli_runbook", "runbook", "Lint, compare, release and test runbooks."),
    "sandbox": ("bot.cli_sandbox", "sandbox", "Try the bot without a cluster, in the browser."),
    "completion": (
        "bot.cli_serve",
        "completion",
        "Print the shell completion for bash, zsh, fish.",
    ),
}
"""Module, name and help of each command that is loaded only when it is called."""


class _Commands(click.Group):
    """Verbs of the desk and commands of this machine, found without loading any of them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names; the verbs in the order of their table."""
        return [*(verb.value for verb in VERBS), *_OF_THIS_MACHINE]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of this name, loaded now."""
        if cmd_name in _OF_THIS_MACHINE:
            module, name, _ = _OF_THIS_MACHINE[cmd_name]
            found: click.Command = getattr(importlib.import_module(module), name)
            return found
        try:
            spec = VERBS[Verb(cmd_name)]
        except ValueError:
            return None
        from bot.cli_verbs import verb_command

        return verb_command(spec)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Help from the tables alone, so that it is quick."""
        with formatter.section("Ask the running bot (the same words as in Slack)"):
            formatter.write_dl([(verb.value, spec.summary) for verb, spec in VERBS.items()])
        with formatter.section("On this machine"):
            rows = [(name, entry[2]) for name, entry in _OF_THIS_MACHINE.items()]
            formatter.write_dl(rows)


@click.command(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="nodewarden", message="%(version)s")
def main() -> None:
    """On-call bot of a GPU training cluster."""


if __name__ == "__main__":
    sys.exit(main())
