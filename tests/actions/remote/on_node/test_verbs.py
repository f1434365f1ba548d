"""The fixed list: what is not on it is refused, and no argument ever becomes an option or a program."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import actions.remote.on_node as package
from actions.remote import packing
from actions.remote.on_node import files, main, network, processes, stacks, words
from tests.actions.remote.on_node.installed import Installed

REFUSED = 64
HOSTILE = [
    "",
    "-h",
    "--help",
    "slurmd;reboot",
    "$(reboot)",
    "`reboot`",
    "slurmd\n",
    "slurmd\nreboot",
    "../slurmd",
    "sshd",
    "slurmd.service.d/../x",
    "-H root@other",
    "slurmd sshd",
    "ѕlurmd",
    "x" * 5000,
]


@pytest.mark.parametrize("words", [(), ("",), ("reboot",), ("sh", "-c", "id"), ("version", "x")])
def test_what_is_not_on_the_list_is_refused_with_the_list(
    node: Installed, words: tuple[str, ...]
) -> None:
    done = node.run(*words)
    assert done.code == REFUSED
    assert done.out == ""
    assert done.err.startswith("refused: ")


@pytest.mark.parametrize("word", HOSTILE)
def test_a_hostile_unit_starts_nothing(node: Installed, word: str) -> None:
    node.counting()
    for verb in ("service-show", "service-start", "service-restart", "logs"):
        more = ("nw-a-run-1-s-1",) if verb in {"service-start", "service-restart"} else ()
        assert node.run(verb, word, *more).code == REFUSED
    assert node.started() == []


@pytest.mark.parametrize("word", [*HOSTILE, "slurmd", "nw-", "nw-a/b", "nw-a b", "nw-a-1\n"])
def test_a_hostile_effect_id_starts_nothing(node: Installed, word: str) -> None:
    node.counting()
    assert node.run("service-start", "slurmd", word).code == REFUSED
    assert node.started() == []
    assert not (node.state / "effects").exists()


SAFE = frozenset(
    {"systemctl", "systemd-run", "journalctl", "dmesg", "slurmd", "nvidia-smi", "munge", "unmunge"}
)
ARGUMENTS = st.one_of(
    st.sampled_from(["slurmd", "nw-a-1", "nobody", "/srv/x", "*", "job:1", "127.0.0.1", "22"]),
    st.sampled_from(HOSTILE[:-1]),
    st.text(max_size=12),
)


@given(verb=st.sampled_from([*main.VERBS, "reboot"]), rest=st.lists(ARGUMENTS, max_size=4))
def test_no_argument_names_a_program_or_passes_for_an_option(verb: str, rest: list[str]) -> None:
    started: list[list[str]] = []

    def start(argv: list[str], *_: object, **__: object) -> processes.Ended:
        started.append(argv)
        return processes.Ended(code=0)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(processes, "run", start)
        patch.setattr(files, "_read", lambda *_: processes.Ended(code=0))
        patch.setattr(stacks, "stacks", lambda _: processes.Ended(code=0))
        patch.setattr(network, "tried", lambda *_: processes.Ended(code=0))
        patch.setattr(main, "open_site", _site)
        found = main.answer([verb, *rest], "/nowhere/nodewarden-helper")
    for argv in started:
        assert argv[0] in SAFE
        given = [word for word in argv if word in rest and word not in {"slurmd", "--previous"}]
        assert not [word for word in given if word.startswith("-")]
        assert all(word in {"nw-a-1", "22"} or word.isdecimal() for word in given)
    assert found.code in {0, REFUSED} or verb == "version"


def _site(program: str) -> object:
    from actions.remote.on_node.site import Site

    return Site(program=program, state=f"/tmp/nodewarden-test-{os.getpid()}-never-made")


@given(st.text())
def test_an_accepted_path_has_no_detour_and_no_control_character(text: str) -> None:
    try:
        found = words.below(words.path(text), ("/srv",))
    except words.Refused:
        return
    assert found.startswith("/srv/")
    assert ".." not in found.split("/")
    assert found.isprintable() or not any(ord(letter) < 32 for letter in found)


def test_nobody_but_root_is_answered(node: Installed) -> None:
    argv = [
        "setpriv",
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
        str(node.program),
        "boot",
    ]
    done = subprocess.run(argv, capture_output=True, check=False)
    assert done.returncode == REFUSED
    assert b"sudo" in done.stderr


def test_the_program_says_its_digest_and_is_the_same_bytes_each_time(node: Installed) -> None:
    again = subprocess.run(
        [sys.executable, "-c", "from actions.remote.packing import digest; print(digest())"],
        env={"PYTHONPATH": str(Path(packing.__file__).parents[2])},
        capture_output=True,
        text=True,
        check=True,
    )
    assert node.run("version").json["digest"] == packing.digest() == again.stdout.strip()


def test_a_changed_program_says_another_digest(node: Installed) -> None:
    node.program.write_bytes(packing.program() + b"\n")
    assert node.run("version").json["digest"] != packing.digest()


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda path: path.chmod(0o664), "others than root may write it"),
        (lambda path: os.chown(path, 65534, 0), "belongs to root"),
        (lambda path: path.write_text("unit = slurmd\n"), "line 1"),
        (lambda path: path.write_text("units = slurmd;x\n"), "line 1"),
        (lambda path: path.write_text("roots = /etc\n"), "holds no files of users"),
        (lambda path: path.write_bytes(b"units = \xff\n"), "ASCII"),
        (lambda path: (path.unlink(), path.symlink_to("/etc/hostname")), "helper.conf"),
    ],
)
def test_a_configuration_that_cannot_be_trusted_stops_everything(
    node: Installed, change: object, why: str
) -> None:
    node.counting()
    change(node.configuration)  # type: ignore[operator]
    done = node.run("service-start", "slurmd", "nw-a-1")
    assert done.code == 78
    assert why in done.err
    assert node.started() == []


LATER_THAN_3_8 = {"removeprefix", "removesuffix", "is_relative_to", "pidfd_open", "bit_count"}


@pytest.mark.parametrize(
    "path", sorted(Path(package.__path__[0]).glob("*.py")), ids=lambda p: p.name
)
def test_each_module_is_python_3_8_of_the_standard_library(path: Path) -> None:
    tree = ast.parse(path.read_text("utf-8"), feature_version=(3, 8))
    names = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert not names & LATER_THAN_3_8
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            top = (node.module or "").split(".")[0]
            ours = (node.module or "").startswith("actions.remote.on_node")
            assert ours or top in sys.stdlib_module_names
    first = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    assert not tree.body[1:] or first[0].module == "__future__"
