"""The node agent: a child process whose one thread owns ClusterShell and talks ssh to the nodes.

Started by `actions.remote.agent_process` as `python -m actions.remote.agent <fan-out> <ssh words>`.
Reads requests from stdin and writes one answer per node to stdout, each a JSON line; ends when
stdin does. It enforces the fan-out, the cap on output and the time limits. It decides nothing, and
never says exit code 0 for a node that gave no answer.
"""

import os
import sys
from collections.abc import Sequence

import config.node_names  # noqa: F401  first: it turns ClusterShell's group files and upcalls off

from ClusterShell.Task import Task, task_self  # isort: skip
from ClusterShell.Worker.Ssh import SshClient, WorkerSsh  # isort: skip
from ClusterShell.Worker.Worker import StreamWorker  # isort: skip

from actions.remote.wire import Answer, Request, answer_line, read_request
from config.node_names import NodeName

_SSH_FAILED = 255
"""ssh's own exit code; a command that ends so cannot be told from it and counts as no answer."""


class _Client(SshClient):  # type: ignore[misc]  # ClusterShell has no types
    """One ssh process. Reads raw bytes: ClusterShell's own reader keeps a line without end whole."""

    def _build_cmd(self) -> tuple[list[str], None]:
        connection: _Connection = self.worker
        return connection.argv, None

    def _handle_read(self, sname: str) -> None:
        self.worker.collect(sname, self._read(sname))

    def _flush_read(self, sname: str) -> None:
        """Nothing is held back."""


class _Connection(WorkerSsh):  # type: ignore[misc]  # ClusterShell has no types
    """One request's command on one node.

    One worker per node, and none of ClusterShell's own records: its task keeps every worker's
    buffers and codes until it is run anew, which for a process that lives for months is a leak.
    """

    SHELL_CLASS = _Client

    def __init__(self, request: Request, node: NodeName, ssh: Sequence[str]) -> None:
        """`ssh` is the program with the options that hold for every request."""
        self.argv = [*ssh, *request.options, "--", node, request.command]
        self._request = request
        self._node = node
        self._kept = {self.SNAME_STDOUT: bytearray(), self.SNAME_STDERR: bytearray()}
        self._truncated = False
        # The command is a placeholder here: ClusterShell would replace %hosts in a real one.
        WorkerSsh.__init__(
            self, node, handler=None, timeout=request.limit_ms / 1000, command="-", stderr=True
        )

    def collect(self, stream: str, data: bytes) -> None:
        """Keep what fits under the cap; the rest is read and dropped, so the exit code still comes."""
        kept = self._kept[stream]
        room = self._request.cap - len(kept)
        kept += data[:room]
        self._truncated = self._truncated or len(data) > room

    def _on_start(self, _key: str) -> None:
        """No input for any command."""
        self.set_write_eof()

    def _on_node_close(self, _node: str, rc: int) -> None:
        if rc == _SSH_FAILED:
            self._answer(None, f"ssh: {_last_line(self._text(self.SNAME_STDERR)) or 'failed'}")
        else:
            self._answer(rc, "")

    def _on_node_timeout(self, _node: str) -> None:
        self._answer(None, f"no answer within {self._request.limit_ms / 1000:g} s")

    def _answer(self, exit_code: int | None, lost: str) -> None:
        _write(
            Answer(
                id=self._request.id,
                node=self._node,
                exit_code=exit_code,
                output=self._text(self.SNAME_STDOUT),
                errors=self._text(self.SNAME_STDERR),
                truncated=self._truncated,
                lost=lost,
            )
        )

    def _text(self, stream: str) -> str:
        return self._kept[stream].decode("utf-8", errors="backslashreplace")


class _Requests(StreamWorker):  # type: ignore[misc]  # ClusterShell has no types
    """Our stdin, watched by the same engine as the connections: so one thread serves all."""

    def __init__(self, task: Task, ssh: Sequence[str]) -> None:
        """Connections go to `task`."""
        StreamWorker.__init__(self, handler=None)
        self._task = task
        self._ssh = ssh
        self.set_reader("requests", 0)

    def _on_start(self, key: object) -> None:
        """Nothing to prepare."""

    def _on_msgline(self, _key: object, line: bytes, _sname: str) -> None:
        request = read_request(line)
        for node in request.nodes:
            self._task.schedule(_Connection(request, node, self._ssh))

    def _on_close(self, _key: object) -> None:
        """The bot is gone or wants us gone; our ssh processes die with this thread."""
        raise SystemExit(0)


def _write(answer: Answer) -> None:
    line = memoryview(answer_line(answer))
    while line:
        line = line[os.write(1, line) :]


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:300] if lines else ""


def main(words: Sequence[str]) -> None:
    """Serve until stdin ends. `words`: the fan-out, then ssh and its options."""
    task = task_self()
    # The watched stdin takes one place of the fan-out for itself.
    task.set_info("fanout", int(words[0]) + 1)
    task.schedule(_Requests(task, words[1:]))
    task.resume()


if __name__ == "__main__":
    main(sys.argv[1:])
