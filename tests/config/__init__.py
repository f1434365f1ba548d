"""Tests of the bottom layer: vocabulary, the strict YAML reader, settings and secrets."""
