"""The documentation says what the program does: everything is there, and nothing is stale."""

import re
from pathlib import Path

import pytest

from config import permissions
from config.fields import Section
from config.load import SHIPPED_ROLES
from config.permissions import Permission
from config.settings import Settings
from config.yaml_reader import read
from runbooks.machine import RunState
from tests.write_reference import FOLDER, PAGES, member_texts, named, sections, shipped_roles

ROOT = Path(__file__).parents[1]
SECTIONS = dict(sections((), Settings))
PROSE = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
UNSAID = re.compile(r"(?<!\w)/(?:work|root|tmp)/|\.\./shared", re.IGNORECASE)


@pytest.mark.parametrize("name", PAGES)
def test_the_reference_is_what_the_code_says(name: str) -> None:
    """`make docs` writes it again."""
    assert (FOLDER / name).read_text("utf-8") == PAGES[name]()


def test_no_page_of_the_reference_is_left_over() -> None:
    assert {path.name for path in FOLDER.iterdir()} == set(PAGES)


@pytest.mark.parametrize("path", SECTIONS, ids=".".join)
def test_every_setting_has_a_text_and_says_its_default(path: tuple[str, ...]) -> None:
    for name, field in named(SECTIONS[path]):
        assert field.description, name
        default = field.get_default(call_default_factory=True)
        if not field.is_required() and not isinstance(default, Section):
            assert "Default" in field.description, name


@pytest.mark.parametrize("path", SECTIONS, ids=".".join)
def test_every_setting_stands_in_the_example(path: tuple[str, ...]) -> None:
    """Under its own section: the keys of the example at that place, over all its names."""
    document = read((ROOT / "config/example.yaml").read_text("utf-8"), "example.yaml")
    depths = {
        position
        for position in document.positions
        if len(position) == len(path) + 1
        and all(want in {"NAME", "N", have} for want, have in zip(path, position, strict=False))
    }
    present = {position[-1] for position in depths}
    assert not {name for name, _ in named(SECTIONS[path])} - present


def test_every_permission_says_what_it_allows_and_some_role_holds_it() -> None:
    texts = member_texts(permissions, "Permission")
    assert set(texts) == {permission.name for permission in Permission}
    held = {
        p for role in shipped_roles().values() for grant in role.grants for p in grant.permissions
    }
    assert held == set(Permission)


def test_roles_on_the_page_are_those_of_the_file() -> None:
    page = (FOLDER / "permissions.md").read_text("utf-8")
    for name in re.findall(r"^  ([a-z]+):$", SHIPPED_ROLES.read_text("utf-8"), re.MULTILINE):
        assert f"- `{name}`: " in page


def test_the_glossary_has_each_state_of_a_run_and_each_section_word() -> None:
    glossary = (ROOT / "docs/glossary.md").read_text("utf-8")
    words = [state.value for state in RunState]
    words += "actor anchor approval budget cause drain halt hands-off intent ledger mark plan pool".split()
    assert not [word for word in words if word not in glossary.lower()]


@pytest.mark.parametrize("path", PROSE, ids=lambda path: path.name)
def test_links_lead_somewhere(path: Path) -> None:
    targets = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", path.read_text("utf-8"))
    local = [target for target in targets if "://" not in target]
    assert not [target for target in local if not (path.parent / target).exists()]


@pytest.mark.parametrize("path", PROSE, ids=lambda path: path.name)
def test_files_and_make_targets_that_are_named_exist(path: Path) -> None:
    text = path.read_text("utf-8")
    makefile = (ROOT / "Makefile").read_text("utf-8")
    targets = set(re.findall(r"`make ([a-z-]+)`", text))
    assert not {
        target for target in targets if not re.search(rf"^{target}:", makefile, re.MULTILINE)
    }
    files = re.findall(
        r"`((?:bot|runbooks|actions|audit_log|config|tests|docs)/[\w./-]+\.\w+)`", text
    )
    assert not [name for name in files if not (ROOT / name).exists()]


@pytest.mark.parametrize("path", PROSE, ids=lambda path: path.name)
def test_no_page_names_a_place_on_somebodys_machine(path: Path) -> None:
    assert not UNSAID.findall(path.read_text("utf-8"))
