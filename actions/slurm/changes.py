"""The further writes on nodes, partitions, reservations and jobs, each one `scontrol` in an argument list.

The base of `cli.SlurmCli`, which gives the one way to send. Every name is checked here by a pattern of
ours before scontrol sees it: no list, no range, no `+=`, no word that means more than one thing. Nothing
is read back here, and a refusal of one of several jobs is not called a refusal of all.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from datetime import timedelta

from actions.cluster import JobChange, ReservationWish
from actions.contract import Rejected, UnknownJob, UnknownNode, WriteUnknown
from actions.slurm.tools import Tools
from config.ids import JobId
from config.node_names import NodeName, NodeNameError, expand_unchecked, node_name

_LONGEST_REASON = 200
_LONGEST_NAME = 100
_LONGEST = timedelta(days=366)
_REASON = re.compile(r"[ -~]+", re.ASCII)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*", re.ASCII)
_PARTITION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*", re.ASCII)
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*\$?", re.ASCII)
_JOB = re.compile(r"[1-9]\d{0,9}(?:[_+]\d{1,9})?", re.ASCII)
_EVERYTHING = frozenset({"ALL", "LOCALHOST", "ASAP", "DEFAULT"})
"""Words that scontrol takes for more or other than the thing of that name."""
_FLAGS = frozenset({"FLEX", "IGNORE_JOBS", "MAINT"})
_HIGHEST_PRIORITY = 0xFFFFFFFD
"""The two numbers above it mean "as Slurm counts"; zero is a hold."""


class Changes(ABC):
    """`NodeChanges`, and the writing half of `JobHands`."""

    @abstractmethod
    def _tools(self, questions: int) -> Tools:
        """The tools, once the budget allows so many questions."""

    @abstractmethod
    def _send(self, what: str, words: Sequence[str], writes: int = 1) -> None:
        """One `scontrol` to our own cluster. Raises Rejected, WriteUnknown, Unreadable, Refusal."""

    def drain(self, node: NodeName, reason: str) -> None:
        """Set DRAIN with this Reason: one update, no read-back."""
        self._set(node, "DRAIN", f"Reason={_reason(reason)}")

    def resume(self, node: NodeName) -> None:
        """Clear DRAIN: one update, no read-back."""
        self._set(node, "RESUME")

    def down(self, node: NodeName, reason: str) -> None:
        """Set DOWN with this Reason: ends every job on it, at once. One update, no read-back."""
        self._set(node, "DOWN", f"Reason={_reason(reason)}")

    def reboot(self, node: NodeName) -> None:
        """Plain `scontrol reboot`, without ASAP and nextstate: both would lift a drain (hands 2)."""
        self._send(one_node(node), ("reboot", node))

    def set_partition_nodes(self, partition: str, nodes: Sequence[NodeName]) -> None:
        """Write the full list of a partition's nodes, each known to the controller.

        A list with one unknown node is applied in part, with an error (measured, hands 2).
        """
        if not _plain(_PARTITION, partition):
            raise Rejected(f"{partition[:40]!r} is not the name of one partition")
        listed = _listed(nodes)
        known = self._tools(1).nodes()
        unknown = [node for node in nodes if node not in known]
        if unknown:
            raise UnknownNode(
                f"nothing was written: the controller knows no node {', '.join(unknown[:8])}"
            )
        words = ("update", f"PartitionName={partition}", f"Nodes={listed}")
        self._send(f"partition {partition}", words)

    def create_reservation(self, wish: ReservationWish) -> None:
        """Make it, from now on: one write, no read-back."""
        name, minutes = _reservation(wish.name), wish.length // timedelta(minutes=1)
        if minutes < 1 or wish.length > _LONGEST or wish.length % timedelta(minutes=1):
            raise Rejected(f"a reservation lasts 1 minute to 366 days, not {wish.length}")
        if not _USER.fullmatch(wish.user):
            raise Rejected(f"{wish.user[:40]!r} is not the name of one user")
        if not wish.flags <= _FLAGS:
            raise Rejected(f"reservations of ours have no flags but {', '.join(sorted(_FLAGS))}")
        words = (
            *("create", f"ReservationName={name}", "StartTime=now", f"Duration={minutes}"),
            *(f"Users={wish.user}", f"Nodes={_listed(wish.nodes)}"),
            *((f"Flags={','.join(sorted(wish.flags))}",) if wish.flags else ()),
        )
        self._send(f"reservation {name}", words)

    def set_reservation_nodes(self, name: str, nodes: Sequence[NodeName]) -> None:
        """Give a reservation exactly these nodes: one update, no read-back."""
        words = ("update", f"ReservationName={_reservation(name)}", f"Nodes={_listed(nodes)}")
        self._send(f"reservation {name}", words)

    def delete_reservation(self, name: str) -> None:
        """Delete it. Slurm refuses while a job points to it: Rejected with its words."""
        self._send(f"reservation {name}", ("delete", f"ReservationName={_reservation(name)}"))

    def requeue(self, jobs: Sequence[JobId]) -> None:
        """`scontrol requeue Incomplete` with these explicit ids: what has ended stays ended.

        Slurm is asked once for each id: where it refused one, others may be requeued already.
        """
        ids = [one_job(job) for job in dict.fromkeys(jobs)]
        if not ids:
            raise Rejected("nothing was sent: no job is named")
        what = f"job {', '.join(ids)}"
        try:
            self._send(what, ("requeue", "Incomplete", ",".join(ids)), writes=len(ids))
        except Rejected as error:
            words = str(error)
            if len(ids) > 1 and not all(_refused(words, job) for job in ids):
                raise WriteUnknown(
                    f"some of {what} may be requeued: {words}; look at each of them"
                ) from error
            raise

    def change_job(self, job: JobId, change: JobChange) -> None:
        """One update of one job, no read-back."""
        words = [*_words_of(change)]
        if not words:
            raise Rejected(f"nothing was sent: no change of job {job} is named")
        self._send(f"job {job}", ("update", f"JobId={one_job(job)}", *words))

    def _set(self, node: NodeName, state: str, *more: str) -> None:
        name = one_node(node)
        self._send(name, ("update", f"NodeName={name}", f"State={state}", *more))


def one_node(node: NodeName) -> NodeName:
    """The name again, if it can mean one node only."""
    if node_name(node).upper() in _EVERYTHING:
        raise UnknownNode(f"{node} is a word that scontrol takes for other nodes; rename that node")
    return node


def one_job(job: JobId) -> JobId:
    """The id again, if it can mean one job, array task or part of a het job only."""
    if not _JOB.fullmatch(job):
        raise UnknownJob(
            f"{job[:40]!r} names no single job: write 12, 12_3 (array task) or 12+1 (het part)"
        )
    return job


def _reason(text: str) -> str:
    if not _REASON.fullmatch(text) or len(text) > _LONGEST_REASON:
        raise Rejected(f"a Reason is 1 to {_LONGEST_REASON} printable ASCII characters")
    return text


def _plain(pattern: re.Pattern[str], name: str) -> bool:
    fits = pattern.fullmatch(name) and len(name) <= _LONGEST_NAME
    return bool(fits) and name.upper() not in _EVERYTHING


def _reservation(name: str) -> str:
    if not _plain(_NAME, name):
        raise Rejected(
            f"{name[:40]!r} is no name for a reservation of ours: at most {_LONGEST_NAME} letters, "
            "digits, `-` and `_`"
        )
    return name


def _listed(nodes: Iterable[NodeName]) -> str:
    """Checked names with commas: no range and no `+=`."""
    names = [one_node(node) for node in dict.fromkeys(nodes)]
    if not names:
        raise Rejected("nothing was sent: an empty list of nodes is never meant")
    return ",".join(names)


def _words_of(change: JobChange) -> Iterable[str]:
    if change.reservation is not None:
        yield f"ReservationName={_reservation(change.reservation) if change.reservation else ''}"
    if change.excluded_nodes is not None:
        yield f"ExcNodeList={_names_in(change.excluded_nodes)}"
    if change.priority is not None:
        if not 0 < change.priority <= _HIGHEST_PRIORITY:
            raise Rejected(f"{change.priority} is no priority: 0 would hold the job")
        yield f"Priority={change.priority}"


def _names_in(text: str) -> str:
    """Every name of a list as the controller wrote it; the empty text stays empty."""
    if not text.strip():
        return ""
    try:
        return _listed(expand_unchecked(text))
    except NodeNameError as error:
        raise Rejected(f"nothing was sent: {error}") from error


def _refused(words: str, job: JobId) -> bool:
    """Whether this very job is named as refused (`... for job 12`)."""
    return re.search(rf"for job {re.escape(job)}(?![\w+])", words) is not None
