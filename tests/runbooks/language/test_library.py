"""A library is held together: calls, versions, and released files that nobody edits."""

from pathlib import Path

import pytest

from runbooks.definition import Definition, DefinitionError, pin
from runbooks.diff import diff
from runbooks.library_files import lint, load_library, release_file
from runbooks.lint import Library, examine
from runbooks.load import digest_of, load_runbook
from runbooks.problems import Problem, Problems
from runbooks.release import RELEASED, ReleaseRefused, check_released, release
from tests.runbooks.language.specs import REGISTRY, RUNBOOK, mend
from tests.runbooks.language.test_causes_files import TABLE

CALLER = """\
runbook: caller
version: 1
title: Calls another
permission: node.repair
parameters:
  node: {type: node, help: the node}
steps:
  - id: facts
    do: node.observe
    with: {node: "{{ node }}"}
  - id: cause
    do: diagnose
    with: {causes: small, facts: "{{ steps.facts.output }}"}
  - id: child
    call: mend
    with: {node: "{{ node }}"}
"""
MEND, MEND2 = "library/mend/v1.yaml", "library/mend/v2.yaml"
TEXTS = {
    MEND: RUNBOOK,
    "library/caller/v1.yaml": CALLER,
    "causes/small/v1.yaml": TABLE,
}


def _released(texts: dict[str, str]) -> str:
    listed = ""
    for path in sorted(texts):
        listed = release(path, texts, listed)
    return listed


def _problems(texts: dict[str, str]) -> tuple[Problem, ...]:
    return examine(texts, REGISTRY)[1]


def _library(texts: dict[str, str]) -> Library:
    library, problems = examine({**texts, RELEASED: _released(texts)}, REGISTRY)
    assert problems == ()
    return library


def _said(texts: dict[str, str]) -> str:
    return "\n".join(str(problem) for problem in _problems(texts))


def test_a_sound_library_has_no_problems() -> None:
    assert _problems(TEXTS) == ()


@pytest.mark.parametrize(
    ("path", "old", "new", "says"),
    [
        ("library/caller/v1.yaml", "call: mend", "call: mnd", "did you mean mend?"),
        ("library/caller/v1.yaml", "causes: small", "causes: smqll", "did you mean small?"),
        (
            "library/caller/v1.yaml",
            'call: mend\n    with: {node: "{{ node }}"}',
            "call: mend",
            "the argument node is missing",
        ),
        (
            "library/caller/v1.yaml",
            'call: mend\n    with: {node: "{{ node }}"',
            'call: mend\n    with: {nodes: [x], node: "{{ steps.facts.output }}"',
            "is facts",
        ),
        (MEND, "version: 1", "version: 2", "make them the same"),
        (MEND, "runbook: mend", "runbook: mand", "make them the same"),
    ],
)
def test_what_does_not_fit_together_is_named(path: str, old: str, new: str, says: str) -> None:
    changed = {**TEXTS, path: TEXTS[path].replace(old, new)}
    assert changed != TEXTS
    assert says in _said(changed)


def test_calls_do_not_go_in_a_circle() -> None:
    back = RUNBOOK.replace(
        "on_failure", '  - {id: round, call: caller, with: {node: "{{ node }}"}}\non_failure'
    )
    said = _said({**TEXTS, MEND: back})
    assert "the calls go in a circle: mend > caller > mend" in said
    assert "the calls go in a circle: caller > mend > caller" in said


def test_versions_have_no_gaps_and_files_have_their_place() -> None:
    third = RUNBOOK.replace("version: 1", "version: 3")
    assert "there is no library/mend/v2.yaml" in _said({**TEXTS, "library/mend/v3.yaml": third})
    assert "move the file" in _said({**TEXTS, "library/mend/final.yaml": RUNBOOK})


def test_a_request_gets_the_newest_released_version() -> None:
    draft = {**TEXTS, MEND2: RUNBOOK.replace("version: 1", "version: 2")}
    library, problems = examine({**draft, RELEASED: _released(TEXTS)}, REGISTRY)
    assert problems == ()
    assert library.newest["mend"].version == 1
    assert library.latest["mend"].version == 2
    assert _library(draft).newest["mend"].version == 2
    assert _library(draft).newest_causes["small"].version == 1


