"""The panels beside the channels: the nodes as a grid, the plugs of the chosen one, the queue.

The cluster is looked at in a thread of its own while somebody looks at the page: a controller that
hangs must not hold up the stand-in for Slack.
"""

import threading
import time
from collections.abc import Callable, Sequence

from bot.sandbox import grid
from bot.sandbox.playground import Playground, PlugRefused, View
from bot.standin.page import Panel, PanelRow
from bot.standin.records import SlackError

LOOK_EVERY = 1.0
LOOKED_AT = 10.0
"""Seconds after the last look at the page in which the cluster is still looked at."""
SHOWN_JOBS = 12


class Board:
    """The panels of one sandbox."""

    def __init__(self, playground: Playground) -> None:
        """Looks at the cluster from `start` on."""
        self._playground = playground
        self._view = playground.view()
        self._picked = self._view.nodes[0].name if self._view.nodes else ""
        self._asked_at = 0.0
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._look, name="sandbox-board", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """Stop looking."""
        self._ending.set()
        self._thread.join()

    def panels(self) -> tuple[Panel, ...]:
        """For the page."""
        return (
            Panel(title="Nodes", rows=self._nodes, press=self._pick),
            Panel(title="The chosen node", rows=self._chosen, press=self._pull_node),
            Panel(title="The cluster", rows=self._cluster, press=self._pull_cluster),
        )

    def _look(self) -> None:
        while not self._ending.wait(LOOK_EVERY):
            if time.monotonic() - self._asked_at < LOOKED_AT:
                self._refresh()

    def _refresh(self) -> None:
        seen = self._playground.view()
        if seen.trouble:
            seen = View(nodes=self._view.nodes, jobs=self._view.jobs, trouble=seen.trouble)
        self._view = seen

    def _nodes(self) -> Sequence[PanelRow]:
        self._asked_at = time.monotonic()
        view = self._view
        cells = tuple(
            (f"{grid.short(node.name)} {grid.mark(node).text}", node.name) for node in view.nodes
        )
        rows = [PanelRow(text=view.trouble, grid=cells) if view.trouble else PanelRow(grid=cells)]
        rows.append(PanelRow(text=grid.legend(view.nodes)))
        return rows

    def _pick(self, press: str) -> None:
        if self._view.node(press) is None:
            raise SlackError(f"there is no node {press}")
        self._picked = press

    def _chosen(self) -> Sequence[PanelRow]:
        node = self._view.node(self._picked)
        if node is None:
            return ()
        reason = f"\nReason: {node.reason}" if node.reason else ""
        text = f"{node.name}: {'+'.join(node.words)} ({grid.mark(node).means}){reason}"
        buttons = tuple((words, words) for words in self._playground.node_plugs)
        return (PanelRow(text=text, buttons=buttons),)

    def _cluster(self) -> Sequence[PanelRow]:
        jobs = self._view.jobs
        lines = [
            f"job {job.id} {job.name[:24]} ({job.user}) {job.state} {job.nodes} restarts {job.restarts}"
            for job in jobs[:SHOWN_JOBS]
        ]
        more = [f"and {len(jobs) - SHOWN_JOBS} more jobs"] if len(jobs) > SHOWN_JOBS else []
        buttons = tuple((words, words) for words in self._playground.cluster_plugs)
        return (PanelRow(text="\n".join([*lines, *more]) or "no job", buttons=buttons),)

    def _pull_node(self, press: str) -> None:
        plug, node = self._playground.node_plugs.get(press), self._picked
        if plug is not None:
            self._pull(lambda: plug(node))

    def _pull_cluster(self, press: str) -> None:
        plug = self._playground.cluster_plugs.get(press)
        if plug is not None:
            self._pull(plug)

    def _pull(self, plug: Callable[[], None]) -> None:
        try:
            plug()
        except PlugRefused as refusal:
            raise SlackError(str(refusal)) from refusal
        finally:
            self._refresh()
