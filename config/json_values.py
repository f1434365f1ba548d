"""The plain values that cross layers and reach the ledger: no floats, because they do not round-trip."""

from collections.abc import Mapping, Sequence

from typing_extensions import TypeAliasType  # pydantic needs a named type for the recursion

Json = TypeAliasType("Json", "bool | int | str | Sequence[Json] | Mapping[str, Json] | None")
"""What a record, an output or an argument may hold; integers within 2**53 (design: the ledger)."""

JsonMap = Mapping[str, Json]
