"""Promises of fencing: no living host loses its power, and off is off only twice."""

from tests.mutants.mutant import Mutant

_POWER = "tests/actions/power/test_taking_power.py"
_VERDICT = "tests/actions/test_host_verdict.py"
_PERSONS = "tests/runbooks/engine/test_two_persons.py"

MUTANTS = (
    Mutant(
        promise="one off of a BMC proves nothing",
        file="actions/power/readings.py",
        old="    if first.state is not PowerState.OFF:",
        new="    if first.state is not PowerState.UNKNOWN:",
        test=_POWER,
    ),
    Mutant(
        promise="a host that refuses, has another key or gives no shell keeps its power",
        file="actions/power/rules.py",
        old="    elif seen.reach.reach is not Reach.ALIVE:",
        new="    elif seen.reach.reach is None:",
        test=_POWER,
    ),
    Mutant(
        promise="a reachable host loses its power only when it is strictly drained",
        file="actions/power/rules.py",
        old="    elif not drained(seen.node, seen.jobs):",
        new="    elif drained(seen.node, seen.jobs) is None:",
        test=_POWER,
    ),
    Mutant(
        promise="power is not taken while the job list may lie",
        file="actions/power/rules.py",
        old="    if seen.jobs_blind:",
        new="    if seen.jobs_blind is None:",
        test=_POWER,
    ),
    Mutant(
        promise="power is not taken from a node in other hands",
        file="actions/power/rules.py",
        old="    if held.holder is Holder.OTHER:",
        new="    if held.holder is None:",
        test=_POWER,
    ),
    Mutant(
        promise="a drain that slurmctld may forget opens nothing",
        file="actions/power/readings.py",
        old="    until = saved_at(marks[0], call.now) if marks else None",
        new="    until = None if marks else None",
        test=_POWER,
    ),
    Mutant(
        promise="a machine is off only when its BMC says so after the request",
        file="actions/power/verbs.py",
        old="    if after.state is not wanted:",
        new="    if after.state is None:",
        test=_POWER,
    ),
    Mutant(
        promise="no host is dead without a second vantage point",
        file="actions/host_verdict.py",
        old="    if not silent - {BOT}:",
        new="    if silent is None:",
        test=_VERDICT,
    ),
    Mutant(
        promise="no host is dead that slurmctld still hears",
        file="actions/host_verdict.py",
        old="    if signs.responding:",
        new="    if signs.responding is None:",
        test=_VERDICT,
    ),
    Mutant(
        promise="a verb that wants two persons gets them at every autonomy",
        file="runbooks/rails.py",
        old="    if step is None or not step.persons:",
        new="    if step is None or step.persons:",
        test=_PERSONS,
    ),
)
