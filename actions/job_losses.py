"""Who loses work when nodes or runs go, and what happens to the queue after that (hands 3). Pure.

Beside the areas of actions, because several end jobs: `actions.job`, and whatever takes power, sets DOWN
or restarts a service. Names, comments and dependencies are user-written; only whole words in the exact
form of this page count. It must never call a job restartable that nobody called so.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from actions.cluster import Job, Snapshot
from actions.contract import JobLoss
from config.job_settings import CheckpointFormat, JobsMeant, Restartable
from config.node_names import NodeName, NodeNameError, expand_unchecked

RESTARTABLE = "nw:restartable"
"""The word in a job's comment or `--extra` with which its owner says that it goes on from a checkpoint."""
NOT_RESTARTABLE = "nw:not-restartable"
"""The word with which an owner takes a job out of the site's rules."""
_BETWEEN_WORDS = re.compile(r"[\s,;]+")
_DEPENDENCY = re.compile(r"(after[a-z]*):(\d+)(?:_(\d+|\*))?(?:\+\d+)?(?:\(([a-z]+)\))?", re.ASCII)
_PLACE = re.compile(r"\{([a-z_]+)\}", re.ASCII)
_NAME_IN_PATH = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+=@-]{0,120}", re.ASCII)
_MOST_NAMED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Restart:
    """Whether a job goes on from a checkpoint when it is started again, and who says so."""

    yes: bool
    by: str = ""
    """Who says so: `its comment`, `its --extra`, `rule 2 of the site`."""
    checkpoint: str = ""
    """Folder of its checkpoints; empty where it is not known."""
    format: CheckpointFormat | None = None
    marker: str = ""
    min_nodes: int = 1


def restart_of(job: Job, rules: Sequence[Restartable]) -> Restart:
    """What its owner or the site says of this job; nobody: it starts from zero."""
    said = {
        word: where
        for where, text in (("its --extra", job.extra), ("its comment", job.comment))
        for word in _BETWEEN_WORDS.split(text)
    }
    rule = _rule_for(job, rules)
    if NOT_RESTARTABLE in said:
        return Restart(yes=False, by=said[NOT_RESTARTABLE])
    if rule is None:
        by = said.get(RESTARTABLE, "")
        return Restart(yes=bool(by), by=by)
    number, found = rule
    return Restart(
        yes=True,
        by=said.get(RESTARTABLE, f"rule {number} of the site"),
        checkpoint=path_of(found.checkpoint, job),
        format=found.format,
        marker=found.marker or "",
        min_nodes=found.min_nodes,
    )


def _rule_for(job: Job, rules: Sequence[Restartable]) -> tuple[int, Restartable] | None:
    return next(((number, rule) for number, rule in enumerate(rules, 1) if meant(job, rule)), None)


def meant(job: Job, rule: JobsMeant) -> bool:
    """Whether all that the rule gives fits this job; one that gives nothing is for none."""
    given = [
        fits
        for wanted, fits in (
            (rule.accounts, job.account in rule.accounts),
            (rule.partitions, job.partition in rule.partitions),
            (rule.names, _fits(job.name, rule.names)),
            (rule.comments, _fits(job.comment, rule.comments)),
            (rule.work_dirs, _fits(job.work_dir, rule.work_dirs)),
        )
        if wanted
    ]
    return bool(given) and all(given)


def _fits(text: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(text, pattern) for pattern in patterns)


def path_of(template: str, job: Job) -> str:
    """The path for this job; empty where what the job says of itself cannot stand in a path."""
    leader = int(job.array_job or job.het_job or job.slurm_id)
    known = {"job": str(leader), "user": job.user, "account": job.account, "name": job.name}
    rest = template
    if template.startswith("{work_dir}"):
        if not job.work_dir.startswith("/") or ".." in job.work_dir.split("/"):
            return ""
        rest = template.removeprefix("{work_dir}")
    wanted = [known.get(place, "") for place in _PLACE.findall(rest)]
    if not all(_NAME_IN_PATH.fullmatch(word) for word in wanted):
        return ""
    filled = _PLACE.sub(lambda place: known.get(place[1], ""), rest)
    return (job.work_dir if rest is not template else "") + filled


# -- who loses work ---------------------------------------------------------------------------------


def losses(
    snapshot: Snapshot, nodes: Iterable[NodeName], rules: Sequence[Restartable]
) -> tuple[JobLoss, ...]:
    """What becomes of each job with work on these nodes when they go; all parts of a het job go."""
    gone = frozenset(nodes)
    hit = [job for job in snapshot.jobs if job.holds_nodes and gone & frozenset(job.nodes)]
    het = {job.het_job for job in hit if job.het_job is not None}
    parts = [job for job in snapshot.jobs if job.het_job in het and job.holds_nodes and het]
    found = {job.slurm_id: job for job in (*hit, *parts)}
    return tuple(loss(found[number], restart_of(found[number], rules)) for number in sorted(found))


