"""The section `canary` of a cluster: what tries a node before work may start on it again. Pure."""

import re
from typing import Annotated

from pydantic import BeforeValidator, Field

from config.durations import parse_duration
from config.fields import AbsolutePath, Duration, Section

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}", re.ASCII)
_PRIVILEGED = frozenset({"root", "slurm", "0"})


def _name(value: object) -> str:
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise ValueError("a name of letters, digits, '_', '.', '-' is expected")
    return value


def _user(value: object) -> str:
    name = _name(value)
    if name in _PRIVILEGED:
        raise ValueError("the canary runs as an account without rights; name another one")
    return name


class Canary(Section):
    """A small job that tries a node inside a reservation before the node is given back."""

    user: Annotated[str, BeforeValidator(_user)]
    """Unprivileged OS account, known to Slurm, under which it runs; the bot's own user may become it by
    sudo without a password."""
    command: Annotated[tuple[str, ...], Field(min_length=1)]
    """Program and arguments, run on the node; exit code 0 says that the node is good."""
    account: Annotated[str, BeforeValidator(_name)] | None = None
    """Slurm account of the job. Default: that of the user."""
    partition: Annotated[str, BeforeValidator(_name)] | None = None
    """Partition of the job. Default: Slurm's default partition."""
    time_limit: Duration = parse_duration("10m")
    """So long it may run. Default: 10m."""
    output: AbsolutePath | None = None
    """Folder on a shared file system where the account writes the job's output and the bot reads its last
    lines. Default: none, and a card shows the exit code alone."""
