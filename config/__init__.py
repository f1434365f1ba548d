"""Shared vocabulary (names, actors, permissions, clock, secrets) and the loading of configuration.

The bottom layer: everything may import it, it imports nothing of ours.
"""
