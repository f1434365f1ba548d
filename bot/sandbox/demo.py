"""The product's main job, played once by itself: a slurmd dies under a training job, ann asks, the
bot repairs.

Told line by line while it happens, and checked at the end with the controller's own words. Called
by `bot.cli_sandbox`; every act goes through the doors and tools that a person would use.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from bot.sandbox.configuration import CHANNEL
from bot.sandbox.playground import Playground, SandboxError, log_tail
from bot.sandbox.sandbox import Sandbox
from bot.sandbox.shown_card import ShownCard, card_in
from bot.sandbox.stage import Screen
from bot.sandbox.waiting import PATIENCE, wait_for
from bot.standin.vocabulary import Message

NODES = ("gpu-01", "gpu-02")
FOREIGN = "gpu-05"
FOREIGN_REASON = "fan is loud, vendor comes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that must hold afterwards."""

    claim: str
    holds: bool
    seen: str


@dataclass(slots=True, kw_only=True)
class Demo:
    """One performance."""

    sandbox: Sandbox
    screen: Screen
    _began: float = field(default_factory=time.monotonic)
    _done: list[tuple[timedelta, str]] = field(default_factory=list)

    def play(self) -> bool:
        """Play it; whether everything that must hold did. Raises SandboxError."""
        try:
            return self._play()
        except AssertionError as missed:  # the stand-in's word for what did not come in time
            log = self.sandbox.bot_log
            raise SandboxError(f"{missed}\nthe end of {log}:\n{log_tail(log)}") from missed

    def _play(self) -> bool:
        playground, dropped = self.sandbox.playground, NODES[0]
        job = playground.train(NODES)
        self._tell(f"job {job} trains on {NODES[0]} and {NODES[1]}, 16 GPUs")
        playground.foreign_drain(FOREIGN, FOREIGN_REASON)
        self._tell(f"a person drains {FOREIGN}: {FOREIGN_REASON}")
        self._settle()
        playground.kill_slurmd(dropped)
        self._tell(f"slurmd on {dropped} is killed; Slurm ends the job if nobody acts")
        command = f"/ops run node-dropped {dropped}"
        asked = self.sandbox.slack.person("ann").command(CHANNEL, command)
        latency = asked.ack().latency
        self._tell(f"ann types {command} in Slack; acknowledged in {latency * 1000:.0f} ms")
        self._watch(dropped)
        before = playground.progress(job, dropped)
        findings = self._findings(job, dropped, before)
        self.screen.table(self._done, findings)
        return all(finding.holds for finding in findings)

    def _settle(self) -> None:
        left = self.sandbox.playground.quiet_for()
        if left:
            self._tell(
                f"slurmctld has just started, the bot does not act yet: {left:.0f} s to wait"
            )
            with self.screen.busy("training goes on, nothing else happens …"):
                wait_for(
                    lambda: not self.sandbox.playground.quiet_for(),
                    "the end of slurmctld's first minute",
                    left + PATIENCE,
                    look=1.0,
                )

    def _tell(self, what: str) -> None:
        since = timedelta(seconds=time.monotonic() - self._began)
        self._done.append((since, what))
        self.screen.line(since, what)

    def _watch(self, node: str) -> None:
        """Show each version of the card until it rests."""
        channel = self.sandbox.slack.channel(CHANNEL)
        message = channel.expect(f"node-dropped {node}", within=PATIENCE)
        end = time.monotonic() + PATIENCE
        card = card_in(message)
        self.screen.card(card)
        while not card.rests:
            card = self._next_version(message, card, end - time.monotonic())
            self.screen.card(card)
        self._tell(f"the card rests: {card.title}: {''.join(card.lines[-1:])}")

    def _next_version(self, message: Message, before: ShownCard, left: float) -> ShownCard:
        changed = self.sandbox.slack.world.wait_for(lambda: card_in(message) != before, left)
        if not changed:
            raise SandboxError(f"the card did not come to rest in {PATIENCE:g} s")
        return card_in(message)

    def _findings(self, job: str, dropped: str, before: int | None) -> Sequence[Finding]:
        playground = self.sandbox.playground
        found = [job_lives(playground, job), self._node_answers(dropped)]
        if before is not None:
            wait_for(
                lambda: (playground.progress(job, dropped) or 0) > before,
                f"the next step of job {job} on {dropped}",
            )
            now = playground.progress(job, dropped)
            claim = f"{dropped} went on with its next step"
            found.append(Finding(claim=claim, holds=True, seen=f"step {before}, then {now}"))
        return [*found, self._foreign_stands(), self._log_is_sound()]

    def _node_answers(self, name: str) -> Finding:
        node = self.sandbox.playground.view().node(name)
        words = node.words if node else ("gone",)
        holds = node is not None and not {"DOWN", "NOT_RESPONDING", "DRAIN"} & set(words)
        claim = f"slurmd of {name} answers Slurm again"
        return Finding(claim=claim, holds=holds, seen=f"{name} is {'+'.join(words)}")

    def _foreign_stands(self) -> Finding:
        node = self.sandbox.playground.view().node(FOREIGN)
        holds = node is not None and "DRAIN" in node.words and node.reason == FOREIGN_REASON
        seen = f"{FOREIGN} is {'+'.join(node.words)}, Reason: {node.reason}" if node else "gone"
        return Finding(claim="the other person's drain is untouched", holds=holds, seen=seen)

    def _log_is_sound(self) -> Finding:
        self.sandbox.ask("audit", "anchor")
        reply = self.sandbox.ask("audit", "verify")
        holds = bool(reply["data"].get("sound"))
        return Finding(claim="the audit log verifies", holds=holds, seen=reply["lines"][-1])


def job_lives(playground: Playground, number: str) -> Finding:
    """Whether the job goes on as it was: under its id, and never started again."""
    job = playground.view().job(number)
    seen = f"job {job.id} {job.state}, Restarts {job.restarts}" if job else "the job is gone"
    holds = job is not None and (job.state, job.restarts) == ("RUNNING", 0)
    return Finding(claim="the job survived under its own id", holds=holds, seen=seen)
