"""The table of mutants fits the code as it is: `make mutants` breaks what it says it breaks."""

import ast

import pytest

from tests.mutants.__main__ import ALL
from tests.mutants.mutant import ROOT, Mutant


@pytest.mark.parametrize("mutant", ALL, ids=lambda mutant: mutant.promise)
def test_each_mutant_changes_one_place_that_exists(mutant: Mutant) -> None:
    assert mutant.times() == 1, f"{mutant.file}: {mutant.old!r}"
    assert mutant.new != mutant.old
    if mutant.file.endswith(".py"):
        ast.parse(mutant.broken())


def test_each_mutant_names_a_test_that_exists() -> None:
    assert [one.test for one in ALL if not (ROOT / one.test.partition("::")[0]).exists()] == []


def test_no_promise_is_broken_twice_under_one_name() -> None:
    assert len({one.promise for one in ALL}) == len(ALL) >= 30
