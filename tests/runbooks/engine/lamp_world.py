"""Lamps, and the actions that look at them and switch them: the world of `tests.runbooks.engine.lamps`.

A lamp knows who switched it on (`us:<run>` or a person), so that ownership, foreign acts, lost
answers and late effects can be set up exactly.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta

from actions.contract import (
    Action,
    ActionSpec,
    Call,
    Done,
    Failed,
    FailureKind,
    Field,
    JobLoss,
    Observation,
    Outcome,
    Refusal,
    Standing,
    Unknown,
    Unreadable,
    ValueType,
    Wait,
)
from config.permissions import Permission


@dataclass
class Lamps:
    """The world."""

    owner: dict[str, str] = field(default_factory=dict)
    """Lamp to who switched it on; absent: off."""
    boot: dict[str, str] = field(default_factory=dict)
    jobs: dict[str, tuple[JobLoss, ...]] = field(default_factory=dict)
    effects: list[str] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)
    """For the next writes, in order: `lost` (applied, no answer), `dropped` (not applied, no answer),
    `retry`, `refuse`; nothing: all goes well."""
    near: list[str] = field(default_factory=list)
    """What `lamp.near` finds."""
    dark: bool = False
    """Looks get no answer."""
    gone: set[str] = field(default_factory=set)
    """Lamps that were taken away for good: a look at one is refused."""
    before_write: Callable[[], object] | None = None
    after_look: Callable[[], object] | None = None


def _spec(name: str, **more: object) -> ActionSpec:
    return ActionSpec(
        name=name,
        version=1,
        summary="",
        permission=Permission.NODE_READ if more.get("looks_only") else Permission.NODE_DRAIN,
        parameters={"node": Field(type=ValueType.NODE, help="")},
        time_limit=timedelta(seconds=20),
        **more,  # type: ignore[arg-type]
    )


class LampRead:
    """`lamp.read`: whether it is on."""

    spec = _spec("lamp.read", looks_only=True)

    def __init__(self, world: Lamps) -> None:
        self.world = world

    def look(self, call: Call) -> Observation:
        raise AssertionError("a step that only looks is never looked at before")

    def do(self, call: Call) -> Outcome:
        if self.world.dark:
            raise Unreadable("the lamp does not answer")
        return Done(output={"owner": self.world.owner.get(str(call.node), "")})


class LampNear:
    """`lamp.near`: the lamps beside one."""

    spec = replace(
        _spec("lamp.near", looks_only=True),
        output={"nodes": Field(type=ValueType.NODES, help="")},
    )

    def __init__(self, world: Lamps) -> None:
        self.world = world

    def look(self, call: Call) -> Observation:
        raise AssertionError("a step that only looks is never looked at before")

    def do(self, call: Call) -> Outcome:
        return Done(output={"nodes": list(self.world.near)})


class LampLit:
    """`lamp.lit`: waits until it is on."""

    spec = _spec("lamp.lit", looks_only=True)

    def __init__(self, world: Lamps) -> None:
        self.world = world

    def look(self, call: Call) -> Observation:
        raise AssertionError("a step that only looks is never looked at before")

    def do(self, call: Call) -> Outcome:
        if str(call.node) in self.world.owner:
            return Done(output={"lit": True})
        return Wait(until=call.now + timedelta(seconds=10), why="still dark")


class LampOn:
    """`lamp.on`: switches it on, in our name."""

    spec = _spec(
        "lamp.on", sets_mark="light", undo="lamp.off", takes_node_out=True, may_end_jobs=True
    )

    def __init__(self, world: Lamps) -> None:
        self.world = world

    def look(self, call: Call) -> Observation:
        world, node = self.world, str(call.node)
        if world.dark:
            raise Unreadable("the lamp does not answer")
        if node in world.gone:
            raise Refusal(f"there is no lamp {node}")
        owner = world.owner.get(node, "")
        seen = Observation(
            standing=Standing.NOT_SO if not owner else _standing(owner, call),
            why=f"lit by {owner}" if owner else "dark",
            boot_id=world.boot.get(node, "b1"),
            owner=owner or "nobody",
            state="lit" if owner else "dark",
            jobs_end=world.jobs.get(node, ()),
        )
        if world.after_look is not None:
            world.after_look()
        return seen

    def do(self, call: Call) -> Outcome:
        world, node = self.world, str(call.node)
        if world.before_write is not None:
            world.before_write()
        answer = world.answers.pop(0) if world.answers else ""
        if answer == "retry":
            return Failed(error="busy", kind=FailureKind.RETRYABLE)
        if answer == "refuse":
            return Failed(error="no such lamp", kind=FailureKind.PERMANENT)
        if answer != "dropped":
            world.owner[node] = f"us:{call.run}"
            world.effects.append(f"on {node} {call.effect_id}")
        return Unknown(why="no answer in time") if answer else Done(mark_text=f"nw {call.run}")


class LampSwap(LampOn):
    """`lamp.swap`: switches one on in the place of others."""

    spec = replace(
        LampOn.spec,
        name="lamp.swap",
        parameters={
            "node": Field(type=ValueType.NODE, help=""),
            "others": Field(type=ValueType.NODES, help=""),
        },
    )


class LampOff:
    """`lamp.off`: gives back what we lit."""

    spec = _spec("lamp.off", clears_mark="light")

    def __init__(self, world: Lamps) -> None:
        self.world = world

    def look(self, call: Call) -> Observation:
        node = str(call.node)
        if node in self.world.gone:
            raise Refusal(f"there is no lamp {node}")
        owner = self.world.owner.get(node, "")
        standing = Standing.NOT_SO
        if not owner:
            standing = Standing.OURS
        elif owner != f"us:{call.run}":
            standing = Standing.BLOCKED
        return Observation(standing=standing, why=f"lit by {owner or 'nobody'}", owner=owner)

    def do(self, call: Call) -> Outcome:
        self.world.owner.pop(str(call.node), None)
        self.world.effects.append(f"off {call.node} {call.effect_id}")
        return Done()


def _standing(owner: str, call: Call) -> Standing:
    ours = any(mark.kind == "light" for mark in call.marks) and owner == f"us:{call.run}"
    return Standing.OURS if ours else Standing.FOREIGN


def lamp_actions(world: Lamps) -> dict[str, Action]:
    """Every action on these lamps, by name."""
    kinds = (LampRead, LampNear, LampSwap, LampLit, LampOn, LampOff)
    return {kind.spec.name: kind(world) for kind in kinds}