def loss(job: Job, restart: Restart) -> JobLoss:
    """What it means for this job that its run ends now."""
    back = comes_back(job)
    return JobLoss(
        job=job.id,
        slurm_id=job.slurm_id,
        user=job.user,
        name=job.name,
        gpus=job.gpus,
        nodes=len(job.nodes),
        comes_back=back,
        lost=not (back and restart.yes),
        why=_what_becomes(job, restart),
    )


def comes_back(job: Job) -> bool:
    """Whether Slurm would start it again; only a batch job has a script to start."""
    return job.batch and job.requeue


def _what_becomes(job: Job, restart: Restart) -> str:
    if not job.batch:
        return "is interactive: it ends, and nobody starts it again"
    if not job.requeue:
        return "was submitted with --no-requeue: it ends and does not come back"
    if not restart.yes:
        said = f" ({restart.by} says so)" if restart.by else ""
        return f"starts from zero, may overwrite its output{said}"
    where = f" in {restart.checkpoint}" if restart.checkpoint else ""
    return f"goes on from its checkpoint{where} (by {restart.by})"


# -- what happens after -----------------------------------------------------------------------------


def afterwards(snapshot: Snapshot, job: Job, gone: NodeName) -> tuple[str, ...]:
    """What else follows when this job is started again without that node, in plain words."""
    return (
        *_dependants(snapshot, job),
        *_lost_age(job),
        *named_without(snapshot, gone),
        *_too_few_without(snapshot, gone),
    )


def _dependants(snapshot: Snapshot, job: Job) -> Iterator[str]:
    """Jobs that wait for it. One whose afterok failed before is never run, whatever comes (sbatch)."""
    for other in snapshot.jobs:
        for kind, state in _waits_for(other, job):
            who = f"job {other.id} ({other.user}) waits for it ({kind})"
            if state == "failed" or other.state_reason == "DependencyNeverSatisfied":
                yield f"{who} and can never run any more: what it waited for has failed before"
            elif comes_back(job):
                yield f"{who} and waits until the restarted run ends"
            elif kind in {"afterok", "aftercorr"}:
                yield f"{who} and can then never run: a dependency that failed stays failed"


def _waits_for(other: Job, job: Job) -> Iterator[tuple[str, str]]:
    for found in _DEPENDENCY.finditer(other.dependency):
        kind, number, task, state = found.groups()
        ids = {job.slurm_id, job.array_job, job.het_job}
        same_task = task in {None, "*", job.array_task} or job.array_job is None
        if int(number) in ids and same_task:
            yield kind, state or ""


def _lost_age(job: Job) -> Iterator[str]:
    if job.submitted_at is not None:
        yield (
            f"its age in the queue begins again: until now it counts from "
            f"{job.submitted_at:%Y-%m-%d %H:%M} UTC"
        )


def named_without(snapshot: Snapshot, gone: NodeName) -> tuple[str, ...]:
    """Pending jobs that ask for the node by name: excluded or out, they can never start (measured)."""
    named = [job for job in _pending(snapshot) if names_node(job.required_nodes, gone)]
    return _listed(named, f"asks for {gone} by name (-w) and cannot start before it is back")


def _too_few_without(snapshot: Snapshot, gone: NodeName) -> tuple[str, ...]:
    """Pending jobs for which the rest of their partitions is too small without that node."""
    there = {part.name: frozenset(part.nodes) for part in snapshot.partitions}
    out = {node.name for node in snapshot.nodes.values() if node.out} | {gone}
    short = []
    for job in _pending(snapshot):
        nodes: frozenset[NodeName] = frozenset().union(
            *(there.get(name, frozenset()) for name in job.partition.split(","))
        )
        if gone in nodes and len(nodes - out) == job.node_count - 1:
            short.append(job)
    return _listed(short, f"needs {gone} too: without it its partition has too few nodes")


def names_node(expression: str, node: NodeName) -> bool:
    """Whether a node list of a job holds this node; a list that cannot be read may."""
    if not expression:
        return False
    try:
        return node in expand_unchecked(expression)
    except NodeNameError:
        return True


def _pending(snapshot: Snapshot) -> Iterator[Job]:
    return (job for job in snapshot.jobs if job.state == "PENDING")


def _listed(jobs: Sequence[Job], what: str) -> tuple[str, ...]:
    lines = [f"job {job.id} ({job.user}) {what}" for job in jobs[:_MOST_NAMED]]
    if len(jobs) > _MOST_NAMED:
        lines.append(f"and {len(jobs) - _MOST_NAMED} more jobs like these")
    return tuple(lines)
