"""What a back end is, what it answers, and who gives it its secret."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from actions.hands import Page
from config.secrets import SecretRef


class NotAccepted(Exception):
    """The page did not go out by this back end, and that is known."""


class MaybeAccepted(Exception):
    """No answer, or one that cannot be believed: the page may have gone out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """The back end took the page over; that somebody was woken is not known by this."""

    detail: str


class Backend(Protocol):
    """One way to wake somebody."""

    @property
    def name(self) -> str:
        """For receipts."""
        ...

    def page(self, page: Page, limit: timedelta) -> Accepted:
        """Hand the page over. Raises NotAccepted, MaybeAccepted."""
        ...


class Secrets(Protocol):
    """`config.secret_store.SecretStore`."""

    def resolve(self, reference: SecretRef) -> str:
        """The secret. Raises SecretError."""
        ...
