"""A bot as its users have it: a process of its own, under its own OS user, asked through its doors."""

import json
import os
import pwd
import shutil
import signal
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bot.testbed import SlurmTestbed
from tests.patience import DEADLINE

CONFIG = """\
bot: {{data_folder: {folder}/data}}
{slack}
clusters:
  {cluster}:
    kind: slurm
    slurm_conf: {slurm_conf}
    ssh_config: {ssh_config}
    units: [slurmd]
    channel: {channel}
    {canary}
    pools:
      train: {{partitions: [train], max_out: 4}}
      spare: {{nodes: "gpu-[11-12]", max_out: 1}}
    protected: ctl-1
people:
  root: {{os_users: [root], roles: [admin], shared: true}}
  ann: {{os_users: [nwann], slack: [{ann}], roles: [oncall]}}
  ben: {{os_users: [nwben], slack: [{ben}], roles: [oncall]}}
  vic: {{os_users: [nwvic], slack: [{vic}], roles: [viewer]}}
pages:
  - {{kind: alertmanager, url: "http://127.0.0.1:{pager_port}"}}
anchors:
  files: [{folder}/anchors]
"""


@dataclass
class Answer:
    """What one command of the command line gave back."""

    code: int
    text: str
    lines: list[dict[str, Any]] = field(default_factory=list)
    """With `--json`: one object a line."""

    @property
    def run(self) -> str:
        """The run that was started."""
        return str(self.lines[0]["reply"]["run"])

    @property
    def card(self) -> dict[str, Any]:
        """The last card."""
        return dict([line["card"] for line in self.lines if "card" in line][-1])


class ServedBot:
    """`nodewarden serve` under the bot's user of a testbed."""

    def __init__(self, testbed: SlurmTestbed, folder: Path, **places: object) -> None:
        self.testbed = testbed
        self.folder = folder
        self.data = folder / "data"
        given = {
            "slack": "",
            "channel": "C0OPS",
            "canary": "",
            "ann": "T0TEST/U0ANN",
            "ben": "T0TEST/U0BEN",
            "vic": "T0TEST/U0VIC",
            "pager_port": 9,
        } | places
        folder.mkdir()
        owner = pwd.getpwnam(testbed.bot_user)
        shutil.chown(folder, owner.pw_uid, owner.pw_gid)
        self.config = folder / "nodewarden.yaml"
        self.config.write_text(
            CONFIG.format(
                folder=folder,
                cluster=testbed.options.cluster,
                slurm_conf=testbed.slurm_conf,
                ssh_config=testbed.ssh_config,
                **given,
            )
        )
        self.process: subprocess.Popen[bytes] | None = None
        self.environment: dict[str, str] = {}

    def start(self) -> None:
        """Serve, and wait until the socket answers and the cluster was read."""
        argv = [*self.testbed.bot_python(), "-m", "bot.cli", "serve", "--config", str(self.config)]
        environment = {**os.environ, **self.environment}
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                self.testbed.as_bot(argv), cwd="/", env=environment, stderr=log
            )
        try:
            self.testbed.wait_for(self._ready, "the bot answers and has read the cluster")
        except BaseException:
            self.kill()  # no fixture ends a bot that never became ready
            raise

    def _ready(self) -> bool:
        if self.process is not None and self.process.poll() is not None:
            raise AssertionError(f"the bot ended: {self.log()}")
        if not (self.data / "nodewarden.sock").exists():
            return False
        answer = self.ask("status")
        return answer.code == 0 and "no answer" not in answer.text

    def log(self) -> str:
        """What the bot wrote to standard error."""
        return (self.folder / "log").read_text("utf-8", "replace")

    def stop(self) -> None:
        """As a service manager does it."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            assert self.process.wait(DEADLINE) == 0, self.log()

    def kill(self) -> None:
        """As the kernel does it."""
        if self.process is not None:
            self.process.kill()
            self.process.wait(DEADLINE)

    def ask(self, *words: str, user: str = "root") -> Answer:
        """One command as this OS user."""
        return self._command(words, user)

    def json(self, *words: str, user: str = "root") -> Answer:
        """One command with `--json`."""
        answer = self._command((*words, "--json"), user)
        answer.lines = [json.loads(line) for line in answer.text.splitlines() if line[:1] == "{"]
        return answer

    def _command(self, words: tuple[str, ...], user: str) -> Answer:
        python = self.testbed.bot_python()
        verb, *rest = words
        socket = ("--socket", str(self.data / "nodewarden.sock"))
        argv = [*python, "-m", "bot.cli", verb, *socket, *rest]
        if user != "root":
            argv = self.testbed.as_user(user, argv)
        done = subprocess.run(argv, cwd="/", capture_output=True, timeout=2 * DEADLINE, check=False)
        return Answer(
            code=done.returncode,
            text=(done.stdout + done.stderr).decode("utf-8", "backslashreplace"),
        )
