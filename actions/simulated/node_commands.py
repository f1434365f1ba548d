"""What the shell of a simulated node answers. Called by `world`; a small fixed set, read-only."""

from actions.remote_values import CommandResult
from actions.simulated import host_rules
from actions.simulated.machines import Host
from actions.simulated.state import State

NOT_FOUND = 127


def answer(state: State, host: Host, command: tuple[str, ...]) -> CommandResult:
    """Exit code and output of one command on one reachable node."""
    match command:
        case ("true",):
            return CommandResult(exit_code=0)
        case ("hostname",):
            return CommandResult(exit_code=0, output=f"{host.name}\n")
        case ("cat", "/proc/sys/kernel/random/boot_id"):
            return CommandResult(exit_code=0, output=f"{host_rules.boot_id(state, host)}\n")
        case ("nvidia-smi", "-L"):
            lines = [f"GPU {index}: NVIDIA H100 80GB HBM3" for index in range(host.gpus_present)]
            return CommandResult(exit_code=0, output="\n".join(lines) + "\n")
        case ("slurmd", "-C"):
            line = f"NodeName={host.name} CPUs={host.cpus} RealMemory={host.memory_present}"
            return CommandResult(exit_code=0, output=f"{line}\n")
        case ("uptime", "-s"):
            return CommandResult(exit_code=0, output=f"{host.boot_time:%Y-%m-%d %H:%M:%S}\n")
        case ("systemctl", "is-active", unit) if unit in host.units:
            word = host.units[unit].state.value
            return CommandResult(exit_code=0 if word == "active" else 3, output=f"{word}\n")
        case _:
            shown = command[0] if command else ""
            return CommandResult(exit_code=NOT_FOUND, errors=f"{shown!a}: command not found\n")
