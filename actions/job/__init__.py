"""Verbs on jobs: look at one, see whether its ground can be held, start it again, see it run.

Constructed by `actions.catalogue`. No verb here ends a job without an approved plan, and none acts on
a job whose old ranks may still write.
"""
