"""The resources that a run locks, by name, out of the `locks:` of its runbook. Pure.

Called when a plan is made. `node:{{ node }}` is one lock; `node:{{ nodes }}` over a list is one
lock for each.
"""

from collections.abc import Iterable, Sequence

from config.json_values import JsonMap

from runbooks.expressions import ExpressionError, evaluate, split_around_expression

_KINDS = ("node:", "partition:", "path:", "pool:")


def lock_names(templates: Iterable[str], names: JsonMap) -> tuple[str, ...]:
    """Names of all locks, sorted, each once. Raises ExpressionError."""
    found: set[str] = set()
    for template in templates:
        found.update(_locks(template, names))
    wrong = sorted(name for name in found if not name.startswith(_KINDS))
    if wrong:
        raise ExpressionError(f"is not a lock: expected {', '.join(_KINDS)}…", wrong[0])
    return tuple(sorted(found))


def _locks(template: str, names: JsonMap) -> list[str]:
    parts = split_around_expression(template)
    value = evaluate(parts[1], names) if parts else None
    if parts is None or isinstance(value, str) or not isinstance(value, Sequence):
        return [str(evaluate(template, names))]
    before, _, after = parts
    if not all(isinstance(item, str) for item in value):
        raise ExpressionError("a lock for each item needs a list of text", template)
    return [f"{before}{item}{after}" for item in value]
