"""Secrets travel as references; the value exists only inside the last call that needs it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SecretRef:
    """`env:NAME` or `file:/path`; resolved by `config.secret_store` at the last call, never earlier."""

    reference: str

    def __post_init__(self) -> None:
        """Refuse anything that is not a reference, without repeating it: it may be the secret."""
        kind, _, rest = self.reference.partition(":")
        if kind not in {"env", "file"} or not rest:
            raise ValueError("a secret must be given as env:NAME or file:/path, never as its value")

    def __str__(self) -> str:
        """The reference, which is safe to show."""
        return self.reference
