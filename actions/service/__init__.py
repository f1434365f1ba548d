"""Verbs on services of nodes: start and restart."""
