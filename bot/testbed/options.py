"""What a testbed can be asked to be: sizes, times, names. Values only."""

from dataclasses import dataclass


class TestbedError(RuntimeError):
    """The testbed could not do what was asked; the message names the log to read."""

    __test__ = False  # pytest would take the name for a test class


@dataclass(frozen=True, slots=True, kw_only=True)
class TestbedOptions:
    """Parameters of slurm.conf that tests vary, and the OS users that take part."""

    __test__ = False

    cluster: str = "sandbox"
    slurmd_timeout: int = 300
    """Seconds until a silent node is set DOWN and its jobs end; Slurm's own default."""
    return_to_service: int = 1
    private_data: str = ""
    """For example `jobs`; empty means that everybody sees everything."""
    backup_controller: bool = False
    """A second slurmctld on a machine of its own, which takes over when the first falls silent."""
    slurmctld_timeout: int = 6
    """Seconds of that silence."""
    hidden_partition: bool = False
    """A partition `hidden` over the spare nodes, which lists show only where `--all` is asked."""
    preemption: bool = False
    """A QOS `high` of the job user that requeues jobs of the usual one."""
    kill_wait: int = 5
    unkillable_step_timeout: int = 20
    gpus: int = 8
    bot_user: str = "nodewarden"
    job_user: str = "nwtrainer"
    bot_level: str = "Admin"
    """The bot's AdminLevel in Slurm: Admin, Operator or None."""
    admin_user: str = "nwoperator"
    """A person with AdminLevel=Admin: the author of foreign drains."""
