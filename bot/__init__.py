"""The edge: turns words, clicks, alerts and hours into requests, and states into cards."""
