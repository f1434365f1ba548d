"""Verbs on canaries: plan one, start it in our reservation, wait for its verdict, end it."""
