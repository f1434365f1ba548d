"""`nodewarden sandbox`: try the bot without a cluster, in the browser; `--demo` plays the main job."""

import contextlib
import signal
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from bot.sandbox.sandbox import SandboxOptions
    from bot.sandbox.stage import Screen

_THREE_THINGS = """\
Three things to try there, as ann, in #ops:
  1. Choose a busy node on the right, kill its slurmd, and type  /ops run node-dropped NODE
  2. Let a person drain a node, and ask the bot to repair that one: it keeps its hands off.
  3. /ops drain NODE "RMA 4711", then /ops return NODE, then /ops audit target=NODE
Ctrl-C ends everything."""


@click.command()
@click.option("--slurm", is_flag=True, help="A real Slurm with virtual nodes; needs root.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Of the page; 0: any.")
@click.option(
    "--scene",
    default="demo",
    show_default=True,
    help="Simulated cluster: demo (80 nodes), small (12), scale:NODES, or a YAML file.",
)
@click.option("--demo", "play", is_flag=True, help="Play the main job, then leave the page open.")
@click.option("--once", is_flag=True, help="With --demo: end after it, also in a terminal.")
@click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="Keep the bot's state here; without it a temporary folder is used.",
)
def sandbox(  # noqa: PLR0913  one for each option
    slurm: bool, port: int, scene: str, play: bool, once: bool, folder: Path | None
) -> None:
    """Try the real bot on a simulated cluster or a Slurm of this machine, with a stand-in for Slack.

    Everything listens on 127.0.0.1 and ends with Ctrl-C.
    """
    from rich.console import Console

    from bot.sandbox.playground import SandboxError
    from bot.sandbox.sandbox import SandboxOptions
    from bot.sandbox.slurm import SlurmPlayground
    from bot.sandbox.stage import Screen

    screen = Screen(Console())
    if slurm or play:
        why = SlurmPlayground.missing()
        if why:
            screen.say(f"A simulated cluster is used, because {why}.")
        slurm = not why
    options = SandboxOptions(
        slurm=slurm, scene="small" if play else scene, port=port, folder=folder
    )
    # A stop ends as Ctrl-C does, which a shell makes what it starts in the background ignore.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    try:
        sys.exit(_run(options, screen, play=play, once=once))
    except SandboxError as problem:
        click.echo(f"the sandbox ended: {problem}", err=True)
        sys.exit(1)
    except KeyboardInterrupt:
        screen.say("Everything has ended.")


def _run(options: "SandboxOptions", screen: "Screen", *, play: bool, once: bool) -> int:
    """Start, play if wanted, and stay until Ctrl-C where somebody is there to press it."""
    from bot.sandbox.demo import Demo
    from bot.sandbox.sandbox import Sandbox

    box = Sandbox(options)
    with contextlib.ExitStack() as ends:
        with screen.busy("Starting a cluster, a stand-in for Slack, and the bot …"):
            ends.enter_context(box)
            box.start_bot()
        # Whoever presses Ctrl-C twice must not leave half of it running.
        ends.callback(signal.signal, signal.SIGINT, signal.SIG_IGN)
        screen.say(f"The bot runs on {box.playground.title}. Its Slack is {box.url}")
        code = 0
        if play:
            code = 0 if Demo(sandbox=box, screen=screen).play() else 1
            if once or not screen.is_terminal:
                return code
        screen.say(_THREE_THINGS)
        if left := round(box.playground.quiet_for()):
            screen.say(f"slurmctld has just started: for {left} s the bot looks and does not act.")
        screen.say(f"In another shell:  export NODEWARDEN_SOCKET={box.places.socket}")
        with contextlib.suppress(KeyboardInterrupt):
            threading.Event().wait()
    screen.say("Everything has ended.")
    return code
