"""Cards of many states, some with the worst text from outside, and their golden files.

`python -m tests.bot.slack.example_cards` writes the files again; read the difference before you
commit it.
"""

import json
from pathlib import Path

from bot.slack import blocks
from bot.slack.blocks import Content
from config.ids import RunId
from runbooks.explain import Button, Card
from runbooks.machine import RunState
from runbooks.wording import cut

GOLDEN = Path(__file__).parent / "golden"
HOSTILE_REASON = 'disk full: /scratch 98% "see <#C123>" & ask @dana – דנה'
HOSTILE_JOB = "a<!channel>&`id`"
POSING_JOB = "x JobState=COMPLETED NodeList=gpu-99"
ABORT = Button(label="Abort", command="abort run-7", danger=True)
HOLD = (
    Button(label="Take over", command="takeover run-7"),
    Button(label="Pause", command="pause run-7"),
    ABORT,
)
DECIDE = (
    Button(label="Approve", command="approve run-7 --plan 9f31c2d"),
    Button(label="Deny", command="deny run-7 --plan 9f31c2d", danger=True),
)


def example(state: RunState, *lines: str, buttons: tuple[Button, ...] = ()) -> Card:
    """A card of run-7 in its fifth revision."""
    return Card(
        run=RunId("run-7"),
        revision=5,
        state=state,
        title="▶ run-7 node-dropped gpu-017",
        lines=tuple(cut(line) for line in lines),
        steps=("✔ 05:00 UTC facts done (1 s)",),
        buttons=buttons,
        rings=state in {RunState.AWAITING_APPROVAL, RunState.NEEDS_PERSON, RunState.FAILED},
    )


DEAD = "gpu-017: A1 slurmd is dead, the host is alive"
JOB = "Job 4711 llama-70b (ann, 512 GPUs); dies from 05:03 UTC on if nobody acts"
FACTS = "slurmd is failed since 04:58 UTC; Slurm says ALLOCATED+NOT_RESPONDING"


def at_work() -> dict[str, Card]:
    """Runs that are open."""
    return {
        "requested": example(
            RunState.REQUESTED, "gpu-017: Node dropped from the queue", "Looking; asked by ann"
        ),
        "running": example(
            RunState.RUNNING,
            DEAD,
            JOB,
            FACTS,
            "Doing: service.start gpu-017; asked by ann",
            buttons=HOLD,
        ),
        "waiting": example(
            RunState.WAITING, DEAD, JOB, "slurmd to be heard", "Waits; asked by ann", buttons=HOLD
        ),
        "awaiting-approval": example(
            RunState.AWAITING_APPROVAL,
            f"{DEAD} → say go: service.start",
            JOB,
            FACTS,
            "this site wants a person to say go",
            "Waits for a go until 05:13 UTC; asked by ann",
            buttons=DECIDE,
        ),
        "needs-person": example(
            RunState.NEEDS_PERSON,
            "gpu-017: A4b a GPU fell off the bus → save event log and AER, then reboot",
            "Job 4711 llama-70b (ann, 512 GPUs)",
            "the node's own tools see 7 of 8 GPUs; the host answers (alive)",
            "gpu-017 gets no new work: a GPU is gone (7 of 8); a reboot is to be decided",
            "NEEDS A PERSON (page accepted); changed node.drain gpu-017; asked by ann",
            buttons=(Button(label="It is done", command="resume run-7 --done clicked"), ABORT),
        ),
        "paused": example(
            RunState.PAUSED,
            f"{DEAD} → paused: resume or abort it",
            "ann: look first",
            "Paused; asked by ann",
            buttons=(ABORT,),
        ),
    }


def ended() -> dict[str, Card]:
    """Runs that are over."""
    return {
        "succeeded": example(
            RunState.SUCCEEDED,
            "gpu-017: A1 slurmd was DEAD, the host was alive → did service.start gpu-017",
            "Job 4711 llama-70b (ann, 512 GPUs); would have died by 05:05 UTC",
            "Finished 05:01 UTC; job 4711 (Restarts 0) goes on; asked by ann",
        ),
        "failed": example(
            RunState.FAILED,
            f"{DEAD} → failed: no slurmd…",
            "no slurmd after 120 s",
            "FAILED 05:01 UTC; changed nothing; asked by ann",
        ),
        "cancelled": example(
            RunState.CANCELLED,
            f"{DEAD} → cancelled: denied…",
            "denied: bob: wait",
            "Cancelled 05:01 UTC; changed nothing; asked by ann",
        ),
    }


def hostile() -> dict[str, Card]:
    """Text from outside that would be more than text."""
    return {
        "hostile-reason": example(
            RunState.RUNNING, f"Slurm says DRAINED; Reason: {HOSTILE_REASON}"
        ),
        "hostile-job": example(RunState.RUNNING, DEAD, f"Job 76 {HOSTILE_JOB} (eve, 8 GPUs)"),
        "posing-job": example(RunState.RUNNING, DEAD, f"Job 77 {POSING_JOB} (eve, 8 GPUs)"),
        "hostile-bytes": example(
            RunState.RUNNING, "Reason: \u202eapproved by @boss\u202c", "*bold* :tada: ~x~ \\xff\x07"
        ),
    }


def examples() -> dict[str, Content]:
    """Every example by the name of its files."""
    cards = {**at_work(), **ended(), **hostile()}
    found = {name: blocks.card(card) for name, card in cards.items()}
    found["ring"] = blocks.ring(cards["awaiting-approval"], "<!subteam^S0ONCALL>")
    found["answer"] = blocks.answer((HOSTILE_REASON, HOSTILE_JOB), echo="status `x` <@U1>")
    return found


def as_json(content: Content) -> str:
    """The blocks as they are sent."""
    return json.dumps(list(content.blocks), indent=1, ensure_ascii=False) + "\n"


def main() -> None:
    """Write every golden file."""
    GOLDEN.mkdir(exist_ok=True)
    for name, content in examples().items():
        (GOLDEN / f"{name}.json").write_text(as_json(content), encoding="utf-8")
        (GOLDEN / f"{name}.txt").write_text(f"{content.text}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
