"""Bad input and faults, through the doors that people use."""
