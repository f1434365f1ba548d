"""What a runbook is, how it is planned, and the engine that runs it."""
