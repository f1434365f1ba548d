"""What the outputs of a run's steps say for its card: whose jobs, the evidence, who survived. Pure.

Called by `runbooks.card_lines`. What could not be read is said to be so: an empty list of jobs is only
called empty where the list can be believed.
"""

from collections.abc import Iterator, Mapping, Sequence

from actions.contract import JobLoss
from actions.reasons import ReasonKind, classify
from config.json_values import Json, JsonMap
from runbooks.machine import RunState
from runbooks.run import Run, StepState
from runbooks.told import Told
from runbooks.wording import cut, effects

_MOST_NAMED = 2
"""Jobs of a drain that get a sentence of their own."""


def jobs_told(run: Run, told: Told) -> list[str]:
    """Which job, whose, how many GPUs, and when it ends: if nobody acts, or by itself."""
    facts = facts_of(told.outputs)
    if facts:
        return [_threatened(run, facts)]
    ended = told.plan.jobs_end
    if ended:
        return [_ended(ended)]
    return _staying(told.outputs)


def _ended(ended: Sequence[JobLoss]) -> str:
    """Whose work ends, and of a single job what becomes of it."""
    if len(ended) > 1:
        return f"Ends {len(ended)} jobs: {', '.join(loss.job for loss in ended)}"
    loss = ended[0]
    return f"Ends job {loss.job} ({loss.user}, {loss.gpus} GPUs): {loss.why}"


def _threatened(run: Run, facts: JsonMap) -> str:
    """The jobs on a node that was looked at."""
    if facts.get("jobs_blind"):
        return f"Its jobs are not known: {facts['jobs_blind']}"
    jobs = [job for job in _list(facts.get("jobs")) if isinstance(job, Mapping)]
    if not jobs:
        return "No job is on it"
    first = max(jobs, key=lambda job: _number(job.get("gpus")))
    more = f" and {len(jobs) - 1} more" if len(jobs) > 1 else ""
    dies, latest = str(facts.get("dies_at_earliest") or ""), str(facts.get("dies_at_latest") or "")
    dying = (
        f"would have died by {latest or dies}"
        if repaired(run)
        else f"dies from {dies} on if nobody acts"
    )
    return f"{_job(first)}{more}{f'; {dying}' if dies else ''}"


def _staying(outputs: Mapping[str, JsonMap]) -> list[str]:
    """Jobs that go on on drained nodes, the one that ends last first: it holds the node."""
    drains = [output for output in outputs.values() if "jobs_stay" in output]
    blind = [str(output["jobs_blind"]) for output in drains if output.get("jobs_blind")]
    if blind:
        return [f"Which jobs go on is not known: {blind[0]}"]
    jobs = {
        str(job.get("id")): job
        for output in drains
        for job in _list(output.get("jobs_stay"))
        if isinstance(job, Mapping)
    }
    if not jobs:
        return ["No job is on it"] if drains else []
    endless = "9"  # after every date
    last = sorted(jobs.values(), key=lambda job: str(job.get("ends") or endless), reverse=True)
    told = [f"{_job(job)} goes on {_until(job.get('ends'))}" for job in last[:_MOST_NAMED]]
    if len(last) > _MOST_NAMED:
        told[-1] += f"; {len(last) - _MOST_NAMED} more end before"
    return told


def _until(ends: Json) -> str:
    return f"until {ends}" if ends else "without an end"


def _job(job: Mapping[str, Json]) -> str:
    whose = f"{job.get('user')}, {job.get('gpus')} GPUs"
    return f"Job {job.get('id')} {cut(str(job.get('name', '')), 20)} ({whose})"


def facts_told(told: Told) -> Iterator[str]:
    """What speaks for the cause, the strongest first; then the state, what a plan saw, what was lost."""
    facts = facts_of(told.outputs)
    evidence = [str(fact) for fact in _list(diagnosis(told.outputs).get("evidence"))[:3]]
    yield from evidence
    state = str(facts.get("state") or facts.get("base") or "")
    if state and not any(state in fact for fact in evidence):
        yield f"Slurm says {state}"
    if facts.get("reason"):
        yield f"Reason: {facts['reason']}"
    for output in told.outputs.values():
        if "resumes" in output:  # a job is started again: from where, and what else follows
            yield str(output["resumes"])
            yield from (str(line) for line in _list(output.get("after")))
    for key, output in told.outputs.items():
        before = str(output.get("reason_before") or "")
        if classify(before).kind is ReasonKind.FOREIGN:
            by = f" of {output['reason_before_by']}" if output.get("reason_before_by") else ""
            yield f"{key} replaced the Reason '{cut(before, 40)}'{by}"
    if not told.outputs:
        yield from (step.why for step in told.plan.steps if step.certain and step.why)
    if _list(facts.get("jobs")):
        gpus = sum(
            _number(job.get("gpus")) for job in _list(facts.get("jobs")) if isinstance(job, Mapping)
        )
        yield f"checkpoint not watched, {gpus} GPUs at stake"


def survivors(outputs: Mapping[str, JsonMap]) -> str:
    """Jobs that were on the node before and still are, without a restart; needs a second look."""
    looks = [output for output in outputs.values() if _is_of_node(output)]
    if len(looks) < 2:
        return ""
    before, after = (
        {_identity(job) for job in _list(look.get("jobs"))} for look in (looks[0], looks[-1])
    )
    stayed = sorted(before & after)
    if not stayed:
        return ""
    named = ", ".join(f"{number} (Restarts {restarts})" for number, restarts in stayed[:3])
    more = f" and {len(stayed) - 3} more" if len(stayed) > 3 else ""
    return f"job {named}{more} goes on"


def _identity(job: Json) -> tuple[str, str]:
    """What must stay the same for a job to have survived: its id and its restarts."""
    entry = job if isinstance(job, Mapping) else {}
    return str(entry.get("id")), str(entry.get("restarts"))


def repaired(run: Run) -> bool:
    """Whether what was found is past; a run that only told leaves everything as it is."""
    return run.state is RunState.SUCCEEDED and bool(effects(run, StepState.DONE))


def _is_of_node(output: JsonMap) -> bool:
    return "base" in output and "flags" in output


def facts_of(outputs: Mapping[str, JsonMap]) -> JsonMap:
    """The output that describes a node, empty before it was looked at."""
    return next((output for output in outputs.values() if _is_of_node(output)), {})


def diagnosis(outputs: Mapping[str, JsonMap]) -> JsonMap:
    """The output of a `diagnose` step, empty before it ran."""
    for output in outputs.values():
        if "evidence" in output and "not_ruled_out" in output:
            return output
    return {}


def _list(value: Json) -> Sequence[Json]:
    return value if isinstance(value, list | tuple) else ()


def _number(value: Json) -> int:
    return int(str(value or 0))
