"""The desk's verbs on the command line: sent to the running bot, or, with --standalone, done here."""

import json
import os
import secrets
import sys
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from bot.bot_sockets import DATA_FOLDER, to_ask
from bot.commands import Verb, VerbSpec
from bot.local_client import BotAway, talk
from bot.local_wire import Ask
from bot.replies import ReplyKind
from bot.terminal import plain

_ON_THE_FILE = frozenset({"verify", "rebuild", "backup", "restore"})
"""What `audit` does to a file that is named; without a file the running bot is asked."""
_AWAY_CODE = 4
"""Exit code when no bot answers."""


class _VerbCommand(click.Command):
    """A verb whose options are partly the bot's: those are completed from its table."""

    def __init__(self, spec: VerbSpec, **given: Any) -> None:
        super().__init__(**given)
        self._spec = spec

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Options of this command and of the verb."""
        ours = super().shell_complete(ctx, incomplete)
        return [*ours, *map(CompletionItem, _completed(self._spec, ctx, incomplete))]


def _completed(spec: VerbSpec, context: click.Context, begun: str) -> list[str]:
    """What a shell offers where TAB was pressed; nothing where anything is in the way."""
    from bot.completion import candidates
    from config.load import ConfigErrors

    given = {"socket": None, "config": (), **context.params}
    try:
        path = _socket(given)
    except (ConfigErrors, OSError):  # the command itself says what is wrong with the files
        return []
    return candidates(spec, tuple(given.get("words") or ()), begun, path)


def verb_command(spec: VerbSpec) -> click.Command:
    """The command of one verb; its words are parsed by the bot, as those of every door."""
    parameters: list[click.Parameter] = [
        click.Argument(
            ["words"],
            nargs=-1,
            type=click.UNPROCESSED,
            shell_complete=lambda context, _, begun: _completed(spec, context, begun),
        ),
        click.Option(["--json", "as_json"], is_flag=True, help="Answer as one JSON object a line."),
        click.Option(["--socket"], type=click.Path(path_type=Path), help="The bot's socket."),
        click.Option(["--config"], type=click.Path(path_type=Path), multiple=True,
                     help="Configuration, to find the socket, or for --standalone."),
        click.Option(["--no-wait"], is_flag=True, help="Do not follow a started run."),
        click.Option(["--standalone"], is_flag=True,
                     help="Do it here, without a server: break-glass, for the service account."),
    ]  # fmt: skip
    return _VerbCommand(
        spec,
        name=spec.verb.value,
        callback=lambda **given: _carry_out(spec, given),
        params=parameters,
        help=f"{spec.summary}\n\nUsage: {spec.usage}\n\nExample: nodewarden {spec.example}",
        context_settings={"ignore_unknown_options": True, "help_option_names": ["-h", "--help"]},
    )


def _carry_out(spec: VerbSpec, given: dict[str, Any]) -> None:
    words = (spec.verb.value, *given["words"])
    if spec.verb is Verb.AUDIT and len(words) > 2 and words[1] in _ON_THE_FILE:
        from bot.cli_ledger import ledger

        ledger.main(args=list(words[1:]), prog_name="nodewarden audit")
    if given["standalone"]:
        from bot.standalone import run_standalone

        sys.exit(run_standalone(list(given["config"]), words, as_json=given["as_json"]))
    key = f"cli-{secrets.token_hex(16)}"
    ask = Ask(words=words, key=key, follow=not given["no_wait"])
    try:
        code = _ask(ask, given)
    except BotAway as away:
        if spec.verb is Verb.HALT and not _options(given["words"]):
            sys.exit(_halt_by_file(given, away))
        click.echo(f"{away}", err=True)
        code = _AWAY_CODE
    sys.exit(code)


def _options(words: tuple[str, ...]) -> bool:
    return any(word.startswith("--") for word in words)


def _ask(ask: Ask, given: dict[str, Any]) -> int:
    """Send, print what comes, and make the exit code of it."""
    code, shown = 0, 0
    path = _socket(given)
    if ask.words[0] == Verb.HALT and not _options(given["words"]):
        _halt_file_first(_data_folder(given), ask.words[1:])
    for line in talk(path, ask):
        if given["as_json"]:
            click.echo(json.dumps(line))
        reply, card = line.get("reply"), line.get("card")
        if reply is not None:
            code = ReplyKind(reply["kind"]).exit_code
            if not given["as_json"]:
                for text in reply["lines"]:
                    click.echo(plain(text), err=code != 0)
        if card is not None:
            code = _code_of(card) if reply is None else code
            if not given["as_json"]:
                shown = _show(card, shown, first=reply is not None)
    return code


def _show(card: dict[str, Any], shown: int, *, first: bool) -> int:
    """Print the steps that are new; the whole card once the run rests."""
    steps = card["steps"]
    if not first:
        for text in steps[shown:]:
            if text[0] in "✔✘?↩":
                click.echo(f"  {plain(text)}")
    done = sum(1 for text in steps if text[0] in "✔✘?↩·")
    if not card["acts"]:
        for text in (card["title"], *card["lines"]):
            click.echo(plain(text))
        for command in card["next"]:
            click.echo(f"  nodewarden {command}")
    return max(shown, done)


def _code_of(card: dict[str, Any]) -> int:
    """0 for a run that succeeded or waits for a yes, 1 for one that did not."""
    good = {"succeeded", "awaiting_approval", "running", "waiting", "requested", "undone"}
    return 0 if card["state"] in good else 1


def _socket(given: dict[str, Any]) -> Path:
    if given["socket"] is not None:
        return Path(given["socket"])
    named = os.environ.get("NODEWARDEN_SOCKET")
    if named:
        return Path(named)
    if given["config"]:
        from config.load import load

        bot = load(list(given["config"])).bot
        return bot.socket or to_ask(bot.data_folder)
    return to_ask(DATA_FOLDER)


def _data_folder(given: dict[str, Any]) -> Path:
    """Where the bot keeps its database and looks for the halt file; the socket may lie elsewhere."""
    if given["config"]:
        return _configured(list(given["config"]))
    beside = _socket(given).parent
    return next((at for at in (beside, DATA_FOLDER) if _is_data_folder(at)), beside)


def _configured(paths: list[Path]) -> Path:
    from config.load import load

    return load(paths).bot.data_folder


def _is_data_folder(folder: Path) -> bool:
    """Asked without a fault of those who may not even look into it."""
    return os.access(folder / "nodewarden.db", os.F_OK)


def _halt_file_first(folder: Path, reason: tuple[str, ...]) -> None:
    """The file stops the bot even where it does not answer; who may not write it asks the bot."""
    from runbooks.halt import HaltFile

    path = folder / "halt"
    if _is_data_folder(folder) and os.access(folder, os.W_OK):
        HaltFile(path).set(" ".join(reason) or "halted from the command line")
        click.echo(f"halt file written: {path}")


def _halt_by_file(given: dict[str, Any], away: BotAway) -> int:
    """No bot answered: the file alone counts."""
    folder = _data_folder(given)
    if not _is_data_folder(folder):  # a file beside the socket would stop nothing
        click.echo(
            f"{away}; NOT halted: the halt file in the bot's data folder cannot be written by you: ask"
            " the bot's account, or name the folder with --config",
            err=True,
        )
        return _AWAY_CODE
    path = folder / "halt"
    if os.access(path, os.F_OK):
        click.echo("halted: no new effect begins. The bot did not answer; it keeps to the file")
        return 0
    click.echo(f"{away}; and {path} cannot be written by you: ask the bot's account", err=True)
    return _AWAY_CODE
