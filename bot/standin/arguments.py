"""The arguments of one Web API call, whether they came as JSON, a form or a query.

The methods read them through this; a missing one is Slack's `invalid_arguments`.
"""

import json
from typing import Any

from bot.standin.records import (
    Payload,
    SlackError,
)


class Arguments:
    """Typed reading of what a client sent."""

    def __init__(self, values: Payload) -> None:
        self.values = values

    def has(self, name: str) -> bool:
        """Whether the argument was given and is not null."""
        return self.values.get(name) is not None

    def text(self, name: str, default: str | None = None) -> str:
        """The argument as text; refused when it is missing and has no default."""
        value = self.values.get(name, default)
        if value is None:
            raise missing(name)
        return str(value)

    def json(self, name: str) -> Any:
        """The argument as JSON, decoded when a form carried it as text."""
        value = self.values.get(name)
        if value is None:
            raise missing(name)
        if not isinstance(value, str):
            return value
        try:
            return json.loads(value)
        except ValueError:
            raise SlackError("invalid_arguments") from None

    def flag(self, name: str) -> bool:
        """The argument as a boolean, in any of the forms that clients send."""
        return self.values.get(name) in (True, 1, "1", "true", "True")


def missing(name: str) -> SlackError:
    """Slack's answer to a missing argument."""
    return SlackError(
        "invalid_arguments",
        response_metadata={"messages": [f"[ERROR] missing required field: {name}"]},
    )
