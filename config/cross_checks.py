"""What must fit together across the configuration.

Called by `config.load` with the merged plain values, before and whether or not each field by itself
is right, so that one reading of the file tells everything. Whatever has the wrong shape is passed
over here: the field's own check tells of it. Pure.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from config.fields import MaxOut, read_max_out, read_nodes
from config.json_values import Json
from config.node_names import NodeSet
from config.power_settings import address_of, read_address
from config.suggestions import nearest
from config.yaml_reader import Path

ROOT = frozenset({"root", "0"})


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that does not fit, and what would."""

    path: Path
    message: str


def findings(document: Json) -> Iterator[Finding]:
    """Everything in `document` that does not fit together."""
    yield from _roles_exist(document)
    yield from _owners_exist(document)
    yield from _groups_exist(document)
    yield from _one_person_per_identity(document)
    yield from _root_is_shared(document)
    yield from _grants_name_clusters(document)
    for path, cluster in _each(document, ("clusters", "*")):
        yield from _cluster_fits_its_kind(path, cluster)
        yield from _pools_fit(path, cluster)
        yield from _power_fits(path, cluster)
        yield from _restartable_fits(path, cluster)
    yield from _pages_fit(document)


def _each(value: Json, pattern: Path) -> Iterator[tuple[Path, Json]]:
    """Every (path, value) under `value` that matches `pattern`, where `*` is any key or item."""
    if not pattern:
        yield (), value
        return
    first, rest = pattern[0], pattern[1:]
    for key, inner in _children(value):
        if first in {"*", key}:
            for path, found in _each(inner, rest):
                yield (key, *path), found


def _children(value: Json) -> Iterator[tuple[str | int, Json]]:
    if isinstance(value, Mapping):
        yield from value.items()
    elif isinstance(value, list):
        yield from enumerate(value)


def _texts(document: Json, *patterns: str) -> Iterator[tuple[Path, str]]:
    """Every text that matches one of the dotted patterns."""
    for pattern in patterns:
        for path, value in _each(document, tuple(pattern.split("."))):
            if isinstance(value, str):
                yield path, value


def _names(document: Json, section: str) -> list[str]:
    return [str(path[1]) for path, _ in _each(document, (section, "*"))]


def _roles_exist(document: Json) -> Iterator[Finding]:
    known = _names(document, "roles")
    places = (
        "people.*.roles.*",
        "groups.*.roles.*",
        "schedules.*.roles.*",
        "alert_sources.*.roles.*",
    )
    for path, role in _texts(document, *places):
        if role not in known:
            yield Finding(path, f"there is no such role{nearest(role, known)}")


def _owners_exist(document: Json) -> Iterator[Finding]:
    known = _names(document, "people")
    places = ("clusters.*.rma.*.owner", "schedules.*.owner", "alert_sources.*.owner")
    for path, owner in _texts(document, *places):
        if owner not in known:
            yield Finding(path, f"nobody of that name is under people{nearest(owner, known)}")


def _groups_exist(document: Json) -> Iterator[Finding]:
    known = _names(document, "groups")
    for path, group in _texts(document, "people.*.slack_groups.*"):
        if group not in known:
            yield Finding(path, "this user group is not under groups, so it gives no role")


def _one_person_per_identity(document: Json) -> Iterator[Finding]:
    """A Slack or OS user of two persons would let one approve for the other."""
    for kind in ("slack", "os_users"):
        holders: dict[str, str] = {}
        for path, identity in _texts(document, f"people.*.{kind}.*"):
            holder = holders.setdefault(identity, str(path[1]))
            if holder != path[1]:
                yield Finding(path, f"{identity} belongs to {holder} already; a user is one person")


def _root_is_shared(document: Json) -> Iterator[Finding]:
    for path, user in _texts(document, "people.*.os_users.*"):
        person = next(value for _, value in _each(document, path[:2]))
        if user in ROOT and not (isinstance(person, Mapping) and person.get("shared") is True):
            yield Finding(path, "several people can be root: give root a person with shared: true")


def _grants_name_clusters(document: Json) -> Iterator[Finding]:
    known = _names(document, "clusters")
    for path, name in _texts(document, "roles.*.grants.*.clusters.*"):
        if name not in known:
            yield Finding(path, f"there is no such cluster{nearest(name, known)}")


def _cluster_fits_its_kind(path: Path, cluster: Json) -> Iterator[Finding]:
    if not isinstance(cluster, Mapping):
        return
    simulated = cluster.get("kind") == "simulated"
    if simulated and "simulated_socket" not in cluster:
        yield Finding(path, "kind simulated needs simulated_socket: the socket of the simulation")
    if cluster.get("kind") == "slurm" and "simulated_socket" in cluster:
        yield Finding((*path, "simulated_socket"), "only for kind simulated: remove it")
    if simulated and "slurm_conf" in cluster:
        yield Finding((*path, "slurm_conf"), "only for kind slurm: remove it")


def _pools_fit(path: Path, cluster: Json) -> Iterator[Finding]:
    """Each node belongs to one pool only, or it would be counted against two budgets."""
    partitions: dict[str, str] = {}
    nodes: dict[str, str] = {}
    for (_, name), pool in _each(cluster, ("pools", "*")):
        place = (*path, "pools", name)
        if not isinstance(pool, Mapping):
            continue
        if ("nodes" in pool) == ("partitions" in pool):
            yield Finding(place, "a pool is either partitions or nodes: give exactly one of them")
        for (_, index), partition in _each(pool, ("partitions", "*")):
            holder = partitions.setdefault(str(partition), str(name))
            if holder != name:
                message = f"{partition} is in pool {holder} already; a node counts in one pool"
                yield Finding((*place, "partitions", index), message)
        yield from _nodes_fit(place, pool, nodes)


