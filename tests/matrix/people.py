"""The people of the matrix, the cluster they share, and the configuration that knows them."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from actions.simulated.description import describe
from actions.simulated.world import World
from bot.standin.records import HOME_TEAM
from bot.standin.server import SlackStandIn
from config.system_clock import SystemClock

FIRST_UID = 60_001
BOSS = "boss"
"""An admin who prepares and tidies up, by the desk itself."""
STRANGER = "eve"
STARTER = "starter"
"""May run node-dropped and nothing more, so that the step's own permission is what is asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the table."""

    title: str
    person: str
    role: str = ""
    nodes: str = "idle"
    """Which nodes the commands of this row name: idle, own or foreign ones."""

    @property
    def twin(self) -> str:
        """The same role together with STARTER."""
        return self.person if self.person == STRANGER else f"{self.person}-s"


ROWS = (
    Row(title="no role", person="nora"),
    Row(title="viewer", person="vic", role="viewer"),
    Row(title="researcher, others' job", person="rita", role="researcher", nodes="foreign"),
    Row(title="researcher, own job", person="rita", role="researcher", nodes="own"),
    Row(title="oncall", person="otto", role="oncall"),
    Row(title="admin", person="adm", role="admin"),
    Row(title="auditor", person="audrey", role="auditor"),
    Row(title="stranger", person=STRANGER),
)
PEOPLE = {row.person: row for row in ROWS if row.person != STRANGER}
UIDS = {
    name: FIRST_UID + place
    for place, name in enumerate([*PEOPLE, *(row.twin for row in PEOPLE.values()), STRANGER])
}


class Nodes:
    """Nodes that no cell has used yet: what one cell does must not be seen by the next."""

    def __init__(self, part: int = 0, parts: int = 1) -> None:
        """The share of one door of several."""
        self._left = {
            kind: iter(list(names())[part::parts])
            for kind, names in {"idle": _idle, "own": _own, "foreign": _foreign}.items()
        }

    def next(self, kind: str, person: str) -> str:
        """One more of this kind."""
        if kind == "own" and person.endswith("-s"):
            return next(self._left["own"]).replace("gpu-", "gpu-s")
        return next(self._left[kind])


def _idle() -> Iterator[str]:
    yield from (f"gpu-{number:03d}" for number in (*range(1, 361), *range(501, 641)))


def _own() -> Iterator[str]:
    yield from (f"gpu-{number:03d}" for number in range(381, 441))


def _foreign() -> Iterator[str]:
    yield from (f"gpu-{number:03d}" for number in (*range(441, 481), *range(361, 381)))


def cluster() -> World:
    """Idle nodes, nodes with a job of the researcher's (and of their twin's), nodes with another's."""
    jobs = [{"name": "own", "user": "rita", "nodes": name, "partition": "train"} for name in _own()]
    jobs += [
        {"name": "own", "user": "rita-s", "nodes": name.replace("-", "-s"), "partition": "train"}
        for name in _own()
    ]
    jobs += [
        {"name": "other", "user": "chen", "nodes": name, "partition": "train"}
        for name in _foreign()
    ]
    return describe(
        {
            "cluster": "sim",
            "starts_at": SystemClock().now().wall,
            "nodes": [
                {"names": "gpu-[001-640]", "racks": 80},
                {"names": "gpu-s[381-440]", "racks": 6, "first_rack": 201},
            ],
            "partitions": [
                {"name": "train", "nodes": "gpu-[001-484,501-640],gpu-s[381-440]", "default": True},
                {"name": "bay", "nodes": "gpu-[483-490]"},
            ],
            "jobs": [{"id": str(number), **job} for number, job in enumerate(jobs, 1)],
        }
    )


def configuration(folder: Path, data: Path, slack: SlackStandIn | None = None) -> str:
    """Everybody: OS users by number, as the kernel names them; the researchers by name as well."""
    lines = [_person(row.person, row.role, slack) for row in PEOPLE.values()]
    lines += [_person(row.twin, f"{row.role}, {STARTER}", slack) for row in PEOPLE.values()]
    return f"""
bot: {{data_folder: {data}, socket: {folder}/door.sock}}
{_slack(slack) if slack else ""}
clusters:
  sim:
    kind: simulated
    simulated_socket: {folder}/sim.sock
    pools: {{train: {{partitions: [train], max_out: 90%}}}}
    protected: sim-ctl
{_channel(slack) if slack else ""}
roles:
  {STARTER}:
    help: Runs node-dropped; whether a service may be started is another matter.
    grants: [{{permissions: [node.read, node.repair]}}]
people:
  root: {{os_users: [root], roles: [admin], shared: true}}
  {BOSS}: {{os_users: [{BOSS}], roles: [admin]}}
{chr(10).join(lines)}
pages:
  - {{kind: alertmanager, url: "http://127.0.0.1:9"}}
policy:
  limits: {{correlated_nodes: 100}}
"""


def _person(name: str, roles: str, slack: SlackStandIn | None) -> str:
    users = [f'"{UIDS[name]}"', *([name] if name.startswith("rita") else [])]
    known = f"slack: [{HOME_TEAM}/{slack.person(name).id}], " if slack else ""
    return f"  {name}: {{{known}os_users: [{', '.join(users)}], roles: [{roles.strip(', ')}]}}"


def _channel(slack: SlackStandIn) -> str:
    return f"    channel: {slack.channel('#ops').id}"


def _slack(slack: SlackStandIn) -> str:
    return f"""
slack:
  bot_token: env:BOT
  app_token: env:APP
  team: {HOME_TEAM}
  api_url: {slack.base_url}
"""
