"""A cluster that can be tried without one: Slurm's rules, hosts, services, and plugs to pull."""
