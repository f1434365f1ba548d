"""The `views.*` methods: modals in a stack of three, and home tabs.

Called by the Web API and by the answers to submissions, under the world's lock.
"""

import json
from dataclasses import dataclass, field

from bot.standin import block_rules
from bot.standin.arguments import Arguments
from bot.standin.records import (
    Payload,
    SlackError,
    StoredView,
)
from bot.standin.tickets import Tickets
from bot.standin.world import World

STACK = 3


@dataclass(slots=True, kw_only=True)
class ViewMethods:
    """Modals and home tabs of one workspace."""

    world: World
    tickets: Tickets
    sizes: bool = True
    home_enabled: bool = True
    _hashes: int = field(default=0, init=False)

    def open(self, args: Arguments) -> Payload:
        """`views.open`: replaces whatever stack the user had."""
        body = self._body(args)
        user = self.tickets.exchange_trigger(self._trigger(args))
        self.close_all(user)
        return {"view": self.push_for(user, body).as_payload()}

    def push(self, args: Arguments) -> Payload:
        """`views.push`: onto the stack of the user whose trigger it is."""
        body = self._body(args)
        user = self.tickets.exchange_trigger(self._trigger(args))
        return {"view": self.push_for(user, body).as_payload()}

    def update(self, args: Arguments) -> Payload:
        """`views.update`: by id or external id, refused when the hash is an older one."""
        view = self._find(args)
        if args.has("hash") and args.text("hash") != view.hash:
            raise SlackError("hash_conflict")
        self.replace(view, self._body(args))
        return {"view": view.as_payload()}

    def publish(self, args: Arguments) -> Payload:
        """`views.publish`: the home tab of one user."""
        if not self.home_enabled:
            raise SlackError("not_enabled")
        user = args.text("user_id")
        if user not in self.world.users:
            raise SlackError("user_not_found")
        body = self._body(args)
        known = self.world.homes.get(user)
        if known is None:
            view = self._new(user, body)
            self.world.homes[user] = view.id
            return {"view": view.as_payload()}
        view = self.world.views[known]
        if args.has("hash") and args.text("hash") != view.hash:
            raise SlackError("hash_conflict")
        self.replace(view, body)
        return {"view": view.as_payload()}

    def push_for(self, user: str, body: Payload) -> StoredView:
        """Put a modal on top of the user's stack."""
        stack = self.world.stacks.setdefault(user, [])
        if len(stack) >= STACK:
            raise SlackError("push_limit_reached")
        view = self._new(user, body)
        if stack:
            view.root_id = stack[0]
            view.previous_id = stack[-1]
        stack.append(view.id)
        return view

    def replace(self, view: StoredView, body: Payload) -> None:
        """Show another body in the same view; older hashes conflict from now on."""
        view.body = body
        view.hash = self._next_hash()

    def close(self, view: StoredView) -> None:
        """Take a modal and what lies above it off the screen."""
        stack = self.world.stacks.get(view.user, [])
        if view.id in stack:
            del stack[stack.index(view.id) :]

    def close_all(self, user: str) -> None:
        """Take the whole stack off the screen."""
        self.world.stacks[user] = []

    def check(self, body: object) -> None:
        """Refuse a view that Slack would refuse."""
        if self.sizes:
            block_rules.check_view(body, len(json.dumps(body)))

    def _new(self, user: str, body: Payload) -> StoredView:
        name = self.world.new_id("V")
        view = StoredView(id=name, user=user, body=body, hash=self._next_hash(), root_id=name)
        self.world.views[name] = view
        return view

    def _find(self, args: Arguments) -> StoredView:
        wanted = args.values.get("view_id") or args.values.get("external_id")
        for view in self.world.views.values():
            if wanted is not None and wanted in (view.id, view.body.get("external_id")):
                return view
        raise SlackError("not_found")

    def _body(self, args: Arguments) -> Payload:
        body: Payload = args.json("view")
        self.check(body)
        return body

    def _trigger(self, args: Arguments) -> str:
        return args.text("trigger_id", str(args.values.get("interactivity_pointer", "")))

    def _next_hash(self) -> str:
        self._hashes += 1
        return f"{int(self.world.seconds())}.{self._hashes:08x}"
