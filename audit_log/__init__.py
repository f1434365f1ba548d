"""Accountability: who is acting, may they, and what was done, in one hash-chained ledger."""
