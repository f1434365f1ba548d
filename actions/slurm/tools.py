"""Asks Slurm's tools and has their answers read: the same code in the bot and in the snapshot child.

Environment: empty plus PATH, SLURM_CONF, TZ=UTC and LC_ALL=C, because SLURM_TIME_FORMAT, TZ,
SQUEUE_* and SLURM_CLUSTERS change or redirect the tools (measured, hands 1). SLURM_CONF names the
cluster; `--clusters` would need slurmdbd, which may be down in the night in which this is needed.
Nothing here changes the cluster.
"""

import json
import re
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Protocol, TypeVar

from actions.cluster import Job, Node, Partition, Reservation
from actions.contract import UnknownNode, Unreadable
from actions.shell import Command, CommandFinished
from actions.slurm.fields import JsonObject, UnknownForm, part_of
from actions.slurm.job_reading import extra_of, picked
from actions.slurm.jobs import ROW_FIELDS, jobs_from_json, jobs_from_rows
from actions.slurm.load import overload
from actions.slurm.nodes import nodes_from_json, nodes_from_text
from actions.slurm.places import (
    ControllerFacts,
    controller_from_text,
    partitions_from_json,
    partitions_from_text,
    reservations_from_json,
    reservations_from_text,
)
from actions.slurm.records import rows
from config.ids import ClusterName, JobId
from config.node_names import NodeName

SMALL = 1 << 22
LARGE = 1 << 26
"""For the snapshot child."""
JOBS_IN_JSON = 1 << 24
"""JSON has 6 to 10 KB for each job: a list that does not fit is asked for in rows from then on, which
say the same in a twentieth of the bytes and of the time."""
_SHOWN = 300
_BAD_ESCAPE = re.compile(r"\\(x[0-9a-f]{2}|.)", re.DOTALL)
_SCONTROL = ("scontrol", "--all", "--local")
_SQUEUE = ("squeue", "--all", "--local", "--states=all")


_NO_JSON = re.compile(r"unrecognized option|invalid option|json|serializer|data_parser", re.I)
_KNOWS_EXTRA = re.compile(r"\b(?:23\.(?:0[2-9]|1)|2[4-9]\.|[3-9]\d\.)")
"""Releases with `--extra`, which came with 23.02."""
_SAYS_NO = re.compile(r"\b(?:26\.(?:0[5-9]|1)|2[7-9]\.|[3-9]\d\.)")
_Answer = TypeVar("_Answer")


class Runs(Protocol):
    """What is needed of `actions.shell.Runner`."""

    def run(self, command: Command) -> CommandFinished:
        """Run to the end or the time limit."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmSettings:
    """Where the tools and the cluster are, and how long an answer may take."""

    cluster: ClusterName
    slurm_conf: str = "/etc/slurm/slurm.conf"
    path: str = "/usr/bin:/bin:/usr/local/bin"
    own_user: str = ""
    """The OS user of the bot: only another user's job proves that it sees jobs of others."""
    backend: str = "cli"
    """What takes snapshots: cli, pyslurm, or auto."""
    read_limit: timedelta = timedelta(seconds=20)
    write_limit: timedelta = timedelta(seconds=30)

    @property
    def environment(self) -> dict[str, str]:
        """The whole environment of the tools."""
        return {"PATH": self.path, "SLURM_CONF": self.slurm_conf, "TZ": "UTC", "LC_ALL": "C"}


