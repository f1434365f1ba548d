"""The configuration files of the testbed as text. Pure: values in, text out.

Every daemon binds to its machine's own address (`NoInAddrAny`), believes the configured hardware
instead of the real one (`config_overrides`), and tracks processes without cgroups, which a
container may lack.
"""

from collections.abc import Iterator

from bot.testbed.layout import BACKUP, Layout
from bot.testbed.options import TestbedOptions

CONTROLLER = "ctl-1"
"""Host name of the main machine."""
_RACK_SIZE = 4
_NODE_CPUS = 64
NODE_MEMORY_MIB = 512_000
"""Of every node, in slurm.conf and by its own word."""


def slurm_conf(layout: Layout, options: TestbedOptions) -> str:
    """slurm.conf for controller, nodes and clients alike."""
    folder = layout.folder
    lines = [
        f"ClusterName={options.cluster}",
        f"SlurmctldHost={CONTROLLER}({layout.controller_address})",
        f"SlurmctldPort={layout.controller_port}",
        f"SlurmdPort={layout.slurmd_port}",
        "SlurmUser=slurm",
        "SlurmdUser=root",
        "CommunicationParameters=NoInAddrAny,NoCtldInAddrAny",
        "AuthType=auth/munge",
        f"AuthInfo=socket={layout.munge_socket}",
        "CredType=cred/munge",
        f"StateSaveLocation={folder}/slurmctld",
        f"SlurmdSpoolDir={folder}/nodes/%n/spool",
        f"SlurmctldPidFile={layout.controller_folder}/slurmctld.pid",
        f"SlurmdPidFile={folder}/nodes/%n/slurmd.pid",
        f"SlurmctldLogFile={layout.logs}/slurmctld.log",
        f"SlurmdLogFile={layout.logs}/slurmd-%n.log",
        "SlurmdParameters=config_overrides",
        f"SlurmdTimeout={options.slurmd_timeout}",
        f"ReturnToService={options.return_to_service}",
        f"KillWait={options.kill_wait}",
        f"UnkillableStepTimeout={options.unkillable_step_timeout}",
        f"RebootProgram={layout.tools}/reboot-node",
        "ResumeTimeout=120",
        "ProctrackType=proctrack/linuxproc",
        "TaskPlugin=task/none",
        "JobAcctGatherType=jobacct_gather/none",
        "MpiDefault=none",
        f"TreeWidth={len(layout.nodes) + 1}",
        "SelectType=select/cons_tres",
        "SelectTypeParameters=CR_Core",
        "GresTypes=gpu",
        "AccountingStorageTRES=gres/gpu",
        "AccountingStorageType=accounting_storage/slurmdbd",
        f"AccountingStorageHost={layout.controller_address}",
        f"AccountingStoragePort={layout.accounting_port}",
        f"AccountingStoragePass={layout.munge_socket}",
    ]
    lines += _chosen_lines(layout, options)
    lines += [*_node_lines(layout, options), *_partition_lines(layout, options), ""]
    return "\n".join(lines)


def _chosen_lines(layout: Layout, options: TestbedOptions) -> Iterator[str]:
    if layout.backup:
        yield f"SlurmctldHost={BACKUP}({layout.address(BACKUP)})"
        yield f"SlurmctldTimeout={options.slurmctld_timeout}"
    if options.private_data:
        yield f"PrivateData={options.private_data}"
    if options.preemption:
        yield "PreemptType=preempt/qos"
        yield "PreemptMode=REQUEUE"
        yield "PriorityType=priority/multifactor"
        yield "PriorityWeightQOS=1000"


def _node_lines(layout: Layout, options: TestbedOptions) -> list[str]:
    return [
        f"NodeName={node} NodeHostname={node} NodeAddr={layout.address(node)}"
        f" CPUs={_NODE_CPUS} RealMemory={NODE_MEMORY_MIB} Gres=gpu:h100:{options.gpus}"
        f" Feature=h100,rack{index // _RACK_SIZE + 1} State=UNKNOWN"
        for index, node in enumerate(layout.nodes)
    ]


def _partition_lines(layout: Layout, options: TestbedOptions) -> list[str]:
    parts = partitions(layout.nodes)
    hidden = f"PartitionName=hidden Nodes={','.join(parts['spare'])} Hidden=YES State=UP"
    return [hidden] * options.hidden_partition + [
        f"PartitionName={name} Nodes={','.join(nodes)} MaxTime=7-00:00:00 State=UP"
        + (" Default=YES" if name == "train" else "")
        for name, nodes in parts.items()
    ]


