"""End to end: the installed program on a real Slurm, with nothing of ours pretended."""
