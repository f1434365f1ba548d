"""Every answer to bad input as it was read in review: `golden/answers.txt`.

A test says what it was told under a name; `NODEWARDEN_WRITE_GOLDENS=1` puts it into the file.
"""

import fcntl
import os
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path

PATH = Path(__file__).parent / "golden" / "answers.txt"
HEAD = (
    "What the bot answers to bad input and in faults, by test. Each says what, where and what to do\n"
    "next. Written by NODEWARDEN_WRITE_GOLDENS=1 pytest tests/faults.\n"
)
_CHANGING = (
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)?"), "<time>"),
    (re.compile(r"\b(\d\d-\d\d )?\d\d:\d\d(:\d\d)? UTC"), "<time> UTC"),
    (re.compile(r"/[0-9a-f]{8}\]"), "/<bot>]"),
    (re.compile(r"\(\d+ s\)"), "(<n> s)"),
    (re.compile(r"\bpid \d+ on [^\s)]+"), "pid <pid> on <host>"),
    (re.compile(r"\b[0-9a-f]{16,64}\b"), "<digest>"),
    # One bot hears the refusals of a whole file within a minute, and says so from the 31st on.
    (
        re.compile(
            r"(\n| · )?too many: more than \d+ of your requests were refused in a minute[^\n]*"
        ),
        "",
    ),
    (re.compile(r"<folder>[^\s:;,)]*/tmp[^\s/]*"), "<folder>"),
)


def plainly(text: str, folders: Mapping[str, str] | None = None) -> str:
    """Without what differs from run to run."""
    for folder, word in (folders or {}).items():
        text = text.replace(folder, word)
    for pattern, word in _CHANGING:
        text = pattern.sub(word, text)
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


def golden() -> dict[str, str]:
    """What the file holds, by name."""
    if not PATH.exists():
        return {}
    parts = re.split(r"(?m)^## (.*)\n", PATH.read_text("utf-8"))
    return {name: text.strip("\n") for name, text in zip(parts[1::2], parts[2::2], strict=True)}


def told(name: str, text: str, folders: Mapping[str, str] | None = None) -> None:
    """This is what was answered; fails when it is not what was read in review."""
    now = plainly(text, folders)
    assert now
    assert "Traceback" not in now, now
    if os.environ.get("NODEWARDEN_WRITE_GOLDENS"):
        _write(name, now)
        return
    assert now == golden().get(name), f"{name}: read it, then write the golden file again"


def _write(name: str, text: str) -> None:
    """Put it into the file, also where several processes of pytest do so at once."""
    with (Path(tempfile.gettempdir()) / "nodewarden-answers.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        parts = {**golden(), name: text}
        beside = PATH.with_suffix(".new")
        body = "".join(f"\n## {key}\n{parts[key]}\n" for key in sorted(parts))
        beside.write_text(HEAD + body, "utf-8")
        beside.replace(PATH)
