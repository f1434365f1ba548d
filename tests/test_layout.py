"""The house rules that no tool knows: packages, sizes, names, who reaches the outside."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from functools import lru_cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PRODUCT = ("bot", "runbooks", "actions", "audit_log", "config")
PLAYGROUND = ("bot/testbed/", "bot/standin/")
"""A cluster and a Slack workspace on one machine, for the sandbox and the tests."""
ON_NODES = "actions/remote/on_node/processes.py"
"""Starts what the node's own program needs; no process of the bot imports it."""
LONGEST_MODULE = 400
LONGEST_FUNCTION = 60
FORBIDDEN_WORDS = {"util", "utils", "helper", "helpers", "common", "manager", "handler", "misc"}
PROCESS_STARTERS = {
    "os": re.compile(r"system|popen|fork\w*|exec[lv]\w*|spawn\w*|posix_spawnp?"),
    "asyncio": re.compile(r"create_subprocess_\w+"),
    "pty": re.compile(r"spawn|fork"),
}
REACHING_BUILTINS = {
    "open",
    "input",
    "print",
    "exec",
    "eval",
    "compile",
    "__import__",
    "breakpoint",
}


def modules(*folders: str) -> list[Path]:
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@lru_cache(maxsize=1000)
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


def imports(path: Path) -> Iterator[str]:
    """Every module that is imported anywhere in the file, also inside functions."""
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def calls(path: Path) -> Iterator[tuple[str, str]]:
    """Every call in the file as (module or empty, function)."""
    for node in ast.walk(tree_of(path)):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=module), attr=name)):
                yield module, name
            case ast.Call(func=ast.Name(id=name)):
                yield "", name


def importers(module: str) -> set[str]:
    """Product modules that import it, those of the playground left out."""
    return {
        name_of(path)
        for path in modules(*PRODUCT)
        if not name_of(path).startswith(PLAYGROUND)
        and any(name == module or name.startswith(f"{module}.") for name in imports(path))
    }


