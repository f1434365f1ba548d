"""Evaluates the expressions of runbooks and causes. Called by the engine, the diagnosis and lint.

The text of an expression comes from a reviewed file; the values in it come from the cluster and
from people and may be hostile. Jinja2's sandbox parses, `runbooks.expression_tree` walks the result:
no template is compiled, no Python attribute is read, no method is called, and no value is ever
parsed again, neither as an expression nor as a number.
"""

import json
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from jinja2 import StrictUndefined, TemplateSyntaxError, nodes
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from config.json_values import Json, JsonMap
from runbooks.expression_tree import ExpressionError, check, dotted_names, walk, walk_known

LONGEST_EXPRESSION = 4096
"""Characters of one template; it bounds the work, because there are no loops."""
LARGEST_RESULT = 64 * 1024
"""Bytes of one result (design 6)."""
_PLAIN_NAME = re.compile(r"[a-z_][a-z0-9_]*(?:\.[a-z_][a-z0-9_]*)*", re.ASCII)
DEEPEST = 32
"""Levels of nesting of a template's data or of a value."""

__all__ = (
    "ExpressionError",
    "evaluate",
    "is_sole_expression",
    "known_truth",
    "names_used",
    "sole_name",
    "template_names",
    "truth",
    "value_of",
)

_ENVIRONMENT = ImmutableSandboxedEnvironment(
    undefined=StrictUndefined, autoescape=False, keep_trailing_newline=True
)


def evaluate(template: Json, names: JsonMap) -> Json:
    """The value of `template`, at every depth. Raises ExpressionError.

    A text that is exactly one `{{ expression }}` gives the value of that expression with its type;
    in any other text the values are written out, and the result is text.
    """
    value = _evaluate(template, names, "")
    _check_size(value, "")
    return value


def value_of(expression: str, names: JsonMap) -> Json:
    """The value of a bare expression (`for_each`). Raises ExpressionError.

    What only names a value makes nothing new, so its size is not limited: ten thousand nodes are
    one name.
    """
    value = walk(_expression(expression), names)
    if _PLAIN_NAME.fullmatch(expression.strip()) is None:
        _check_size(value, expression)
    return value


def truth(expression: str, names: JsonMap) -> bool:
    """The value of a bare expression that must be a boolean (`when`). Raises ExpressionError."""
    value = value_of(expression, names)
    if not isinstance(value, bool):
        raise ExpressionError(
            f"must give true or false, not {_kind(value)}: compare it with something", expression
        )
    return value


def known_truth(expression: str, facts: JsonMap) -> bool | None:
    """Whether a condition over facts holds; None where a null fact leaves it open.

    Raises ExpressionError when a fact is of a kind that the condition cannot take.
    """
    return walk_known(_expression(expression), facts)


def names_used(expression: str) -> frozenset[str]:
    """Dotted names a bare expression reads: `steps.cause.output.id`, `node`."""
    return dotted_names(_expression(expression))


def template_names(template: Json) -> frozenset[str]:
    """Dotted names that a template reads, at every depth."""
    match template:
        case str():
            return frozenset().union(*(dotted_names(part) for part in _parts(template)))
        case Mapping():
            return frozenset().union(*(template_names(value) for value in template.values()))
        case Sequence():
            return frozenset().union(*(template_names(value) for value in template))
        case _:
            return frozenset()


def sole_name(template: Json) -> str | None:
    """The dotted name when a template is exactly `{{ a.b }}`, else None."""
    if not isinstance(template, str):
        return None
    parts = _parts(template)
    if len(parts) != 1 or not isinstance(parts[0], nodes.Name | nodes.Getattr):
        return None
    return next(iter(dotted_names(parts[0])))


def is_sole_expression(template: Json) -> bool:
    """Whether the template keeps the type of its one expression."""
    return (
        isinstance(template, str)
        and len(parts := _parts(template)) == 1
        and not isinstance(parts[0], nodes.TemplateData)
    )


