"""What was sent to the bot and whether it was acknowledged in time.

The interactions make deliveries, Socket Mode carries them, tests count them. Used under the
world's lock; times are the world's monotonic seconds.
"""

from dataclasses import dataclass, field
from enum import StrEnum

from bot.standin.records import Payload

ACK_SECONDS = 3.0
"""How long Slack waits before it tells the person that the app did not respond."""

RETRY_AFTER = (0.0, 60.0, 300.0)
"""Slack's waits before it sends an unacknowledged event again."""


class Kind(StrEnum):
    """The envelope types that Slack sends."""

    COMMAND = "slash_commands"
    """A slash command."""
    INTERACTIVE = "interactive"
    """A click, a submitted or closed modal, a request for options."""
    EVENT = "events_api"
    """An event; the only kind that Slack sends again."""


@dataclass(slots=True, kw_only=True)
class Interaction:
    """One thing that a person did, and what came of it."""

    id: str
    user: str
    channel: str | None
    began: str
    """Message time when it happened: what the person is shown later may be an answer."""
    trigger_id: str = ""
    ack: Payload | None = None
    acked_after: float | None = None
    error: str | None = None
    """What the person sees instead of an answer, in Slack's words."""

    @property
    def settled(self) -> bool:
        """Whether the bot has acknowledged, or Slack has given up."""
        return self.ack is not None or self.error is not None


@dataclass(slots=True, kw_only=True)
class Delivery:
    """One envelope."""

    envelope_id: str
    kind: Kind
    payload: Payload
    interaction: Interaction
    accepts_payload: bool = False
    attempt: int = 0
    copies: int = 1
    made: float = 0.0
    sent_over: list[int] = field(default_factory=list)
    acks: int = 0
    timed_out: bool = False

    def envelope(self) -> Payload:
        """The frame that the bot receives."""
        frame: Payload = {
            "envelope_id": self.envelope_id,
            "type": self.kind.value,
            "accepts_response_payload": self.accepts_payload,
            "payload": self.payload,
        }
        if self.kind is Kind.EVENT:
            reason = "timeout" if self.attempt else ""
            frame |= {"retry_attempt": self.attempt, "retry_reason": reason}
        return frame