def test_a_version_can_be_asked_for_when_it_is_released() -> None:
    draft = {**TEXTS, MEND2: RUNBOOK.replace("version: 1", "version: 2")}
    library = examine({**draft, RELEASED: _released(TEXTS)}, REGISTRY)[0]
    assert library.names() == ("caller", "mend")
    assert library.definition("mend").runbook.version == 1
    with pytest.raises(KeyError, match="has no released version 2"):
        library.definition("mend", 2)
    with pytest.raises(KeyError, match="there is no runbook 'mnd'"):
        library.definition("mnd")
    assert _library(draft).definition("mend", 1).runbook.version == 1
    assert _library(draft).definition("mend").runbook.version == 2


@pytest.mark.parametrize("path", [MEND, "causes/small/v1.yaml"])
def test_a_released_file_that_was_edited_is_refused(path: str) -> None:
    listed = _released(TEXTS)
    edited = {**TEXTS, path: TEXTS[path] + "# a comment is an edit too\n"}
    said = str(check_released(listed, edited)[0])
    assert path in said
    assert f"add {path.replace('v1', 'v2')} instead" in said
    assert _problems({**edited, RELEASED: listed}) != ()
    with pytest.raises(ReleaseRefused, match="was edited after its release"):
        release(path, edited, listed)


def test_a_released_file_cannot_go_away() -> None:
    less = {path: text for path, text in TEXTS.items() if path != MEND}
    assert "put it back" in str(check_released(_released(TEXTS), less)[0])


def test_releases_go_up_one_by_one_and_happen_once() -> None:
    with pytest.raises(ReleaseRefused, match="the next version of mend is 1, not 2"):
        release(MEND2, {MEND2: RUNBOOK}, "")
    listed = release(MEND, TEXTS, "")
    assert f"{digest_of(RUNBOOK)}  {MEND}\n" in listed
    with pytest.raises(ReleaseRefused, match="is released already"):
        release(MEND, TEXTS, listed)
    with pytest.raises(ReleaseRefused, match="not a file of this library"):
        release("../x.yaml", TEXTS, "")


@pytest.mark.parametrize("line", ["abc  library/mend/v1.yaml", "0" * 64 + "  ../../etc/passwd"])
def test_a_broken_list_of_releases_is_a_problem(line: str) -> None:
    assert "expected a digest" in str(check_released(line, TEXTS)[0])


def test_a_difference_is_told_by_meaning_and_by_text() -> None:
    new = (
        RUNBOOK.replace("version: 1", "version: 2")
        .replace("permission: node.repair", "permission: node.drain")
        .replace("default: none given", "default: none")
        .replace('reason: "{{ why }}"', "reason: fixed")
    )
    said = diff(mend(), load_runbook(new, "new", REGISTRY))
    assert said.splitlines()[:3] == [
        "permission: node.repair -> node.drain",
        "parameter why changed",
        "step hold changed",
    ]
    assert "-permission: node.repair" in said
    assert "+permission: node.drain" in said
    assert diff(mend(), mend()) == ""


def test_a_moved_line_changes_no_meaning() -> None:
    moved = RUNBOOK.replace("steps:\n", "# a note\nsteps:\n")
    said = diff(mend(), load_runbook(moved, "new", REGISTRY))
    assert said.startswith("the meaning is the same\n")


def test_a_run_pins_every_text_and_contract_it_leans_on() -> None:
    library = _library(TEXTS)
    made = pin(library.newest["caller"], library.newest, library.newest_causes, REGISTRY)
    assert sorted(made.called) == ["mend"]
    assert sorted(made.causes) == ["small"]
    assert made.actions == {"node.observe": 1, "diagnose": 1, "node.drain": 1}
    again = Definition.from_json(made.to_json())
    assert again == made
    assert again.digest == made.digest
    assert again.missing_contracts(REGISTRY) == ()


