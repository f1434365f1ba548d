"""A sink for anchors that a site brings itself: a program that carries one line off this host.

Constructed by `bot.wiring` from `anchors.commands`. The program gets the anchor on its standard input
and nothing else; what it needs to know (a token, a host) it reads from files of its own.
"""

from dataclasses import dataclass
from datetime import timedelta

from actions.shell import Command, CommandFinished, Runner
from audit_log.anchors import Anchor

LIMIT = timedelta(seconds=30)
ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC"}


@dataclass(frozen=True, slots=True)
class CommandSink:
    """`AnchorSink` over one argument list."""

    argv: tuple[str, ...]
    runner: Runner

    @property
    def name(self) -> str:
        """The program; its arguments may hold more than everybody should read."""
        return f"command {self.argv[0]}"

    @property
    def leaves_host(self) -> bool:
        """It was named for that: a site that wants a file beside the log names a file."""
        return True

    def send(self, anchor: Anchor) -> None:
        """Run it to its end. Raises OSError unless it says, by exit code 0, that the line is kept."""
        done = self.runner.run(
            Command(
                argv=self.argv,
                time_limit=LIMIT,
                environment=ENVIRONMENT,
                stdin=f"{anchor.line()}\n".encode("ascii"),
                output_cap=4096,
            )
        )
        if not done.ok:
            raise OSError(_why(done))


def _why(done: CommandFinished) -> str:
    said = " ".join((done.stderr or done.stdout).split())[:200]
    ended = done.lost or f"exit code {done.exit_code}"
    return f"{ended}: {said}" if said else ended
