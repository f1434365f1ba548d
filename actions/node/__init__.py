"""Verbs on nodes: observe, drain, return, wait for a state, save evidence."""
