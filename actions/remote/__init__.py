"""Access to nodes over ssh, through one agent process that owns the fan-out."""
