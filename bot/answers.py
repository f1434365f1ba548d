"""Everything the desk can answer without changing anything.

Called by `bot.desk` after the permission check. Reads projections, the last snapshots and, for
`node` and `plan`, the cluster itself.
"""

import difflib
from collections.abc import Callable, Mapping
from dataclasses import replace

from actions.contract import Call, Done, Failed, Refusal, Unreadable, Wait
from audit_log.gate import Gate, Question
from bot.commands import RUNBOOK_OF, VERBS, Verb, VerbSpec
from bot.identities import Identities
from bot.inventory import Inventory
from bot.lists import MOST_ROWS, Lists
from bot.phrases import Command, Misread
from bot.replies import Reply, done
from config.actors import Actor, Door
from config.ids import ClusterName, RunId, StepId
from config.json_values import Json, JsonMap
from config.node_names import NodeName, NodeSet, fold
from config.permissions import Allowed, Permission
from runbooks.cards import Cards
from runbooks.definition import Definition
from runbooks.explain import Card, card
from runbooks.machine import RunState
from runbooks.open_marks import marks_on
from runbooks.parts import Parts
from runbooks.preview import Preview
from runbooks.requests import CannotDo, RunRequest
from runbooks.run import Run, run_nodes
from runbooks.wording import clocked


class Answers:
    """The reading half of the desk."""

    def __init__(
        self,
        parts: Parts,
        gate: Gate,
        identities: Identities,
        inventory: Inventory,
        others: Mapping[Verb, Callable[[Command], Reply]],
    ) -> None:
        """Over the parts of the bot; `others` answer what is not about runs, nodes or people."""
        self._parts = parts
        self._gate = gate
        self._identities = identities
        self._inventory = inventory
        self._preview = Preview(parts)
        self._cards = Cards(parts, identities.name)
        self._lists = Lists(parts, identities, inventory, self._cards)
        self._others = others
        self.wake: Callable[[], None] = lambda: None
        """Set by wiring: tells the worker to look at everything now."""
        self.notices: list[Callable[[], tuple[str, ...]]] = []
        """Set by wiring: what else `status` says before it lists the runs."""
        self._verbs: Mapping[Verb, Callable[[Actor, Door, Command], Reply]] = {
            Verb.STATUS: self._status,
            Verb.LIST: self._list,
            Verb.NODE: self._node,
            Verb.WHOAMI: self._whoami,
            Verb.CAN: self._can,
            Verb.HELP: self._help,
        }

    def answer(self, actor: Actor, door: Door, command: Command) -> Reply:
        """The answer to a question."""
        other = self._others.get(command.verb)
        return other(command) if other else self._verbs[command.verb](actor, door, command)

    # -- runs ---------------------------------------------------------------------------------

    def run(self, text: str) -> Run:
        """The run of this id (`run-12` or `12`). Raises CannotDo."""
        name = f"run-{text}" if text.isdecimal() else text
        run = self._cards.run(RunId(name))
        if run is None:
            raise CannotDo(f"there is no run {text!r}; `list runs` shows the open ones")
        return run

    def nodes(self, run: Run) -> tuple[NodeName, ...]:
        """Nodes that a run was asked for."""
        return self._cards.nodes(run)

    def card(self, run: RunId) -> Card | None:
        """The card of a run as it is now, with the names of its people."""
        shown = self._cards.card(run)
        if shown is None:
            return None
        named = self._identities.named
        return replace(
            shown,
            title=named(shown.title),
            lines=tuple(named(line) for line in shown.lines),
            steps=tuple(named(step) for step in shown.steps),
        )

    def named(self, reply: Reply) -> Reply:
        """The answer with the names of people for their ids."""
        return replace(reply, lines=tuple(self._identities.named(line) for line in reply.lines))

    def _status(self, actor: Actor, door: Door, command: Command) -> Reply:
        if not command.words:
            return self._overview()
        word = command.words[0]
        if word.startswith("run-") or word.isdecimal():
            run = self.run(word)
            shown = self.card(run.id)
            if shown is not None:
                lines = (shown.title, *shown.lines, *shown.steps)
                return done(*lines, data=self._cards.as_json(run), run=run.id)
        return self._node(actor, door, command)

    def _overview(self) -> Reply:
        lines = []
        halted = self._parts.halt.reason()
        if halted is not None:
            lines.append(f"HALTED: {halted or 'no reason given'}; `halt --clear` resumes")
        lines.extend(f"LIMIT {name}: {why}" for name, why in self._lists.latches())
        for name in self._inventory.clusters():
            snapshot = self._inventory.snapshot(name)
            if snapshot is None:
                why = self._inventory.trouble(name)
                lines.append(f"{name}: no answer yet: {why}; runs wait; `doctor` looks again")
                continue
            out = [node.name for node in snapshot.nodes.values() if node.out]
            running = sum(1 for job in snapshot.jobs if job.state == "RUNNING")
            where = f" ({fold(out)})" if out else ""
            trouble = self._inventory.trouble(name)
            if trouble:
                lines.append(
                    f"{name} does not answer: {trouble}; runs wait; as it was at "
                    f"{snapshot.taken_at:%H:%M:%S} UTC:"
                )
            lines.append(
                f"{name}: {len(snapshot.nodes)} nodes, {len(out)} out{where}, {running} jobs run"
            )
        lines.extend(line for notice in self.notices for line in notice())
        runs = self._open_runs()
        lines.extend(self._lists.one_line(run) for run in runs[:MOST_ROWS])
        if not runs:
            lines.append("no run is open")
        data: JsonMap = {"halted": halted, "runs": [self._row(run) for run in runs]}
        return done(*lines, data=data)

    def under_way(self) -> tuple[str, ...]:
        """Effects that began before a halt, and until when they may still happen."""
        lines = []
        for run in self._open_runs():
            key = run.intended
            if key is not None:
                step = run.steps[key]
                where = f" on {step.node}" if step.node else ""
                until = f"{step.expires_at:%H:%M:%S} UTC" if step.expires_at else "soon"
                lines.append(f"under way: {run.id} {key}{where} ({step.action}), ends by {until}")
        return tuple(lines)

    def _open_runs(self) -> list[Run]:
        return self._cards.runs("open = 1")

    def _row(self, run: Run) -> JsonMap:
        return {
            "run": run.id,
            "runbook": run.runbook,
            "nodes": list(run_nodes(run)),
            "state": run.state.value,
            "why": run.why,
        }

    def _list(self, actor: Actor, door: Door, command: Command) -> Reply:
        return self._lists.answer(command)

    # -- plans and nodes ----------------------------------------------------------------------

    def plan(self, asked: RunRequest, definition: Definition) -> Reply:
        """What this run would do now."""
        run = Run(
            id=RunId("run-0"),
            runbook=asked.runbook,
            version=definition.runbook.version,
            title=definition.runbook.title,
            definition=definition.digest,
            cluster=asked.cluster,
            parameters=dict(asked.parameters),
            requested_by=asked.actor.id,
            roles=tuple(sorted(asked.actor.roles)),
            door=asked.door.value,
            reason=asked.reason,
            requested_at=self._parts.clock.now().wall,
            state=RunState.RUNNING,
        )
        played = self._preview.play(run, definition)
        told = self._cards.told(played.plan, played.outputs)
        shown = card(played.run, told)
        lines = [line for line in shown.lines if not line.startswith("Looking")]
        for step in played.plan.steps:
            may = "would" if step.certain else "may"
            where = f" on {step.node}" if step.node else ""
            why = clocked(step.why, run.requested_at.date()) or "later"
            lines.append(f"{may} {step.action.partition('@')[0]}{where}: {why}")
        lines.extend(
            f"ends job {loss.job} ({loss.user}, {loss.gpus} GPUs): {loss.why}"
            for loss in played.plan.jobs_end
        )
        persons = played.needed.persons
        needs = f"needs {persons} to agree: " if persons else ""
        lines.append(f"{needs}{played.needed.why}; nothing was changed")
        return done(*lines, data={"plan": played.plan.to_json(), "ends": played.ends})

    def _node(self, actor: Actor, door: Door, command: Command) -> Reply:
        cluster, nodes = self._inventory.resolve(command.words[0], command.options.get("cluster"))
        if len(nodes) != 1:
            raise CannotDo(f"one node at a time, {nodes} are {len(nodes)}")
        facts, caveat = self._observe(cluster, nodes.names[0])
        lines = [
            f"{key}: {_plain(value)}" for key, value in facts.items() if value not in (None, "")
        ]
        return done(f"{nodes} on {cluster}{caveat}", *lines, data=facts)

    def _observe(self, cluster: ClusterName, node: NodeName) -> tuple[JsonMap, str]:
        """The facts of `node.observe`, asked now, and why they are not to be trusted yet. Raises
        CannotDo when nothing answers.
        """
        call = Call(
            run=RunId("run-0"),
            step=StepId("node"),
            attempt=0,
            instance=self._parts.ledger.instance,
            cluster=cluster,
            node=node,
            arguments={"node": node},
            cause="",
            marks=marks_on(self._parts.ledger.query, cluster, (node,)),
            now=self._parts.clock.now().wall,
        )
        try:
            outcome = self._parts.registry["node.observe"].do(call)
        except (Unreadable, Refusal) as problem:
            raise CannotDo(f"{node} cannot be read: {problem}") from problem
        if isinstance(outcome, Done):
            return outcome.output, ""
        if isinstance(outcome, Wait) and outcome.seen:
            return outcome.seen, f"; {outcome.why}"
        why = outcome.error if isinstance(outcome, Failed) else outcome.why
        raise CannotDo(f"{node} cannot be read: {why}")

    # -- people -------------------------------------------------------------------------------

    def _whoami(self, actor: Actor, door: Door, _command: Command) -> Reply:
        roles = ", ".join(sorted(actor.roles)) or "no role"
        shared = "; shared: no approval, no break-glass" if actor.shared else ""
        line = f"you are {actor.name} at the {door} door, with {roles}{shared}"
        data: JsonMap = {"name": actor.name, "id": actor.id, "roles": sorted(actor.roles)}
        return done(line, data=data)

    def _can(self, actor: Actor, door: Door, command: Command) -> Reply:
        who, what = command.words[0].lstrip("@"), command.words[1]
        person = self._person(who)
        try:
            permission = Permission(what)
        except ValueError as problem:
            near = difflib.get_close_matches(what, [one.value for one in Permission], n=3)
            hint = f"; did you mean {', '.join(near)}?" if near else ""
            raise Misread(f"there is no permission {what!r}{hint}") from problem
        cluster, nodes = None, NodeSet()
        if len(command.words) > 2:
            cluster, nodes = self._inventory.resolve(
                command.words[2], command.options.get("cluster")
            )
        target = self._inventory.target(cluster or self._inventory.clusters()[0], nodes)
        question = Question(actor=person, permission=permission, target=target, door=door)
        verdict = self._gate.decide(question)
        yes = isinstance(verdict, Allowed)
        word = "may" if yes else "may not"
        line = f"{person.name} {word} {permission}: {verdict.because}"
        return done(line, data={"allowed": yes, "because": verdict.because})

    def _person(self, word: str) -> Actor:
        person = self._identities.by_name(word) or self._identities.by_slack_user(word)
        if person is None:
            known = ", ".join(one.name for one in self._identities.everybody())
            raise CannotDo(f"I cannot resolve @{word}; people here are {known}")
        return person

    def _help(self, actor: Actor, door: Door, command: Command) -> Reply:
        if command.words:
            spec = _spec_named(command.words[0])
            return done(spec.usage, spec.summary, f"Example: {spec.example}")
        shown = [spec for spec in VERBS.values() if self._may_use(actor, spec)]
        width = max(len(spec.verb) for spec in shown)
        lines = [f"{spec.verb:<{width}}  {spec.summary}" for spec in shown]
        return done(*lines, "`help VERB` shows how it is written")

    def _may_use(self, actor: Actor, spec: VerbSpec) -> bool:
        """Help lists only what this person may do somewhere (st2#2414)."""
        needed = self._needed(spec)
        return not needed or any(self._gate.anywhere(actor, one) for one in needed)

    def _needed(self, spec: VerbSpec) -> frozenset[Permission]:
        """Permissions of which one is enough to use the verb somewhere; none: everybody may."""
        library = self._parts.library
        match spec.verb:
            case Verb.RUN:
                names = library.names()
            case verb if verb in RUNBOOK_OF:
                names = (RUNBOOK_OF[verb],)
            case Verb.APPROVE | Verb.DENY:
                names = library.names()  # a plan that only wants a go needs the runbook's own
            case _:
                names = ()
        own = {library.definition(name).runbook.permission for name in names}
        said = {spec.permission} if spec.permission is not None else set()
        return frozenset(own | said | _BESIDE.get(spec.verb, frozenset()))


_BESIDE = {
    Verb.APPROVE: frozenset({Permission.BREAK_GLASS}),
    Verb.HALT: frozenset({Permission.HALT_CLEAR}),
    Verb.AUDIT: frozenset({Permission.AUDIT_MANAGE}),
}
"""What else lets somebody use a verb, by one of its options or words."""


def _spec_named(word: str) -> VerbSpec:
    try:
        return VERBS[Verb(word)]
    except ValueError as problem:
        near = difflib.get_close_matches(word, [verb.value for verb in Verb], n=3)
        hint = f"; did you mean {' or '.join(near)}?" if near else "; `help` shows what there is"
        raise Misread(f"there is no verb {word!r}{hint}") from problem


def _plain(value: Json) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(_plain(entry) for entry in value) or "none"
    if isinstance(value, Mapping):
        return " ".join(f"{key}={_plain(entry)}" for key, entry in value.items())
    return str(value)
