"""Sweeps: a crash, a foreign act or a pause at every point of every shipped runbook."""
