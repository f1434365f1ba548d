"""Identifiers, one type each so that mypy refuses a run id where an actor id belongs."""

from typing import NewType

ActorId = NewType("ActorId", str)
"""Opaque id of a person or machine actor, as the ledger holds it (`p-…`, `alert-…`, `engine`)."""

ClusterName = NewType("ClusterName", str)
"""Name of a cluster in the configuration; every node, job, lock and ledger target carries it."""

InstanceId = NewType("InstanceId", str)
"""Random id of one ledger (8 hex digits), in its first record; two bots never share one."""

JobId = NewType("JobId", str)
"""Job id as Slurm prints it: `123`, `123_4` (array task), `123+1` (het component)."""

PlanHash = NewType("PlanHash", str)
"""SHA-256 (hex) over what was approved."""

RunId = NewType("RunId", str)
"""`run-` and a number that this ledger never gives twice."""

StepId = NewType("StepId", str)
"""Id of a step inside its runbook."""
