"""The promises, each broken on purpose in one place: `python -m tests.mutants` says what notices."""
