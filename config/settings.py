"""Every setting there is, with its meaning, unit and default.

`config.load` makes one `Settings` from files; `bot.wiring` hands its parts to whoever needs them.
`docs/reference/settings.md` is generated from this page. No meaning is decided here: what must fit
together across fields is in `config.cross_checks`.
"""

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated

from pydantic import Field

from config.canary_settings import Canary
from config.durations import parse_duration
from config.fields import (
    AbsolutePath,
    Count,
    Day,
    Duration,
    HostPort,
    Key,
    Nodes,
    Out,
    Port,
    Secret,
    Section,
    SlackChannel,
    SlackGroup,
    SlackUser,
    Truth,
    Unit,
    Url,
)
from config.ids import ClusterName
from config.job_settings import Restartable
from config.node_access import NodeAccess
from config.permissions import Permission, Role
from config.policy import Policy
from config.power_settings import Power
from config.role_entries import RoleEntry
from config.spare_settings import Spares


class Bot(Section):
    """The program itself."""

    data_folder: AbsolutePath = Path("/var/lib/nodewarden")
    """Folder of the database, the lock, the halt file and the artefacts, on a local file system,
    owned by the bot's user with mode 0700. Default: /var/lib/nodewarden."""
    socket: AbsolutePath | None = None
    """Unix socket of the command line. Default: /run/nodewarden/nodewarden.sock where `data_folder` is
    the default one and that folder is, or can be made, the bot's alone; else `nodewarden.sock` in the
    data folder, which other OS users cannot enter."""
    runbooks: tuple[AbsolutePath, ...] = ()
    """Folders of the site's own `library/` and `causes/`, best in a git repository of its own.
    Default: none, the shipped ones alone."""
    command: Annotated[str, Field(pattern=r"^/[a-z0-9_-]{1,31}$")] = "/ops"
    """Slash command as the Slack app defines it. Default: /ops."""


class Slack(Section):
    """The Slack app; without this section the Slack door stays closed."""

    bot_token: Secret
    """Bot token (xoxb-…), as `env:NAME` or `file:/path`."""
    app_token: Secret
    """App-level token for Socket Mode (xapp-…), as `env:NAME` or `file:/path`."""
    team: Annotated[str, Field(pattern=r"^T[A-Z0-9]{1,20}$")]
    """Id of the workspace; events of another one are refused."""
    api_url: Url = "https://slack.com/api/"
    """Address of the Web API; only a stand-in has another. Default: https://slack.com/api/."""


class ClusterKind(StrEnum):
    """What manages a cluster."""

    SLURM = "slurm"
    """A Slurm cluster, reached through its command line tools."""
    SIMULATED = "simulated"
    """The simulated cluster of the sandbox."""


class SlurmBackend(StrEnum):
    """What takes snapshots of a Slurm cluster; single nodes are read, and all is written, by its tools."""

    CLI = "cli"
    """The tools: any release."""
    PYSLURM = "pyslurm"
    """The Python library of that name, faster, only beside the release it was built for."""
    AUTO = "auto"
    """pyslurm where it is installed and fits the controller, else the tools."""


class Pool(Section):
    """Nodes that share one budget of unavailable nodes: partitions, or a node set."""

    partitions: tuple[Key, ...] = ()
    """Partitions whose nodes form the pool. Default: none, then `nodes` is needed."""
    nodes: Nodes | None = None
    """Nodes that form the pool, as `gpu-[001-016]`. Default: none, then `partitions` is needed."""
    max_out: Out
    """How many of its nodes may be out at once, whoever took them out: a number, or a share such as
    `10%`, rounded down. What rounds to 0 is refused: such a pool could never be acted on."""
    boot_time: Duration | None = None
    """How long a boot of its nodes takes, as measured, until slurmd has registered: where Slurm's
    ResumeTimeout is shorter, no node of it is restarted. Default: none, and that is not checked."""


