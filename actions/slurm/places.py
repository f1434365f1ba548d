"""Partitions, reservations and the controller's own facts, from JSON or text. Pure.

Only the cluster's administrators write texts here.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from actions.cluster import Controller, Partition, Reservation
from actions.slurm.fields import (
    JsonObject,
    UnknownForm,
    bare,
    moment,
    moment_of,
    node_list,
    number,
    number_of,
    part_of,
    split_words,
    text_of,
    words_of,
)
from actions.slurm.records import config_fields, shown_fields, shown_records
from config.ids import ClusterName

_SECONDS = re.compile(r"(\d+) sec", re.ASCII)
_ACCOUNT = re.compile(r"([^()]+)\(\d+\)", re.ASCII)
_CONTROLLER = re.compile(
    r"^Slurmctld\((?P<role>\w+)\) at (?P<host>\S+) is (?P<state>UP|DOWN)$", re.ASCII | re.MULTILINE
)
_NEVER = timedelta(days=365)
"""Of SlurmdTimeout 0 or UNLIMITED: the controller never sets a silent node DOWN."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerFacts:
    """The controller, and what it hides from ordinary users."""

    controller: Controller
    private_data: frozenset[str]


def controller_from_text(answer: str) -> ControllerFacts:
    """What `scontrol show config` says."""
    fields = config_fields(answer)
    role, host = _in_control(answer)
    try:
        user = _ACCOUNT.fullmatch(fields["SlurmUser"])
        return ControllerFacts(
            controller=Controller(
                cluster=ClusterName(fields["ClusterName"]),
                version=fields["SLURM_VERSION"],
                booted_at=moment(fields["BOOT_TIME"]),
                slurmd_timeout=_seconds(fields["SlurmdTimeout"]),
                return_to_service=number(fields["ReturnToService"], "ReturnToService"),
                slurm_user=user[1] if user else fields["SlurmUser"],
                reboot_program=bare(fields["RebootProgram"]),
                resume_timeout=_seconds(fields["ResumeTimeout"]),
                preempt_type=bare(fields["PreemptType"]),
                in_control=host,
                backup=role not in {"", "primary"},
            ),
            private_data=frozenset(split_words(fields["PrivateData"].lower())) - {"none"},
        )
    except KeyError as error:
        raise UnknownForm(f"the controller's configuration lacks {error.args[0]}") from error


def _in_control(answer: str) -> tuple[str, str]:
    """Role and host of the first controller that is up, in the order in which they take over."""
    up = [found for found in _CONTROLLER.finditer(answer) if found["state"] == "UP"]
    return (up[0]["role"], up[0]["host"]) if up else ("", "")


def _seconds(text: str) -> timedelta:
    found = _SECONDS.fullmatch(text)
    if found is None and text not in {"UNLIMITED", "INFINITE"}:
        raise UnknownForm(f"a time-out is {text!r}, not like `300 sec`")
    return timedelta(seconds=int(found[1])) if found and int(found[1]) else _NEVER


def partitions_from_json(records: Iterable[JsonObject]) -> tuple[Partition, ...]:
    """The partitions of a JSON answer; releases before 26.05 tell neither default nor hidden there."""
    return tuple(_partition_from_json(record) for record in records)


def _partition_from_json(record: JsonObject) -> Partition:
    nodes = part_of(record, "nodes")
    flags = {word.upper() for word in words_of(record, "flags")}
    states = words_of(part_of(record, "partition"), "state")
    return Partition(
        name=text_of(record, "name"),
        state="+".join(states),
        nodes=node_list(text_of(nodes, "configured")),
        default="DEFAULT" in flags,
        hidden="HIDDEN" in flags,
        total_nodes=number_of(nodes, "total") or 0,
        priority_tier=_tier(number_of(part_of(record, "priority"), "tier")),
        preempt_mode=",".join(words_of(record, "preempt_mode")),
    )


def _tier(told: int | None) -> int:
    return 1 if told is None else told


def partitions_from_text(answer: str) -> tuple[Partition, ...]:
    """The partitions of a text answer."""
    records = [shown_fields(record) for record in shown_records(answer, "PartitionName")]
    return tuple(
        Partition(
            name=fields["PartitionName"],
            state=_needed(fields, "State"),
            nodes=node_list(_needed(fields, "Nodes")),
            default=fields.get("Default") == "YES",
            hidden=fields.get("Hidden") == "YES",
            total_nodes=number(_needed(fields, "TotalNodes"), "TotalNodes"),
            priority_tier=number(_needed(fields, "PriorityTier"), "PriorityTier"),
            preempt_mode=bare(fields.get("PreemptMode", "")),
        )
        for fields in records
    )


def reservations_from_json(records: Iterable[JsonObject], now: datetime) -> tuple[Reservation, ...]:
    """The reservations of a JSON answer, which tells no state: active is a matter of the time."""
    return tuple(_reservation_from_json(record, now) for record in records)


def _reservation_from_json(record: JsonObject, now: datetime) -> Reservation:
    starts = moment_of(record, "start_time")
    ends = moment_of(record, "end_time")
    return Reservation(
        name=text_of(record, "name"),
        nodes=node_list(text_of(record, "node_list")),
        starts_at=starts,
        ends_at=ends,
        flags=frozenset(words_of(record, "flags")),
        users=split_words(text_of(record, "users")),
        accounts=split_words(text_of(record, "accounts")),
        active=(starts is None or starts <= now) and (ends is None or now < ends),
    )


def reservations_from_text(answer: str) -> tuple[Reservation, ...]:
    """The reservations of a text answer."""
    records = [shown_fields(record) for record in shown_records(answer, "ReservationName")]
    return tuple(
        Reservation(
            name=fields["ReservationName"],
            nodes=node_list(_needed(fields, "Nodes")),
            starts_at=moment(_needed(fields, "StartTime")),
            ends_at=moment(_needed(fields, "EndTime")),
            flags=frozenset(split_words(_needed(fields, "Flags"))),
            users=split_words(_needed(fields, "Users")),
            accounts=split_words(_needed(fields, "Accounts")),
            active=_needed(fields, "State") == "ACTIVE",
        )
        for fields in records
    )


def _needed(fields: Mapping[str, str], key: str) -> str:
    if key not in fields:
        raise UnknownForm(f"a record without {key}: {next(iter(fields.items()), None)}")
    return fields[key]