def _evaluate(template: Json, names: JsonMap, where: str) -> Json:
    if where.count(".") > DEEPEST:
        raise ExpressionError(f"nested deeper than {DEEPEST} levels", where)
    match template:
        case str():
            return _text(template, names)
        case Mapping():
            return {
                key: _evaluate(value, names, f"{where}.{key}") for key, value in template.items()
            }
        case Sequence():
            return [
                _evaluate(value, names, f"{where}.{index}") for index, value in enumerate(template)
            ]
        case _:
            return template


def _text(template: str, names: JsonMap) -> Json:
    if is_sole_expression(template):
        return walk(_parts(template)[0], names)
    written: list[str] = []
    room = LARGEST_RESULT
    for part in _parts(template):
        piece = part.data if isinstance(part, nodes.TemplateData) else _written(part, names)
        room -= len(piece.encode("utf-8", errors="surrogatepass"))
        if room < 0:
            raise ExpressionError(
                f"the text would be larger than {LARGEST_RESULT:,} bytes", template
            )
        written.append(piece)
    return "".join(written)


def _written(part: nodes.Expr, names: JsonMap) -> str:
    """A value as it stands inside other text."""
    value = walk(part, names)
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case None:
            raise ExpressionError(
                "null cannot stand inside text: use | if_empty('…')", _shown(part)
            )
        case _:
            raise ExpressionError(
                f"{_kind(value)} cannot stand inside text: use | join(', ')", _shown(part)
            )


@lru_cache(maxsize=4096)
def _parts(template: str) -> tuple[nodes.Expr, ...]:
    """Literal texts (TemplateData) and expressions of a template, in order, checked."""
    _check_length(template)
    for mark, name in (("{%", "statements"), ("{#", "comments")):
        if mark in template:
            raise ExpressionError(f"{name} ({mark}) are not part of this language", template)
    if "{{" not in template:
        return (nodes.TemplateData(template),)
    try:
        body = _ENVIRONMENT.parse(template).body
    except TemplateSyntaxError as error:
        raise ExpressionError(f"cannot be read: {error.message}", template) from error
    except RecursionError as error:
        raise ExpressionError("nested too deeply", template) from error
    parts = tuple(part for output in body for part in _output(output, template))
    for part in parts:
        if not isinstance(part, nodes.TemplateData):
            check(part, template)
    return parts


def _output(node: nodes.Node, template: str) -> list[nodes.Expr]:
    if not isinstance(node, nodes.Output):
        raise ExpressionError("only {{ expressions }} are part of this language", template)
    return node.nodes


@lru_cache(maxsize=4096)
def _expression(source: str) -> nodes.Expr:
    """The tree of a bare expression, checked."""
    _check_length(source)
    if "{{" in source or "{%" in source:
        raise ExpressionError("is an expression already: write it without {{ }}", source)
    try:
        parser = Parser(_ENVIRONMENT, source, state="variable")
        tree = parser.parse_expression()
        rest = parser.stream
        if not rest.eos:
            raise ExpressionError(f"unexpected {rest.current.value!r}", source)
    except TemplateSyntaxError as error:
        raise ExpressionError(f"cannot be read: {error.message}", source) from error
    except RecursionError as error:
        raise ExpressionError("nested too deeply", source) from error
    check(tree, source)
    return tree


def _check_length(text: str) -> None:
    if len(text) > LONGEST_EXPRESSION:
        raise ExpressionError(
            f"longer than {LONGEST_EXPRESSION:,} characters: pass data as parameters", text
        )


def _check_size(value: Json, where: str) -> None:
    size = len(json.dumps(value, default=str))
    if size > LARGEST_RESULT:
        raise ExpressionError(
            f"the result has {size:,} bytes; at most {LARGEST_RESULT:,} are accepted", where
        )


def _shown(part: nodes.Expr) -> str:
    names = sorted(dotted_names(part))
    return ", ".join(names)


def _kind(value: Json) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case int():
            return "a number"
        case str():
            return "text"
        case Mapping():
            return "a mapping"
        case _:
            return "a list"