def _nodes_fit(place: Path, pool: Mapping[str, Json], taken: dict[str, str]) -> Iterator[Finding]:
    """The same for node sets, whose size is known here."""
    named = _expanded(pool.get("nodes"))
    limit = _limit(pool.get("max_out"))
    if named and limit and limit.of(len(named)) == 0:
        message = f"{limit} of {len(named)} nodes is less than one node: none could ever go out"
        yield Finding((*place, "max_out"), message)
    name = str(place[-1])
    double = [node for node in named if taken.setdefault(node, name) != name]
    if double:
        message = (
            f"{NodeSet.of(double)} is in pool {taken[double[0]]} already; a node counts in one pool"
        )
        yield Finding((*place, "nodes"), message)


def _expanded(value: Json) -> NodeSet:
    """The nodes of a pool; none where the expression is malformed."""
    try:
        return NodeSet() if value is None else read_nodes(value)
    except ValueError:
        return NodeSet()


def _limit(value: Json) -> MaxOut | None:
    """The limit of a pool; None where it is malformed."""
    try:
        return read_max_out(value)
    except ValueError:
        return None


_FEWEST_REFERENCES = 3
_POWER_NEEDS = {
    "redfish": ("bmc", "user", "password"),
    "ipmitool": ("bmc", "user", "password"),
    "script": ("bmc", "script"),
}
_JOBS_MEANT = ("accounts", "partitions", "names", "comments", "work_dirs")
_POWER_ONLY_FOR = {
    "ca_file": {"redfish"},
    "script": {"script"},
    "user": {"redfish", "ipmitool"},
    "password": {"redfish", "ipmitool"},
    "bmc": {"redfish", "ipmitool", "script"},
}


def _power_fits(path: Path, cluster: Json) -> Iterator[Finding]:
    """Each kind has what it works with, and no BMC is that of two machines."""
    power = cluster.get("power") if isinstance(cluster, Mapping) else None
    if not isinstance(cluster, Mapping) or not isinstance(power, Mapping):
        return
    place, kind = (*path, "power"), str(power.get("kind"))
    if (kind == "simulated") != (cluster.get("kind") == "simulated"):
        message = "kind simulated is for a simulated cluster, and for no other"
        yield Finding((*place, "kind"), message)
    for field in _POWER_NEEDS.get(kind, ()):
        if field not in power:
            yield Finding(place, f"kind {kind} needs {field}")
    for field, kinds in _POWER_ONLY_FOR.items():
        if field in power and kind not in kinds:
            yield Finding((*place, field), f"only for kind {' or '.join(sorted(kinds))}: remove it")
    hosts = cluster.get("reference_hosts")
    if kind in _POWER_NEEDS and len(hosts if isinstance(hosts, list) else []) < _FEWEST_REFERENCES:
        message = (
            "power needs three reference_hosts (slurmctld and two others): without them a bot that "
            "is cut off itself would take every node for dead"
        )
        yield Finding(place, message)
    yield from _one_machine_per_bmc(place, power)


def _restartable_fits(path: Path, cluster: Json) -> Iterator[Finding]:
    """Each rule says for which jobs it is: one that fits all would promise for everybody."""
    for where, rule in _each(cluster, ("restartable", "*")):
        if not isinstance(rule, Mapping):
            continue
        place = (*path, *where)
        if not any(rule.get(field) for field in _JOBS_MEANT):
            yield Finding(place, f"name the jobs that it is for: one of {', '.join(_JOBS_MEANT)}")
        if ("marker" in rule) != (rule.get("format") == "marker"):
            yield Finding(place, "format marker and the field marker belong together")


def _one_machine_per_bmc(place: Path, power: Mapping[str, Json]) -> Iterator[Finding]:
    """The wrong machine would lose its power."""
    holders: dict[str, str] = {}
    named: set[str] = set()
    for (_, index), entry in _each(power, ("bmc", "*")):
        template = _template(entry)
        if not isinstance(entry, Mapping) or template is None:
            continue
        here = (*place, "bmc", index)
        for node in _expanded(entry.get("nodes")):
            address = address_of(template, node)
            if node in named:
                yield Finding((*here, "nodes"), f"{node} has a BMC already; a node has one")
            elif not address:
                yield Finding((*here, "address"), f"{node} has no number at its end")
            elif holders.setdefault(address, node) != node:
                message = (
                    f"{holders[address]} and {node} would share {address}; a BMC is of one node"
                )
                yield Finding((*here, "address"), message)
                break
            named.add(node)


def _template(entry: Json) -> str | None:
    """The address of an entry; None where it is malformed."""
    try:
        return read_address(entry.get("address")) if isinstance(entry, Mapping) else None
    except ValueError:
        return None


def _pages_fit(document: Json) -> Iterator[Finding]:
    """Each kind of page has what it sends with."""
    slack = isinstance(document, Mapping) and document.get("slack") is not None
    for path, page in _each(document, ("pages", "*")):
        if not isinstance(page, Mapping):
            continue
        kind = page.get("kind")
        if kind in {"alertmanager", "webhook"} and "url" not in page:
            yield Finding(path, f"kind {kind} needs url")
        if kind == "slack" and "channel" not in page:
            yield Finding(path, "kind slack needs channel")
        if kind == "slack" and not slack:
            yield Finding(path, "kind slack needs the section slack, with the tokens of the app")
