"""`python -m tests.faults.watched FILE serve …`: the bot, with a list of every process that it starts.

Python tells an audit hook of each start, also of those that a library makes; it cannot be taken off.
"""

import os
import sys

from bot.cli import main

STARTS = frozenset(
    {
        "subprocess.Popen",
        "os.system",
        "os.exec",
        "os.fork",
        "os.forkpty",
        "os.posix_spawn",
        "os.spawn",
    }
)


def _watch(path: str) -> None:
    list_ = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        if event in STARTS:
            os.write(list_, f"{event} {arguments!a}\n".encode())

    sys.addaudithook(hook)


if __name__ == "__main__":
    _watch(sys.argv[1])
    main(sys.argv[2:])
