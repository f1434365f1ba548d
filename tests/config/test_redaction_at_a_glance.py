"""The ledger looks at each record once; only what may hold a secret is searched in full."""

import json

import pytest

from config.redaction import MASK, Redactor


def test_the_engines_own_records_are_clean_at_a_glance() -> None:
    record = {
        "key": "drain@gpu-001",
        "attempt": 1,
        "arguments": {"node": "gpu-001"},
        "mark": "drain",
    }
    assert Redactor(["a-secret-of-some-length"]).is_clean(json.dumps(record))


@pytest.mark.parametrize(
    "name",
    [
        "api_key",
        "API-KEY",
        "apikey",
        "access_key",
        "Access-Key",
        "accessKey",
        "private_key",
        "PrivateKey",
    ],
)
def test_every_key_that_names_a_secret_key_is_searched_in_full(name: str) -> None:
    redactor = Redactor()
    assert redactor.values({name: "v4lue-v4lue"}) == {name: MASK}
    assert not redactor.is_clean(json.dumps({name: "v4lue-v4lue"}))