class Tools:
    """Questions to the controller, each answered in values or with Unreadable."""

    def __init__(
        self,
        settings: SlurmSettings,
        runner: Runs,
        without_json: Sequence[str] = (),
        cap: int = SMALL,
    ) -> None:
        """`without_json`: kinds of questions for which the tools are known to have no JSON."""
        self._settings = settings
        self._runner = runner
        self._cap = cap
        self.without_json = set(without_json)
        self.asked = 0

    def controller(self) -> ControllerFacts:
        """What the controller says of itself; checked to be the configured cluster."""
        facts = _once(
            "the configuration", controller_from_text, self._ask((*_SCONTROL, "show", "config"))
        )
        self._same_cluster(facts.controller.cluster)
        return facts

    def overload(self) -> str:
        """What the controller has too much of, by `sdiag`; empty where it does not tell."""
        try:
            return overload(self._ask(("sdiag",), SMALL))
        except Unreadable:
            return ""

    def client_version(self) -> str:
        """What the tools say of themselves; no question to the controller."""
        return self._ask(("scontrol", "--version")).strip()

    def nodes(self) -> dict[NodeName, Node]:
        """All nodes."""
        return self._either(
            "nodes",
            lambda: nodes_from_json(self._json("nodes", (*_SCONTROL, "show", "nodes", "--json"))),
            lambda: nodes_from_text(self._ask((*_SCONTROL, "--details", "show", "nodes"))),
        )

    def node(self, name: NodeName) -> Node:
        """One node. Raises UnknownNode."""
        show = ("show", "node", name)
        try:
            found = self._either(
                "nodes",
                lambda: nodes_from_json(self._json("nodes", (*_SCONTROL, *show, "--json"))),
                lambda: nodes_from_text(self._ask((*_SCONTROL, "--details", *show))),
            )
        except _NoAnswer as error:
            if "not found" not in error.stderr:
                raise
            found = {}
        if set(found) != {name}:
            raise UnknownNode(f"the controller knows no node {name}")
        return found[name]

    def jobs(self) -> tuple[Job, ...]:
        """All jobs of every state."""
        return self._either("jobs", self._jobs_in_json, lambda: self._jobs_in_rows(()))

    def jobs_on(self, node: NodeName) -> tuple[Job, ...]:
        """Jobs that name this node; in rows, because 22.05 ignores every filter with JSON."""
        return self._jobs_in_rows((f"--nodelist={node}",))

    def job(self, job: JobId) -> Job:
        """One job, array task or part of a het job. Raises UnknownJob."""
        try:
            return self._either(
                "job",
                lambda: picked(job, self._jobs_of_json((*_SCONTROL, "show", "job", job, "--json"))),
                lambda: self._job_in_rows(job),
            )
        except _NoAnswer as error:
            if "Invalid job id" not in error.stderr:
                raise
        return picked(job, ())

    def _job_in_rows(self, job: JobId) -> Job:
        """In rows; `--extra`, for which squeue has no field, where a release has it at all."""
        found = picked(job, self._jobs_in_rows((f"--jobs={job}",)))
        if not _KNOWS_EXTRA.search(self.client_version()):
            return found
        shown = self._ask((*_SCONTROL, "show", "job", job))
        return replace(found, extra=extra_of(shown, found.slurm_id))

    def partitions(self) -> tuple[Partition, ...]:
        """All partitions, hidden ones too."""
        show = ("show", "partitions")
        return self._either(
            "partitions",
            lambda: partitions_from_json(self._json("partitions", (*_SCONTROL, *show, "--json"))),
            lambda: partitions_from_text(self._ask((*_SCONTROL, *show))),
        )

    def reservations(self, now: datetime) -> tuple[Reservation, ...]:
        """All reservations."""
        show = ("show", "reservations")
        return self._either(
            "reservations",
            lambda: reservations_from_json(
                self._json("reservations", (*_SCONTROL, *show, "--json")), now
            ),
            lambda: reservations_from_text(self._ask((*_SCONTROL, *show))),
        )

    def _jobs_in_json(self) -> tuple[Job, ...]:
        return self._jobs_of_json((*_SQUEUE, "--json"), JOBS_IN_JSON)

    def _jobs_of_json(self, argv: tuple[str, ...], cap: int = LARGE) -> tuple[Job, ...]:
        records = self._json("jobs", argv, cap)
        for record in records:
            self._same_cluster(record.get("cluster") or self._settings.cluster)
        return jobs_from_json(records)

    def _jobs_in_rows(self, which: tuple[str, ...]) -> tuple[Job, ...]:
        """Jobs in rows; two questions, because --Format has no field for excluded nodes."""
        # The letter first: squeue would take a leading digit for a column width.
        mark = f"|x{secrets.token_hex(8)}|"
        ask = (*_SQUEUE, "--noheader", *which)
        form = ",".join(f"{field}:{mark}" for field in ROW_FIELDS)
        facts = self._ask((*ask, f"--Format={form}"))
        excluded = self._ask((*ask, f"--format=%A{mark}%x{mark}"))
        return _once("jobs", lambda text: self._job_rows(text, excluded, mark), facts)

    def _job_rows(self, facts: str, excluded: str, mark: str) -> tuple[Job, ...]:
        without = {
            row["JobID"]: row["ExcNodes"] for row in rows(excluded, ("JobID", "ExcNodes"), mark)
        }
        found = rows(facts, ROW_FIELDS, mark)
        for row in found:
            self._same_cluster(row["Cluster"])
            row["ExcNodes"] = without.get(row["JobID"], "")
        if any(row["OverSubscribe"] == "NO" for row in found) and self._no_is_the_rule():
            found = [{**row, "OverSubscribe": ""} for row in found]
        return jobs_from_rows(found)

    def _no_is_the_rule(self) -> bool:
        """Since 26.05 every job without `--oversubscribe` says NO, and squeue has no word for alone."""
        return _SAYS_NO.search(self.client_version()) is not None

    def _same_cluster(self, told: object) -> None:
        if told not in {self._settings.cluster, "N/A", "(null)", ""}:
            raise Unreadable(
                f"the answer is of cluster {told}, not {self._settings.cluster}: "
                f"check SLURM_CONF={self._settings.slurm_conf}"
            )

    def _either(
        self, kind: str, from_json: Callable[[], _Answer], from_text: Callable[[], _Answer]
    ) -> _Answer:
        """JSON where these tools have it, else text; what is missing is remembered."""
        try:
            if kind not in self.without_json:
                try:
                    return from_json()
                except _NoJson:
                    self.without_json.add(kind)
            return from_text()
        except UnknownForm as error:
            raise Unreadable(f"the answer about {kind} cannot be read: {error}") from error

    def _json(self, kind: str, argv: tuple[str, ...], cap: int = LARGE) -> list[JsonObject]:
        """The records of a JSON answer."""
        try:
            answer = _parsed(self._ask(argv, cap))
        except _NoAnswer as error:
            if error.too_long or _NO_JSON.search(error.stderr):
                raise _NoJson from error
            raise
        self._same_cluster(_cluster_of(answer))
        records = answer.get(kind)
        if not isinstance(records, list) or not all(isinstance(one, dict) for one in records):
            raise UnknownForm(f"no list of {kind} in it")
        return records

    def _ask(self, argv: tuple[str, ...], cap: int = LARGE) -> str:
        """One question; the whole answer, or Unreadable."""
        self.asked += 1
        done = self._runner.run(
            Command(
                argv=argv,
                time_limit=self._settings.read_limit,
                environment=self._settings.environment,
                output_cap=min(cap, self._cap),
            )
        )
        # squeue prints nothing for a field it does not know, and ends with code 0.
        if done.ok and not done.truncated and "Invalid job format" not in done.stderr:
            return done.stdout
        raise _NoAnswer(argv, done)


