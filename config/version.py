"""The version of this program; `pyproject.toml` reads it from here."""

VERSION = "0.1.0"
