"""The numbers of the README, measured: `python -m tests.bench`."""