class Rma(Section):
    """Nodes that are away for repair and therefore no part of their pool."""

    nodes: Nodes
    """The nodes."""
    owner: Key
    """The person who answers for their return."""
    until: Day
    """Last day of this exception, as "2026-12-31"; afterwards they count as out again."""


class OtherActor(Section):
    """Another program or team that drains nodes on this cluster."""

    name: Key
    """Its name, shown on cards."""
    reason_prefixes: Annotated[tuple[str, ...], Field(min_length=1)]
    """Beginnings of the Reason texts that it writes."""


class Cluster(Section):
    """One cluster: how it is reached, what may be touched."""

    kind: ClusterKind
    """slurm or simulated."""
    slurm_conf: AbsolutePath | None = None
    """slurm.conf that the tools use (SLURM_CONF). Default for kind slurm: /etc/slurm/slurm.conf."""
    slurm_binaries: AbsolutePath = Path("/usr/bin")
    """Folder of scontrol, squeue, sinfo and sacct. Default: /usr/bin."""
    backend: SlurmBackend = SlurmBackend.CLI
    """What takes snapshots of a cluster of kind slurm: cli, pyslurm or auto. Default: cli."""
    simulated_socket: AbsolutePath | None = None
    """Unix socket of the simulated cluster; needed for kind simulated. Default: none."""
    ssh_config: AbsolutePath | None = None
    """ssh_config(5) file with user, key, proxy and known hosts for the nodes; without it no node is
    reached over the network. Default: none."""
    node_access: NodeAccess = NodeAccess.SUDO
    """How what needs root is done on its nodes: sudo, forced or plain. Default: sudo."""
    units: tuple[Unit, ...] = ("slurmd", "munge")
    """systemd units that may be started or restarted, no others. Default: slurmd, munge."""
    pools: Annotated[Mapping[Key, Pool], Field(min_length=1)]
    """Pools by name; a node must belong to one before it can be taken out."""
    rma: tuple[Rma, ...] = ()
    """Nodes away for repair, by name, with owner and last day. Default: none."""
    protected: Nodes
    """Hosts that no runbook acts on: controllers, slurmdbd, login, storage, BMC network, the bot's
    own host. An empty list is refused."""
    reference_hosts: tuple[HostPort, ...] = ()
    """Hosts (host:port) that must answer before a silent node means anything: if none of them does,
    the bot itself is cut off. Name slurmctld and two others. Default: none."""
    known_ports: Annotated[tuple[Port, ...], Field(min_length=1)] = (22, 6818)
    """TCP ports on which its nodes answer, sshd and slurmd at least: a node counts as dead only where none
    of them answers. Default: 22, 6818."""
    power: Power | None = None
    """The way to the power of its machines. Default: none, and what needs power stops at a person."""
    canary: Canary | None = None
    """What tries a node before it is given back. Default: none, and the gate alone decides."""
    spares: Spares | None = None
    """Nodes that stand in for lost ones. Default: none, and only idle nodes of its partitions do."""
    other_actors: tuple[OtherActor, ...] = ()
    """Health checks, vendor agents and teams that drain nodes too. Default: none."""
    restartable: tuple[Restartable, ...] = ()
    """Jobs that go on from a checkpoint when they are started again; the first rule that fits counts.
    Default: none, then only those whose comment or `--extra` holds the word nw:restartable."""
    channel: SlackChannel | None = None
    """Slack channel of its cards. Default: none, cards go where the command was typed."""


