"""The plugs by name: what a person, a fault or another tool can do to the simulated cluster.

Called by `world` and `description`. Each is named as the field names it; none is an act of the bot.
"""

from collections.abc import Callable

from pydantic import validate_call

from actions.simulated import host_plugs, queue_plugs, slurm_plugs

_ALL: tuple[Callable[..., object], ...] = (
    host_plugs.kill_slurmd,
    host_plugs.start_slurmd,
    host_plugs.kill_service,
    host_plugs.stop_service,
    host_plugs.hang_service_start,
    host_plugs.fail_service_start,
    host_plugs.set_kill_mode,
    host_plugs.kill_host,
    host_plugs.power_on,
    host_plugs.reboot,
    host_plugs.cut_off,
    host_plugs.set_bmc,
    host_plugs.shrink_gpus,
    host_plugs.lose_gpus,
    host_plugs.late_driver,
    host_plugs.shrink_memory,
    host_plugs.fail_canary,
    host_plugs.log_kernel,
    host_plugs.stick_steps,
    host_plugs.freeze_node,
    host_plugs.stop_ranks,
    host_plugs.cut_link,
    host_plugs.restore_link,
    host_plugs.set_clock_offset,
    host_plugs.set_shell,
    host_plugs.refuse_ssh,
    host_plugs.change_host_key,
    slurm_plugs.lose_address,
    slurm_plugs.find_address,
    slurm_plugs.admin_drain,
    slurm_plugs.admin_resume,
    slurm_plugs.admin_down,
    slurm_plugs.admin_fail,
    slurm_plugs.edit_reason,
    slurm_plugs.internal_drain,
    queue_plugs.start_job,
    queue_plugs.end_job,
    queue_plugs.requeue_job,
    queue_plugs.suspend_job,
    queue_plugs.submit_job,
    queue_plugs.fill_queue,
    queue_plugs.train_job,
    queue_plugs.require_nodes,
    queue_plugs.set_priority,
    queue_plugs.hold_job,
    queue_plugs.release_job,
    slurm_plugs.remove_from_partition,
    slurm_plugs.partition_state,
    slurm_plugs.reserve,
    slurm_plugs.release_reservation,
    slurm_plugs.controller_down,
    slurm_plugs.controller_up,
    slurm_plugs.controller_restart,
    slurm_plugs.controller_failover,
    slurm_plugs.reconfigure,
    slurm_plugs.slow_controller,
    slurm_plugs.hide_jobs,
)

PLUGS = {verb.__name__: validate_call(verb) for verb in _ALL}
"""Every plug by its name, with its arguments checked."""