def partitions(nodes: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """train 01-08, short 07-10 and spare 11-12 of twelve; the same shares of another number."""
    train, spare = len(nodes) * 2 // 3, max(1, len(nodes) // 6)
    return {
        "train": nodes[:train],
        "short": nodes[max(0, train - 2) : len(nodes) - spare],
        "spare": nodes[len(nodes) - spare :],
    }


def hosts(layout: Layout) -> str:
    """/etc/hosts of every machine of the testbed."""
    names = {CONTROLLER: layout.controller_address}
    names |= {name: layout.address(name) for name in layout.machines}
    lines = [f"{address} {name}" for name, address in names.items()]
    return "\n".join(["127.0.0.1 localhost", *lines, ""])


def gres_conf(layout: Layout, gpus: int) -> str:
    """One node's gres.conf. Plain files stand for the devices: slurmd only looks for them."""
    return f"Name=gpu Type=h100 File={layout.folder}/devices/nvidia[0-{gpus - 1}]\n"


def gpu_list(gpus: int) -> str:
    """What `nvidia-smi -L` prints on this node."""
    return "".join(
        f"GPU {index}: NVIDIA H100 80GB HBM3 (UUID: GPU-00000000-0000-4000-8000-{index:012})\n"
        for index in range(gpus)
    )


def hardware(node: str, memory_mib: int = NODE_MEMORY_MIB) -> str:
    """What `slurmd -C` prints on this node."""
    return (
        f"NodeName={node} CPUs={_NODE_CPUS} Boards=1 SocketsPerBoard={_NODE_CPUS} CoresPerSocket=1"
        f" ThreadsPerCore=1 RealMemory={memory_mib}\nUpTime=0-01:00:00\n"
    )


def slurmdbd_conf(layout: Layout, password: str) -> str:
    """slurmdbd.conf; it must belong to slurm and be readable by nobody else."""
    return "\n".join(
        [
            "AuthType=auth/munge",
            f"AuthInfo=socket={layout.munge_socket}",
            f"DbdHost={CONTROLLER}",
            f"DbdAddr={layout.controller_address}",
            f"DbdPort={layout.accounting_port}",
            "SlurmUser=slurm",
            f"LogFile={layout.logs}/slurmdbd.log",
            f"PidFile={layout.folder}/slurmdbd/slurmdbd.pid",
            "StorageType=accounting_storage/mysql",
            "StorageHost=127.0.0.1",
            f"StoragePort={layout.database_port}",
            "StorageUser=slurm",
            f"StoragePass={password}",
            "StorageLoc=slurm_acct_db",
            "CommitDelay=1",
            "CommunicationParameters=NoInAddrAny",
            "",
        ]
    )


def sshd_config(layout: Layout, node: str, options: TestbedOptions) -> str:
    """A node's sshd: the bot's key only, and our tools first in the PATH."""
    path = f"{layout.tools}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    return "\n".join(
        [
            f"ListenAddress {layout.address(node)}",
            f"Port {layout.ssh_port}",
            f"HostKey {layout.node_folder(node)}/host_key",
            "PidFile none",
            f"AuthorizedKeysFile {layout.folder}/ssh/authorized_keys",
            f"AllowUsers {options.bot_user}",
            "AuthenticationMethods publickey",
            "UsePAM no",
            "StrictModes no",
            "PrintMotd no",
            "AllowAgentForwarding no",
            "AllowTcpForwarding no",
            "X11Forwarding no",
            "MaxStartups 100",
            "UseDNS no",
            f'SetEnv PATH="{path}" SLURM_CONF="{layout.slurm_conf}" NODEWARDEN_NODE="{node}"',
            "",
        ]
    )


def ssh_client_config(layout: Layout, options: TestbedOptions) -> str:
    """The bot's ssh_config: one Host block per node."""
    blocks = [
        f"Host {node}\n  HostName {layout.address(node)}\n  Port {layout.ssh_port}\n"
        for node in layout.nodes
    ]
    common = [
        "Host *",
        f"  User {options.bot_user}",
        f"  IdentityFile {layout.identity}",
        "  IdentitiesOnly yes",
        f"  UserKnownHostsFile {layout.known_hosts}",
        "  GlobalKnownHostsFile /dev/null",
        "  StrictHostKeyChecking yes",
        "  UpdateHostKeys no",
        "  BatchMode yes",
        "  ForwardAgent no",
        "  LogLevel ERROR",
        "",
    ]
    return "".join(blocks) + "\n".join(common)


def database_sql(password: str) -> str:
    """What MariaDB runs before it opens its port; each statement on one line."""
    return (
        "CREATE DATABASE IF NOT EXISTS slurm_acct_db;\n"
        f"CREATE OR REPLACE USER 'slurm'@'127.0.0.1' IDENTIFIED BY '{password}';\n"
        "GRANT ALL ON slurm_acct_db.* TO 'slurm'@'127.0.0.1';\n"
    )