class Person(Section):
    """A human (or an account that several use) and how the doors know them."""

    slack: tuple[SlackUser, ...] = ()
    """Slack users, as TEAM/USER. Default: none."""
    slack_groups: tuple[SlackGroup, ...] = ()
    """Slack user groups to which the person belongs even when Slack cannot be asked. Default: none."""
    os_users: tuple[Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$")], ...] = ()
    """OS users of the command line on the bot's host, by name or by number. Default: none."""
    roles: tuple[Key, ...] = ()
    """Roles held directly, beside those of the groups. Default: none."""
    shared: Truth = False
    """Several people can use it: it may neither approve nor break the glass. `root` must be shared.
    Default: false."""


class Group(Section):
    """A Slack user group."""

    roles: tuple[Key, ...]
    """Roles that each member holds."""


class MachineActor(Section):
    """A schedule or an alert source that asks for runs."""

    owner: Key
    """The person who answers for it."""
    roles: tuple[Key, ...]
    """Its roles; it is checked like anybody else."""


class PageKind(StrEnum):
    """A way to wake somebody."""

    ALERTMANAGER = "alertmanager"
    """An Alertmanager, through its API v2."""
    WEBHOOK = "webhook"
    """Any receiver of the Alertmanager's webhook format."""
    SLACK = "slack"
    """A message with a mention: the last resort, an edit rings no phone."""


class PageBackend(Section):
    """One link of the chain of pages."""

    kind: PageKind
    """alertmanager, webhook or slack."""
    url: Url | None = None
    """Address of the Alertmanager (without /api/v2) or of the webhook, needed for these. Default: none."""
    token: Secret | None = None
    """Bearer token, as `env:NAME` or `file:/path`. Default: none is sent."""
    channel: SlackChannel | None = None
    """Channel of the mention, needed for kind slack. Default: none."""
    mention: SlackGroup | None = None
    """User group that is mentioned, for kind slack. Default: the channel (`<!channel>`)."""


class Anchors(Section):
    """Copies of the audit log's head outside the log."""

    files: tuple[AbsolutePath, ...] = ()
    """Append-only files, best on another host's file system. Default: none, and doctor says so."""
    commands: tuple[Annotated[tuple[str, ...], Field(min_length=1)], ...] = ()
    """Programs, each as a list of its name and arguments, that get an anchor as one line on standard
    input and carry it off this host; exit code 0 says that it is kept there. Secrets stay in files of
    their own. Default: none."""
    interval: Duration = parse_duration("60s")
    """An anchor goes out at least so often. Default: 60s."""
    records: Count = 1000
    """And after so many records. Default: 1000."""


class Settings(Section):
    """The whole configuration."""

    bot: Bot = Bot()
    """The program itself."""
    slack: Slack | None = None
    """The Slack app. Default: none, the Slack door stays closed."""
    clusters: Annotated[Mapping[Key, Cluster], Field(min_length=1)]
    """Clusters by name; for kind slurm the name must be Slurm's ClusterName."""
    roles: Mapping[Key, RoleEntry]
    """Roles by name. Default: the shipped viewer, researcher, oncall, admin and auditor; a role
    given here is added, or replaces the shipped one of the same name."""
    people: Annotated[Mapping[Key, Person], Field(min_length=1)]
    """Persons by name."""
    groups: Mapping[SlackGroup, Group] = {}
    """Slack user groups by id. Default: none."""
    schedules: Mapping[Key, MachineActor] = {}
    """Schedules that may ask for runs. Default: none."""
    alert_sources: Mapping[Key, MachineActor] = {}
    """Alert sources that may ask for runs. Default: none."""
    policy: Policy = Policy()
    """Limits, approvals and autonomy; a plan is bound to them by their digest."""
    pages: Annotated[tuple[PageBackend, ...], Field(min_length=1)]
    """Ways to wake the people on call, tried in this order until one accepts."""
    anchors: Anchors = Anchors()
    """Where the audit log's head is kept outside the log."""

    def cluster(self, name: ClusterName) -> Cluster:
        """The cluster of that name. Raises KeyError."""
        return self.clusters[name]

    def role(self, name: str) -> Role:
        """The role of that name, in the words of decisions. Raises KeyError."""
        return self.roles[name].role(name)

    def all_roles(self) -> Mapping[str, Role]:
        """Every role by name."""
        return {name: entry.role(name) for name, entry in self.roles.items()}

    def enough(self, permission: Permission) -> tuple[str, ...]:
        """Names of the roles that allow `permission` somewhere."""
        return tuple(
            name
            for name, role in self.all_roles().items()
            if any(permission in grant.permissions for grant in role.grants)
        )
