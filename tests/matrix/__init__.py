"""Who may do what through which door, found out by asking at each door."""