class _NoJson(Exception):
    """These tools have no JSON for this kind of question, or one that is too long."""


class _NoAnswer(Unreadable):
    """A question without a whole answer."""

    def __init__(self, argv: tuple[str, ...], done: CommandFinished) -> None:
        self.stderr = done.stderr or done.stdout[:_SHOWN]
        self.too_long = done.truncated
        why = done.lost or ("its answer is too long" if done.truncated else self.stderr.strip())
        super().__init__(
            f"{' '.join(word[:_SHOWN] for word in argv[:6])}: {why[:_SHOWN] or done.exit_code}"
        )


def words_of_controller(done: CommandFinished) -> str:
    """What a tool printed, shortened, errors first."""
    return (done.stderr.strip() or done.stdout.strip())[:_SHOWN]


def _parsed(text: str) -> JsonObject:
    r"""A JSON answer. Bytes that are not UTF-8 arrive as `\xff`, no escape of JSON: they are kept."""
    try:
        try:
            answer = json.loads(text, strict=False)
        except json.JSONDecodeError:
            answer = json.loads(_BAD_ESCAPE.sub(_kept_escape, text), strict=False)
    except json.JSONDecodeError as error:
        raise UnknownForm(f"no JSON at character {error.pos}") from error
    if not isinstance(answer, dict):
        raise UnknownForm("no JSON object")
    return answer


def _kept_escape(match: re.Match[str]) -> str:
    return f"\\\\{match[1]}" if match[1].startswith("x") else match[0]


def _cluster_of(answer: JsonObject) -> str:
    """The cluster that a JSON answer names; 22.05 and 23.02 name none outside the records."""
    name = part_of(part_of(answer, "meta"), "slurm").get("cluster")
    return name if isinstance(name, str) else ""


def _once(what: str, read: Callable[[str], _Answer], answer: str) -> _Answer:
    try:
        return read(answer)
    except UnknownForm as error:
        raise Unreadable(f"the answer about {what} cannot be read: {error}") from error
