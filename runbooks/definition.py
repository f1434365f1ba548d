"""What a run pins when it is asked for: every text and contract version it will go by. Pure.

The engine stores `to_json()` with the run and works from it until the run is final, so that an
edit, a new release or another version of the program never changes what a running run does.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass

from actions.contract import ActionSpec
from config.json_values import Json, JsonMap
from runbooks.builtin import BUILTINS, DIAGNOSE
from runbooks.causes import Causes, load_causes
from runbooks.load import digest_of, read_runbook
from runbooks.model import Runbook


class DefinitionError(ValueError):
    """A run cannot be pinned, or what was pinned cannot be read again; says what is missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """One runbook with all it leans on."""

    runbook: Runbook
    called: Mapping[str, Runbook]
    """Runbooks that it calls, directly or not, by name."""
    causes: Mapping[str, Causes]
    """Causes files that any of these name."""
    actions: Mapping[str, int]
    """Contract version of each action and built-in that any of these use."""

    @property
    def digest(self) -> str:
        """SHA-256 (hex) over `to_json()`."""
        text = json.dumps(self.to_json(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    def to_json(self) -> JsonMap:
        """Full texts and digests, as they are stored."""
        return {
            "runbook": _stored(self.runbook),
            "called": {name: _stored(self.called[name]) for name in sorted(self.called)},
            "causes": {name: _stored(self.causes[name]) for name in sorted(self.causes)},
            "actions": dict(sorted(self.actions.items())),
        }

    @classmethod
    def from_json(cls, stored: JsonMap) -> "Definition":
        """What was stored, read again; the texts must have their digests. Raises DefinitionError."""
        runbook = _text(stored, "runbook")
        called, causes = _texts(stored, "called"), _texts(stored, "causes")
        return cls(
            runbook=read_runbook(runbook, "the run's own copy"),
            called={
                name: read_runbook(text, f"the run's copy of {name}")
                for name, text in called.items()
            },
            causes={
                name: load_causes(text, f"the run's copy of causes {name}")
                for name, text in causes.items()
            },
            actions=_versions(stored),
        )

    def missing_contracts(self, registry: Mapping[str, ActionSpec]) -> tuple[str, ...]:
        """Pinned `action@version` that this program no longer has: such a run needs a person."""
        return tuple(
            f"{name}@{version}"
            for name, version in sorted(self.actions.items())
            if _version_now(name, registry) != version
        )


def pin(
    runbook: Runbook,
    shelf: Mapping[str, Runbook],
    causes: Mapping[str, Causes],
    registry: Mapping[str, ActionSpec],
) -> Definition:
    """Everything that a run of `runbook` needs. Raises DefinitionError when something is not there."""
    called = _called(runbook, shelf)
    steps = [step for book in (runbook, *called.values()) for step in book.steps]
    named = {str(step.arguments.get("causes", "")) for step in steps if step.do == DIAGNOSE.name}
    missing = sorted(named - causes.keys())
    if missing:
        raise DefinitionError(f"{runbook.name} names causes that are not there: {missing[0]}")
    versions: dict[str, int] = {}
    for step in steps:
        if step.do is not None:
            versions[step.do] = _version_now(step.do, registry)
    unknown = sorted(name for name, version in versions.items() if version == 0)
    if unknown:
        raise DefinitionError(f"{runbook.name} uses an action that is not there: {unknown[0]}")
    return Definition(
        runbook=runbook,
        called=called,
        causes={name: causes[name] for name in sorted(named)},
        actions=versions,
    )


def _called(runbook: Runbook, shelf: Mapping[str, Runbook]) -> Mapping[str, Runbook]:
    found: dict[str, Runbook] = {}
    waiting = [runbook]
    while waiting:
        for step in waiting.pop().steps:
            if step.call is None or step.call in found:
                continue
            if step.call == runbook.name:
                raise DefinitionError(f"{runbook.name} calls itself")
            if step.call not in shelf:
                raise DefinitionError(f"{runbook.name} calls {step.call}, which is not there")
            found[step.call] = shelf[step.call]
            waiting.append(shelf[step.call])
    return found


def _version_now(name: str, registry: Mapping[str, ActionSpec]) -> int:
    """The contract version of this program; 0 where it has no such action."""
    spec = BUILTINS.get(name) or registry.get(name)
    return spec.version if spec else 0


def _stored(file: Runbook | Causes) -> JsonMap:
    return {"version": file.version, "digest": file.digest, "text": file.text}


def _text(stored: JsonMap, key: str) -> str:
    """One stored text, held against its digest."""
    entry = stored.get(key)
    text = entry.get("text") if isinstance(entry, Mapping) else None
    if not isinstance(entry, Mapping) or not isinstance(text, str):
        raise DefinitionError(f"the stored definition has no text for {key}")
    if digest_of(text) != entry.get("digest"):
        raise DefinitionError(f"the stored text of {key} does not have its digest: do not go on")
    return text


def _texts(stored: JsonMap, key: str) -> Mapping[str, str]:
    return {name: _text(_mapping(stored, key), name) for name in _mapping(stored, key)}


def _versions(stored: JsonMap) -> Mapping[str, int]:
    return {
        name: version
        for name, version in _mapping(stored, "actions").items()
        if isinstance(version, int)
    }


def _mapping(stored: JsonMap, key: str) -> Mapping[str, Json]:
    found = stored.get(key)
    if not isinstance(found, Mapping):
        raise DefinitionError(f"the stored definition has no {key}")
    return found
