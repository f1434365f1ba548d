"""Slurm through its command-line tools; `cli.SlurmCli` is the door, constructed by the catalogue."""
