"""The field types of the configuration: each reads one kind of text and says what would be right.

Used by `config.settings` and `config.policy` only. Whole numbers and truth values are strict (text
is never read as a number); no error repeats what was given, because it may be a secret.
"""

import re
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictBool

from config.durations import parse_duration
from config.node_names import NodeSet, expand_unchecked
from config.secrets import SecretRef

_SLACK_USER = re.compile(r"T[A-Z0-9]{1,20}/[UW][A-Z0-9]{1,20}", re.ASCII)
_SLACK_GROUP = re.compile(r"S[A-Z0-9]{1,20}", re.ASCII)
_SLACK_CHANNEL = re.compile(r"[CG][A-Z0-9]{1,20}", re.ASCII)
_UNIT = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.@:-]{0,120}", re.ASCII)
_KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,60}", re.ASCII)
_HOST_PORT = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]{0,250}:[1-9][0-9]{0,4}", re.ASCII)
_PERCENT = re.compile(r"(100|[1-9][0-9]?)%", re.ASCII)


class Section(BaseModel):
    """Base of every part of the configuration: immutable, unknown keys refused."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        use_attribute_docstrings=True,
        hide_input_in_errors=True,
        arbitrary_types_allowed=True,
        validate_default=False,
    )


@dataclass(frozen=True, slots=True)
class MaxOut:
    """How many nodes of a pool may be out at once: a count or a share of the pool."""

    count: int | None = None
    percent: int | None = None

    def of(self, size: int) -> int:
        """The number for a pool of `size` nodes; a share is rounded down (0 = none may go)."""
        return self.count if self.count is not None else size * (self.percent or 0) // 100

    def __str__(self) -> str:
        """As it is written in the file."""
        return str(self.count) if self.count is not None else f"{self.percent}%"


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"text is expected here, not {_kind(value)}; quotes make a text")  # noqa: TRY004  pydantic collects ValueError only
    return value


def _kind(value: object) -> str:
    names = {bool: "a truth value", int: "a number", list: "a list", dict: "a mapping"}
    return "nothing" if value is None else names.get(type(value), "that")


def _duration(value: object) -> timedelta:
    return value if isinstance(value, timedelta) else parse_duration(_text(value))


def _secret(value: object) -> SecretRef:
    return value if isinstance(value, SecretRef) else SecretRef(_text(value))


def read_nodes(value: object) -> NodeSet:
    """A node expression, or a list of them. Raises ValueError."""
    if isinstance(value, NodeSet):
        return value
    if isinstance(value, list):
        if not value:
            raise ValueError("at least one node must be named, as gpu-[001-016]")
        return NodeSet.of(name for item in value for name in expand_unchecked(_text(item)))
    return expand_unchecked(_text(value))


def read_max_out(value: object) -> MaxOut:
    """A number of nodes or a share. Raises ValueError."""
    if isinstance(value, MaxOut):
        return value
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return MaxOut(count=value)
    found = _PERCENT.fullmatch(value) if isinstance(value, str) else None
    if not found:
        raise ValueError("a number of nodes of at least 1, or a share from 1% to 100%")
    return MaxOut(percent=int(found[1]))


def _day(value: object) -> date:
    if isinstance(value, date):
        return value
    try:
        return date.fromisoformat(_text(value))
    except ValueError:
        raise ValueError('a day is written "2026-12-31", in quotes') from None


def _folder_or_file(value: object) -> Path:
    path = value if isinstance(value, Path) else Path(_text(value))
    if not path.is_absolute() or "\0" in str(path):
        raise ValueError("an absolute path is expected, beginning with /")
    return path


def _url(value: object) -> str:
    text = _text(value)
    parts = urlsplit(text)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError("an address is expected, beginning with https:// or http://")
    if parts.username or parts.password:
        raise ValueError("a password must not stand in an address: give it as env:NAME or file:")
    return text


def _matching(pattern: re.Pattern[str], expected: str) -> BeforeValidator:
    """A validator for text that matches `pattern`."""

    def check(value: object) -> str:
        text = _text(value)
        if not pattern.fullmatch(text):
            raise ValueError(expected)
        return text

    return BeforeValidator(check)


Duration = Annotated[timedelta, BeforeValidator(_duration)]
Secret = Annotated[SecretRef, BeforeValidator(_secret)]
Nodes = Annotated[NodeSet, BeforeValidator(read_nodes)]
Out = Annotated[MaxOut, BeforeValidator(read_max_out)]
Day = Annotated[date, BeforeValidator(_day)]
AbsolutePath = Annotated[Path, BeforeValidator(_folder_or_file)]
Url = Annotated[str, BeforeValidator(_url)]
Truth = StrictBool
Count = Annotated[int, Field(strict=True, ge=1, le=1_000_000)]
Port = Annotated[int, Field(strict=True, ge=1, le=65535)]
Key = Annotated[str, _matching(_KEY, "a name: letters, digits, '_', '.', '-'; at most 61")]
SlackUser = Annotated[
    str, _matching(_SLACK_USER, "a Slack user is written TEAM/USER, for example T0AB/U0CD")
]
SlackGroup = Annotated[str, _matching(_SLACK_GROUP, "a Slack user group id begins with S")]
SlackChannel = Annotated[
    str, _matching(_SLACK_CHANNEL, "a Slack channel id begins with C or G; a #name can change")
]
Unit = Annotated[str, _matching(_UNIT, "a systemd unit name, for example slurmd")]
HostPort = Annotated[str, _matching(_HOST_PORT, "a host and a port, for example ctl-1:6817")]