def test_what_is_called_by_what_is_called_is_pinned_too() -> None:
    top = CALLER.replace("runbook: caller", "runbook: top").replace("call: mend", "call: caller")
    library = _library({**TEXTS, "library/top/v1.yaml": top})
    made = pin(library.newest["top"], library.newest, library.newest_causes, REGISTRY)
    assert sorted(made.called) == ["caller", "mend"]


def test_a_dropped_contract_is_named() -> None:
    library = _library(TEXTS)
    made = pin(library.newest["caller"], library.newest, library.newest_causes, REGISTRY)
    less = {name: spec for name, spec in REGISTRY.items() if name != "node.drain"}
    assert made.missing_contracts(less) == ("node.drain@1",)


def test_a_stored_text_that_lost_its_digest_is_not_run() -> None:
    library = _library(TEXTS)
    stored = dict(
        pin(library.newest["mend"], library.newest, library.newest_causes, REGISTRY).to_json()
    )
    stored["runbook"] = {
        "version": 1,
        "digest": digest_of(RUNBOOK),
        "text": RUNBOOK.replace("IDLE", "DOWN"),
    }
    with pytest.raises(DefinitionError, match="does not have its digest"):
        Definition.from_json(stored)


def test_a_run_is_not_pinned_without_what_it_names() -> None:
    library = _library(TEXTS)
    caller = library.newest["caller"]
    with pytest.raises(DefinitionError, match="calls mend"):
        pin(caller, {}, library.newest_causes, REGISTRY)
    with pytest.raises(DefinitionError, match="causes that are not there: small"):
        pin(caller, library.newest, {}, REGISTRY)
    with pytest.raises(DefinitionError, match=r"node\.drain"):
        pin(
            caller,
            library.newest,
            library.newest_causes,
            {"node.observe": REGISTRY["node.observe"]},
        )


def _write(root: Path, texts: dict[str, str]) -> None:
    for path, text in texts.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")


def test_folders_are_read_released_and_held_to_their_release(tmp_path: Path) -> None:
    _write(tmp_path, TEXTS)
    assert lint([tmp_path], REGISTRY) == ()
    assert load_library([tmp_path], REGISTRY).newest == {}
    _write(tmp_path, {MEND: RUNBOOK.replace("node.drain", "node.drian")})
    with pytest.raises(Problems, match="did you mean"):
        load_library([tmp_path], REGISTRY)
    _write(tmp_path, {MEND: RUNBOOK, RELEASED: release(MEND, TEXTS, "")})
    assert sorted(load_library([tmp_path], REGISTRY).newest) == ["mend"]
    _write(tmp_path, {MEND: RUNBOOK + "# x\n"})
    assert "was edited after its release" in str(lint([tmp_path], REGISTRY)[0])


def test_a_file_that_cannot_be_text_or_is_a_link_is_a_problem(tmp_path: Path) -> None:
    _write(tmp_path, TEXTS)
    (tmp_path / "library/mend/v2.yaml").write_bytes(b"runbook: \xff")
    (tmp_path / "library/mend/v3.yaml").symlink_to(tmp_path / MEND)
    said = "\n".join(str(problem) for problem in lint([tmp_path], REGISTRY))
    assert "library/mend/v2.yaml:1:1: is not UTF-8 at byte 9" in said
    assert "library/mend/v3.yaml:1:1: is a symbolic link" in said


def test_a_site_cannot_replace_a_file_of_another_library(tmp_path: Path) -> None:
    for root in (tmp_path / "a", tmp_path / "b"):
        _write(root, {MEND: RUNBOOK})
    assert "lies in two libraries" in str(lint([tmp_path / "a", tmp_path / "b"], REGISTRY)[0])


def test_a_release_is_written_beside_the_files(tmp_path: Path) -> None:
    _write(tmp_path, {MEND: RUNBOOK})
    release_file(tmp_path, MEND, [tmp_path], REGISTRY)
    assert (tmp_path / RELEASED).read_text(encoding="utf-8") == release(MEND, TEXTS, "")
