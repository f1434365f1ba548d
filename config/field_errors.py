"""What pydantic found wrong, as messages that say what would be right. Pure.

Used by `config.load` and by whoever reads other models from files. No message repeats a value.
"""

import re
from collections.abc import Iterator
from typing import Any, get_args

from pydantic import ValidationError
from pydantic.fields import FieldInfo

from config.fields import Section
from config.settings import Settings
from config.suggestions import nearest
from config.yaml_reader import Path

_FIRST_SENTENCE = re.compile(r"(.+?[.;:])(?:\s|$)", re.DOTALL)


def explain(error: ValidationError) -> Iterator[tuple[Path, str]]:
    """Each error with its path and a message."""
    errors = error.errors(include_url=False)
    for found in errors:
        path = tuple(part for part in found["loc"] if part != "[key]")
        below = any(other["loc"][: len(path)] == path for other in errors if other is not found)
        if found["type"] == "too_short" and below:
            continue  # pydantic does not count the items that it refused
        yield path, _message(found, path)


def _message(found: Any, path: Path) -> str:
    section, field = _describe(path)
    match found["type"]:
        case "missing":
            return f"is missing: {_summary(field)}"
        case "extra_forbidden":
            return f"there is no such key{nearest(str(path[-1]), section.model_fields)}"
        case "too_short":
            return f"at least one is needed: {_summary(field)}"
        case "value_error":
            return str(found["ctx"]["error"])
        case "enum":
            return f"one of these is expected: {found['ctx']['expected']}{_probably(found)}"
    said = str(found["msg"]).replace("Input should be", "this should be")
    return f"{said}: {_summary(field)}" if field else said


def _probably(found: Any) -> str:
    """What was probably meant by a word that is not in a list."""
    words = re.findall(r"'([^']+)'", found["ctx"]["expected"])
    hint = nearest(str(found["input"]), words)
    return hint if "did you mean" in hint else ""


def _describe(path: Path) -> tuple[type[Section], FieldInfo | None]:
    """The section that holds the last key of `path`, and the field it names."""
    section: type[Section] = Settings
    field: FieldInfo | None = None
    for index, part in enumerate(path):
        named = section.model_fields.get(str(part))
        if named is None:
            continue
        field = named
        inner = _section_in(named.annotation)
        if inner is not None and index < len(path) - 1:
            section = inner
    return section, field


def _section_in(annotation: Any) -> type[Section] | None:
    """The section inside `Mapping[Key, X]`, `tuple[X, ...]`, `X | None`."""
    if isinstance(annotation, type) and issubclass(annotation, Section):
        return annotation
    found = (_section_in(inner) for inner in get_args(annotation))
    return next((section for section in found if section is not None), None)


def _summary(field: FieldInfo | None) -> str:
    """The first sentence of a field's description."""
    text = " ".join((field.description or "").split()) if field else ""
    first = _FIRST_SENTENCE.match(text)
    return first[1].rstrip(".;:") if first else text
