"""The Slack door: Bolt over Socket Mode, cards as renderings of stored state."""