def deciders() -> list[str]:
    """Files of the modules under the import contract `deciders`."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    contracts = project["tool"]["importlinter"]["contracts"]
    (contract,) = (contract for contract in contracts if contract["id"] == "deciders")
    return [f"{module.replace('.', '/')}.py" for module in contract["source_modules"]]


def test_the_top_level_packages_are_these() -> None:
    """A new folder must be placed in the layers first."""
    found = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    assert found == {*PRODUCT, "tests"}
    assert not list(ROOT.glob("*.py")), "code lies in a package"


def test_every_folder_with_code_is_a_package() -> None:
    """A folder without __init__.py is left out of the wheel and unseen by the import contracts."""
    folders = {path.parent for path in modules(*PRODUCT, "tests")}
    assert not [name_of(f) for f in sorted(folders) if not (f / "__init__.py").exists()]


def test_no_module_is_too_long_to_be_read_at_once() -> None:
    lengths = {
        name_of(path): len(path.read_text("utf-8").splitlines()) for path in modules(*PRODUCT)
    }
    assert not {name: length for name, length in lengths.items() if length > LONGEST_MODULE}


def test_no_function_is_too_long() -> None:
    long = {
        f"{name_of(path)}:{node.lineno} {node.name}"
        for path in modules(*PRODUCT, "tests")
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or 0) - node.lineno + 1 > LONGEST_FUNCTION
    }
    assert not long


def test_module_names_say_what_is_inside() -> None:
    """`utils` is a name for not having decided."""
    names = {name_of(path): set(path.stem.split("_")) for path in modules(*PRODUCT, "tests")}
    assert not {name for name, words in names.items() if words & FORBIDDEN_WORDS}


def test_every_module_says_what_it_is() -> None:
    """A test says it in its names."""
    silent = [path for path in modules(*PRODUCT) if not ast.get_docstring(tree_of(path))]
    assert not [name_of(path) for path in silent]


def test_one_module_starts_processes() -> None:
    assert importers("subprocess") == {"actions/shell.py", ON_NODES}
    assert not [name for name in importers("actions.remote.on_node") if "/on_node/" not in name]
    assert importers("multiprocessing") == set()
    others = {
        f"{name_of(path)}: {module}.{function}"
        for path in modules(*PRODUCT)
        if name_of(path) not in {"actions/shell.py", ON_NODES}
        and not name_of(path).startswith(PLAYGROUND)
        for module, function in calls(path)
        if module in PROCESS_STARTERS and PROCESS_STARTERS[module].fullmatch(function)
    }
    assert not others


def test_one_module_opens_the_database() -> None:
    assert importers("sqlite3") == {"audit_log/database.py"}
    assert importers("sqlite_utils") <= {"audit_log/database.py"}


def test_only_the_sandbox_knows_the_playground() -> None:
    """The bot that ships must not be able to reach a stand-in by accident."""
    users = importers("bot.testbed") | importers("bot.standin")
    assert not {name for name in users if "sandbox" not in name}


def test_no_shell_reads_a_command_line() -> None:
    shells = {
        name_of(path)
        for path in modules(*PRODUCT)
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.keyword)
        and node.arg == "shell"
        and not (isinstance(node.value, ast.Constant) and node.value.value is False)
    }
    assert not shells


def test_both_lists_of_deciders_are_one() -> None:
    """The import contract and the lint rules for deciders hold the same modules."""
    rules = tomllib.loads((ROOT / "ruff-deciders.toml").read_text("utf-8"))
    assert rules["include"] == deciders()
    assert not [name for name in deciders() if not (ROOT / name).exists()]


def test_a_module_that_calls_itself_pure_is_held_to_it() -> None:
    pure = {
        name_of(path)
        for path in modules(*PRODUCT)
        if re.search(r"\bPure[.;:,]", ast.get_docstring(tree_of(path)) or "")
        and not name_of(path).startswith(PLAYGROUND)
    }
    assert not pure - set(deciders()), (
        "add it to `deciders` in pyproject.toml and ruff-deciders.toml"
    )


@pytest.mark.parametrize("name", deciders())
def test_a_decider_calls_nothing_that_reaches_outside(name: str) -> None:
    """Builtins need no import, so no import contract sees them."""
    assert not {call for module, call in calls(ROOT / name) if not module} & REACHING_BUILTINS


def test_every_package_that_is_imported_is_declared() -> None:
    """A dependency of a dependency can go with its next release."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    declared = {
        re.split(r"[><=\[;]", line)[0].lower().replace("_", "-")
        for line in [*project["dependencies"], *project["optional-dependencies"]["pyslurm"]]
    }
    known = packages_distributions()
    ours = {*PRODUCT, *sys.stdlib_module_names}
    used = {name.split(".")[0] for path in modules(*PRODUCT) for name in imports(path)} - ours
    missing = {
        module
        for module in used
        if not {d.lower().replace("_", "-") for d in known.get(module, ["?"])} & declared
    }
    assert not missing


def test_every_dependency_says_why_it_is_there_and_is_pinned() -> None:
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    project = tomllib.loads(text)["project"]
    lock = (ROOT / "requirements-ci.txt").read_text("utf-8")
    for wanted in [*project["dependencies"], *project["optional-dependencies"]["dev"]]:
        assert re.search(rf'^ *"{re.escape(wanted)}", +# \w', text, re.MULTILINE), wanted
        name = re.match(r"[\w.-]+", wanted)
        assert name is not None
        pinned = re.sub(r"[._-]+", "-", name[0]).lower()
        assert f"\n{pinned}==" in f"\n{lock}", f"{wanted} is not in the lock: run make lock"


def test_what_ships_beside_the_code_goes_into_the_wheel() -> None:
    """By a rule on the ending, never by a list of files."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    endings = {pattern[1:] for pattern in project["tool"]["setuptools"]["package-data"]["*"]}
    files = [
        path
        for folder in PRODUCT
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    ]
    left_out = [p for p in files if p.suffix not in endings | {".py"}]
    assert not [name_of(path) for path in left_out]
