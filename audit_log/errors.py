"""What can go wrong with the store and the chain. Raised here, read by everybody above. Pure."""


class StoreError(Exception):
    """Anything that keeps the ledger from doing what was asked."""


class StoreRefused(StoreError):
    """The database must not be opened like this; the message says what to change."""


class StatementRefused(StoreError):
    """SQLite refused a statement (syntax, constraint); the database itself is well."""


class StoreFailed(StoreError):
    """A commit failed, so the request counts as not done.

    After an input/output error the commit may still turn out to be stored when the ledger is
    opened again; recovery reads the ledger and decides, never the memory of the caller.
    """

    lasting = True
    """Whether nothing more is written until the bot is started again."""


class StoreBusy(StoreFailed):
    """Another program held the database for too long; the next request may succeed."""

    lasting = False


class StoreFull(StoreFailed):
    """No space is left: only outcomes, releases and pages are served until there is."""


class StoreClosed(StoreError):
    """The ledger was closed before the request was served."""


class NotAReadQuery(StoreError):
    """SQL that writes was given where only a projector may write."""


class ChainBroken(StoreError):
    """The stored chain contradicts itself or an anchor; `nodewarden audit verify` shows where."""


class NewerLedger(StoreRefused):
    """The ledger was written by a newer release; this program cannot know what it means."""
