"""Tests of the runbook language: reading, expressions, causes, lint, release."""
