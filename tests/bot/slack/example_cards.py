"""Cards of many states, some with the worst text from outside, and their golden files.

`python -m tests.bot.slack.example_cards` writes the files again; read the difference before you
commit it.
"""

import json
from pathlib import Path

from bot.slack import blocks
from bot.slack.blocks import Content
from config.ids import RunId
from runbooks.explain import Button, Card, cut
from runbooks.machine import RunState

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


def examples() -> dict[str, Content]:
    """Every example by the name of its files."""
    down = "gpu-017 is DOWN*, slurmd failed since 04:58 UTC"
    job = "Job 4711 llama-70b (ann, 512 GPUs); dies from 05:03 UTC on if nobody acts"
    cause = "A1 slurmd is dead (one node): slurmd failed; the host answers"
    cards = {
        "requested": example(RunState.REQUESTED, "gpu-017: Node dropped, asked by ann", "Looking"),
        "running": example(RunState.RUNNING, down, job, cause, "Doing: start", buttons=HOLD),
        "waiting": example(RunState.WAITING, down, job, "Waits: slurmd to be heard", buttons=HOLD),
        "awaiting-approval": example(
            RunState.AWAITING_APPROVAL, down, job, cause, "Waits for a go", buttons=DECIDE
        ),
        "needs-person": example(
            RunState.NEEDS_PERSON,
            down,
            "NEEDS A PERSON: the outcome of start is unknown",
            buttons=(Button(label="It is done", command="resume run-7 --done clicked"), ABORT),
        ),
        "paused": example(RunState.PAUSED, down, "Paused: ann: look first", buttons=(ABORT,)),
        "succeeded": example(
            RunState.SUCCEEDED, down, job, "Finished 05:01 UTC: did service.start"
        ),
        "failed": example(RunState.FAILED, down, "FAILED 05:01 UTC: no slurmd after 120 s"),
        "cancelled": example(RunState.CANCELLED, down, "Cancelled 05:01 UTC: denied: bob: wait"),
        "hostile-reason": example(
            RunState.RUNNING, f"gpu-017 is DRAINED, Reason: {HOSTILE_REASON}"
        ),
        "hostile-job": example(RunState.RUNNING, down, f"Job 76 {HOSTILE_JOB} (eve, 8 GPUs)"),
        "posing-job": example(RunState.RUNNING, down, f"Job 77 {POSING_JOB} (eve, 8 GPUs)"),
        "hostile-bytes": example(
            RunState.RUNNING, "Reason: \u202eapproved by @boss\u202c", "*bold* :tada: ~x~ \\xff\x07"
        ),
    }
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
