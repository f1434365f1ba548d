"""The part of Jinja2's grammar that runbooks may use, and its meaning over plain values.

Called by `runbooks.expressions` only. It walks the tree that Jinja2 parsed and allows what is listed
here: what is not listed has no meaning, so there is nothing to escape from. Stricter than Jinja2
on purpose: true is not 1, a text is not a truth value, a missing name is an error everywhere but in
`is defined` and `default`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeGuard

from jinja2 import nodes

from config.json_values import Json, JsonMap
from runbooks.expression_words import FILTERS, TESTS, WordError

LARGEST_INTEGER = 2**53
LONGEST_TEXT = 64 * 1024
_SHOWN = 80


class ExpressionError(ValueError):
    """An expression that cannot be read or has no value; says what and where."""

    def __init__(self, what: str, where: str) -> None:
        """`where` is the expression, or the place of it."""
        shown = where if len(where) <= _SHOWN else f"{where[:_SHOWN]}…"
        super().__init__(f"{shown!r}: {what}" if shown else what)
        self.what = what
        self.where = where


class _Missing:
    """Stands for a name that is not there, until something asks for its value."""

    __slots__ = ("path",)

    def __init__(self, path: str) -> None:
        self.path = path


_Value = Json | _Missing

_ALLOWED: Final = (
    nodes.Name,
    nodes.Const,
    nodes.Getattr,
    nodes.Getitem,
    nodes.List,
    nodes.Compare,
    nodes.Operand,
    nodes.And,
    nodes.Or,
    nodes.Not,
    nodes.CondExpr,
    nodes.Filter,
    nodes.Test,
    nodes.Add,
    nodes.Sub,
    nodes.Mul,
    nodes.FloorDiv,
    nodes.Mod,
    nodes.Neg,
)

_ARITHMETIC: Final[Mapping[type[nodes.BinExpr], Callable[[int, int], int]]] = {
    nodes.Add: lambda left, right: left + right,
    nodes.Sub: lambda left, right: left - right,
    nodes.Mul: lambda left, right: left * right,
    nodes.FloorDiv: lambda left, right: left // right,
    nodes.Mod: lambda left, right: left % right,
}

_ORDER: Final[Mapping[str, Callable[[int, int], bool]]] = {
    "lt": lambda left, right: left < right,
    "lteq": lambda left, right: left <= right,
    "gt": lambda left, right: left > right,
    "gteq": lambda left, right: left >= right,
}


def check(tree: nodes.Expr, source: str) -> None:
    """Refuse whatever is not part of the language. Raises ExpressionError."""
    for node in (tree, *tree.find_all(nodes.Node)):
        if not isinstance(node, _ALLOWED):
            word = type(node).__name__.lower()
            raise ExpressionError(f"{word} is not part of this language", source)
        if isinstance(node, nodes.Const):
            _check_constant(node, source)
        if isinstance(node, nodes.CondExpr) and node.expr2 is None:
            raise ExpressionError("an `if` needs an `else`", source)
        if isinstance(node, nodes.Filter | nodes.Test):
            _check_word(node, source)


def dotted_names(tree: nodes.Node) -> frozenset[str]:
    """Every name that is read, with the keys that follow it."""
    if isinstance(tree, nodes.TemplateData):
        return frozenset()
    path = _path(tree)
    if path:
        return frozenset({path})
    return frozenset().union(*(dotted_names(child) for child in tree.iter_child_nodes()))


def walk(tree: nodes.Expr, names: JsonMap) -> Json:
    """The value of a checked tree. Raises ExpressionError."""
    return _present(_walk(tree, names))


def walk_known(tree: nodes.Expr, names: JsonMap) -> bool | None:
    """The truth of a checked tree over facts of which some are null; None where it is not known.

    A null fact makes the comparison that reads it not known. `false and not known` is false, `true
    or not known` is true, the rest of the two-valued rules as ever. Raises ExpressionError.
    """
    match tree:
        case nodes.Not():
            inner = walk_known(_expr(tree.node), names)
            return None if inner is None else not inner
        case nodes.And():
            sides = {walk_known(_expr(tree.left), names), walk_known(_expr(tree.right), names)}
            return False if False in sides else None if None in sides else True
        case nodes.Or():
            sides = {walk_known(_expr(tree.left), names), walk_known(_expr(tree.right), names)}
            return True if True in sides else None if None in sides else False
        case _:
            if any(names.get(name.split(".", 1)[0]) is None for name in dotted_names(tree)):
                return None
            return _truth(tree, names)


def same(left: Json, right: Json) -> bool:
    """Equality of plain values in which true is not 1 and no text is a number."""
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if _is_list(left) and _is_list(right):
        return len(left) == len(right) and all(map(same, left, right))
    return type(left) is type(right) and left == right


def _walk(tree: nodes.Node, names: JsonMap) -> _Value:  # noqa: PLR0911, C901  one case a node
    match tree:
        case nodes.Const():
            value: Json = tree.value
            return value
        case nodes.Name():
            return names.get(tree.name, _Missing(tree.name))
        case nodes.Getattr():
            return _key(_walk(tree.node, names), tree.attr, _path(tree))
        case nodes.Getitem():
            return _item(_walk(tree.node, names), walk(_expr(tree.arg), names), _path(tree))
        case nodes.List():
            return [walk(item, names) for item in tree.items]
        case nodes.Not():
            return not _truth(tree.node, names)
        case nodes.And():
            return _truth(tree.left, names) and _truth(tree.right, names)
        case nodes.Or():
            return _truth(tree.left, names) or _truth(tree.right, names)
        case nodes.CondExpr():
            chosen = tree.expr1 if _truth(tree.test, names) else _expr(tree.expr2)
            return walk(chosen, names)
        case nodes.Compare():
            return _compare(tree, names)
        case nodes.Neg():
            return _bounded(-_number(walk(tree.node, names)))
        case nodes.BinExpr():
            return _arithmetic(tree, names)
        case nodes.Filter():
            return _filter(tree, names)
        case nodes.Test():
            return _test(tree, names)
        case _:
            raise ExpressionError(f"{type(tree).__name__.lower()} has no value", "")


def _present(value: _Value) -> Json:
    if isinstance(value, _Missing):
        raise ExpressionError("has no value here; ask `is defined` first", value.path)
    return value


def _expr(node: nodes.Expr | None) -> nodes.Expr:
    if node is None:
        raise ExpressionError("a part is missing", "")
    return node


def _key(value: _Value, key: str, path: str) -> _Value:
    """`a.b`: a key of a mapping, and nothing else that Python would find under that name."""
    if isinstance(value, Mapping) and key in value:
        return value[key]
    return _Missing(path or key)


def _item(value: _Value, key: Json, path: str) -> _Value:
    """`a["b"]` and `a[0]`."""
    if isinstance(key, str):
        return _key(value, key, path)
    present = _present(value)
    if _is_list(present) and isinstance(key, int) and not isinstance(key, bool):
        return present[key] if -len(present) <= key < len(present) else _Missing(f"[{key}]")
    raise ExpressionError("only lists are asked by position, only mappings by key", str(key))


def _truth(tree: nodes.Node, names: JsonMap) -> bool:
    value = _present(_walk(tree, names))
    if not isinstance(value, bool):
        where = ", ".join(sorted(dotted_names(tree)))
        raise ExpressionError("is not true or false: compare it with something", where)
    return value


def _compare(tree: nodes.Compare, names: JsonMap) -> bool:
    left = walk(tree.expr, names)
    for operand in tree.ops:
        right = walk(operand.expr, names)
        if not _holds(operand.op, left, right):
            return False
        left = right
    return True


def _holds(operator: str, left: Json, right: Json) -> bool:
    match operator:
        case "eq":
            return same(left, right)
        case "ne":
            return not same(left, right)
        case "in":
            return _contains(right, left)
        case "notin":
            return not _contains(right, left)
        case _:
            return _ORDER[operator](_number(left), _number(right))


def _contains(whole: Json, part: Json) -> bool:
    if isinstance(whole, str):
        if not isinstance(part, str):
            raise ExpressionError("only a text can be in a text", str(part))
        return part in whole
    if isinstance(whole, Mapping):
        return isinstance(part, str) and part in whole
    if _is_list(whole):
        return any(same(item, part) for item in whole)
    raise ExpressionError("`in` needs a text, a list or a mapping on its right", str(whole))


def _arithmetic(tree: nodes.BinExpr, names: JsonMap) -> int:
    left, right = _number(walk(tree.left, names)), _number(walk(tree.right, names))
    try:
        return _bounded(_ARITHMETIC[type(tree)](left, right))
    except ZeroDivisionError as error:
        raise ExpressionError("division by zero", f"{left} / {right}") from error


def _number(value: Json) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ExpressionError(
            "is not a number; a text is never read as one", "null" if value is None else str(value)
        )
    return value


def _bounded(number: int) -> int:
    if abs(number) > LARGEST_INTEGER:
        raise ExpressionError("the number is beyond 2**53", "")
    return number


def _filter(tree: nodes.Filter, names: JsonMap) -> Json:
    subject = _walk(_expr(tree.node), names)
    arguments = [walk(argument, names) for argument in tree.args]
    if tree.name == "default":
        return arguments[0] if isinstance(subject, _Missing) else subject
    try:
        value = FILTERS[tree.name].apply(_present(subject), *arguments)
    except WordError as error:
        raise ExpressionError(str(error), tree.name) from error
    if isinstance(value, str) and len(value) > LONGEST_TEXT:
        raise ExpressionError(f"the text would be longer than {LONGEST_TEXT:,}", tree.name)
    return value


def _test(tree: nodes.Test, names: JsonMap) -> bool:
    subject = _walk(tree.node, names)
    if tree.name in {"defined", "undefined"}:
        return isinstance(subject, _Missing) == (tree.name == "undefined")
    arguments = [walk(argument, names) for argument in tree.args]
    try:
        return TESTS[tree.name].apply(_present(subject), *arguments) is True
    except WordError as error:
        raise ExpressionError(str(error), tree.name) from error


def _check_constant(node: nodes.Const, source: str) -> None:
    value = node.value
    if isinstance(value, float) or (isinstance(value, int) and abs(value) > LARGEST_INTEGER):
        raise ExpressionError(f"{value} is not a whole number within 2**53", source)


def _check_word(node: nodes.Filter | nodes.Test, source: str) -> None:
    kind, words = ("filter", FILTERS) if isinstance(node, nodes.Filter) else ("test", TESTS)
    word = words.get(node.name)
    if word is None:
        known = ", ".join(sorted(words))
        raise ExpressionError(f"there is no {kind} `{node.name}`; there are {known}", source)
    if node.kwargs or node.dyn_args or node.dyn_kwargs:
        raise ExpressionError(f"`{node.name}` takes its arguments by position", source)
    if not word.fewest <= len(node.args) <= word.most:
        raise ExpressionError(f"`{node.name}` is written {word.usage}", source)


def _path(tree: nodes.Node) -> str:
    """`a.b.c` when the node is a name with keys, else empty."""
    match tree:
        case nodes.Name():
            return tree.name
        case nodes.Getattr():
            above = _path(tree.node)
            return f"{above}.{tree.attr}" if above else ""
        case nodes.Getitem(arg=nodes.Const(value=str() as key)):
            above = _path(tree.node)
            return f"{above}.{key}" if above else ""
        case _:
            return ""


def _is_list(value: object) -> TypeGuard[Sequence[Json]]:
    return isinstance(value, Sequence) and not isinstance(value, str)
