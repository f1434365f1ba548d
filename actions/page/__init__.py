"""Waking people: a chain of pagers with a deadline, and the action `page.send`."""
