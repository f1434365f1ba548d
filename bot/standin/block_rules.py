"""Slack's limits on blocks and views, and the words in which it refuses them.

Pure. The Web API calls it before it stores anything. It knows the blocks that a bot like ours
sends; a type that it does not know is refused as Slack refuses an unknown one.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from bot.standin.records import (
    Payload,
    SlackError,
)

MESSAGE_BLOCKS = 50
VIEW_BLOCKS = 100
OPTIONS = 100
BLOCK_TEXT_IN_MESSAGE = 13_200
"""Sum over a message; not documented by Slack, reported by users (bolt-js issue 2509)."""
POST_TEXT = 40_000
UPDATE_TEXT = 4_000
VIEW_BYTES = 250_000

Complaints = Iterator[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Size:
    most: int
    required: bool = True


_TEXT_KINDS = ("plain_text", "mrkdwn")


def check_message(blocks: Any) -> None:
    """Refuse the blocks of a message as Slack would."""
    if not isinstance(blocks, list) or not all(isinstance(block, dict) for block in blocks):
        raise SlackError("invalid_blocks_format")
    complaints = [*_blocks(blocks, "/blocks", MESSAGE_BLOCKS)]
    if complaints:
        raise SlackError(
            "invalid_blocks",
            errors=[complaint.removeprefix("[ERROR] ") for complaint in complaints],
            response_metadata={"messages": complaints},
        )
    if sum(_text_lengths(blocks)) > BLOCK_TEXT_IN_MESSAGE:
        raise SlackError("msg_blocks_too_long")


def check_view(view: Any, size: int) -> None:
    """Refuse a modal or a home tab as Slack would; `size` is its length as JSON."""
    if not isinstance(view, dict) or view.get("type") not in ("modal", "home"):
        raise SlackError("invalid_arguments")
    if size > VIEW_BYTES:
        raise SlackError("view_too_large")
    complaints = [*_view(view)]
    if complaints:
        raise SlackError("invalid_arguments", response_metadata={"messages": complaints})


def _view(view: Payload) -> Complaints:
    if view["type"] == "modal":
        yield from _text(view, "title", "/view", _Size(most=24))
        for key in ("submit", "close"):
            yield from _text(view, key, "/view", _Size(most=24, required=False))
    yield from _string(view, "callback_id", "/view", _Size(most=255, required=False))
    yield from _string(view, "private_metadata", "/view", _Size(most=3000, required=False))
    blocks = view.get("blocks")
    if not isinstance(blocks, list) or not all(isinstance(b, dict) for b in blocks):
        yield _error("missing required field: blocks", "/view")
        return
    yield from _blocks(blocks, "/view/blocks", VIEW_BLOCKS)
    if view["type"] == "modal" and any(b.get("type") == "input" for b in blocks):
        yield from _text(view, "submit", "/view", _Size(most=24))


def _blocks(blocks: list[Payload], path: str, most: int) -> Complaints:
    if len(blocks) > most:
        yield _error(f"no more than {most} items allowed", path)
    seen: set[str] = set()
    for index, block in enumerate(blocks):
        here = f"{path}/{index}"
        yield from _string(block, "block_id", here, _Size(most=255, required=False))
        name = block.get("block_id")
        if name is not None and str(name) in seen:
            yield _error(f"`block_id` already exists: {name}", f"{here}/block_id")
        seen.add(str(name))
        check = _CHECKS.get(str(block.get("type")))
        if check is None:
            yield _error(f"unsupported type: {block.get('type')}", f"{here}/type")
        else:
            yield from check(block, here)


def _header(block: Payload, path: str) -> Complaints:
    yield from _text(block, "text", path, _Size(most=150), kinds=("plain_text",))


def _section(block: Payload, path: str) -> Complaints:
    fields = block.get("fields")
    if fields is None and "text" not in block:
        yield _error("missing required field: text", path)
    yield from _text(block, "text", path, _Size(most=3000, required=False))
    if fields is not None:
        yield from _count(fields, f"{path}/fields", 10)
        for here, field in _objects(fields, f"{path}/fields"):
            yield from _text({"text": field}, "text", here, _Size(most=2000), at="")
    yield from _each(block, ("accessory",), path, _element)


def _context(block: Payload, path: str) -> Complaints:
    elements = block.get("elements", [])
    yield from _count(elements, f"{path}/elements", 10)
    for here, element in _objects(elements, f"{path}/elements"):
        if element.get("type") in _TEXT_KINDS:
            yield from _text({"text": element}, "text", here, _Size(most=3000), at="")


def _actions(block: Payload, path: str) -> Complaints:
    elements = block.get("elements", [])
    yield from _count(elements, f"{path}/elements", 25)
    seen: set[str] = set()
    for here, element in _objects(elements, f"{path}/elements"):
        name = element.get("action_id")
        if name is not None and str(name) in seen:
            yield _error(f"`action_id` already exists: {name}", f"{here}/action_id")
        seen.add(str(name))
        yield from _element(element, here)


def _input(block: Payload, path: str) -> Complaints:
    yield from _text(block, "label", path, _Size(most=2000), kinds=("plain_text",))
    if "element" not in block:
        yield _error("missing required field: element", path)
    yield from _each(block, ("element",), path, _element)


def _markdown(block: Payload, path: str) -> Complaints:
    yield from _string(block, "text", path, _Size(most=12_000))


def _anything(_block: Payload, _path: str) -> Complaints:
    yield from ()


def _element(element: Payload, path: str) -> Complaints:
    yield from _string(element, "action_id", path, _Size(most=255, required=False))
    if element.get("type") == "button":
        yield from _button(element, path)
    elif str(element.get("type")) not in _ELEMENTS:
        yield _error(f"unsupported type: {element.get('type')}", f"{path}/type")
    for key in ("options", "initial_options"):
        options = element.get(key)
        if options is not None:
            yield from _count(options, f"{path}/{key}", OPTIONS)
            for here, option in _objects(options, f"{path}/{key}"):
                yield from option_complaints(option, here)
    yield from _each(element, ("confirm",), path, _confirm)


def _button(element: Payload, path: str) -> Complaints:
    yield from _text(element, "text", path, _Size(most=75), kinds=("plain_text",))
    yield from _string(element, "value", path, _Size(most=2000, required=False))
    yield from _string(element, "url", path, _Size(most=3000, required=False))
    if element.get("style") not in (None, "primary", "danger"):
        yield _error("must be one of: primary, danger", f"{path}/style")


def _confirm(confirm: Payload, path: str) -> Complaints:
    yield from _text(confirm, "title", path, _Size(most=100))
    yield from _text(confirm, "text", path, _Size(most=300))
    for key in ("confirm", "deny"):
        yield from _text(confirm, key, path, _Size(most=30, required=False))


def option_complaints(option: Payload, path: str) -> Complaints:
    """What is wrong with one option of a select."""
    yield from _text(option, "text", path, _Size(most=75))
    yield from _string(option, "value", path, _Size(most=150))


def _text(holder: Payload, key: str, path: str, size: _Size, **options: Any) -> Complaints:
    """Complaints about the text object `holder[key]`, whose own path is `path` + `at`."""
    here = f"{path}{options.get('at', f'/{key}')}"
    text = holder.get(key)
    if text is None:
        if size.required:
            yield _error(f"missing required field: {key}", path)
        return
    if not isinstance(text, dict) or text.get("type") not in options.get("kinds", _TEXT_KINDS):
        yield _error("must provide an object with a supported text type", here)
        return
    yield from _string(text, "text", here, _Size(most=size.most))


def _string(holder: Payload, key: str, path: str, size: _Size) -> Complaints:
    value = holder.get(key)
    here = f"{path}/{key}"
    if value is None:
        if size.required:
            yield _error(f"missing required field: {key}", path)
    elif not isinstance(value, str):
        yield _error("must be a string", here)
    elif len(value) > size.most:
        yield _error(f"must be less than {size.most + 1} characters", here)
    elif size.required and not value:
        yield _error("must be more than 0 characters", here)


def _each(
    holder: Payload,
    keys: tuple[str, ...],
    path: str,
    check: Callable[[Payload, str], Complaints],
) -> Complaints:
    """Check the objects under `keys` that are there; what is there must be an object."""
    for key in keys:
        inner = holder.get(key)
        if isinstance(inner, dict):
            yield from check(inner, f"{path}/{key}")
        elif inner is not None:
            yield _error("must be an object", f"{path}/{key}")


def _objects(items: Any, path: str) -> Iterator[tuple[str, Payload]]:
    """The objects of a list with their paths; anything else in it has no text to check."""
    for index, item in enumerate(items if isinstance(items, list) else ()):
        if isinstance(item, dict):
            yield f"{path}/{index}", item


def _count(items: Any, path: str, most: int) -> Complaints:
    if not isinstance(items, list) or not items:
        yield _error("must provide at least 1 item", path)
    elif not all(isinstance(item, dict) for item in items):
        yield _error("must be a list of objects", path)
    elif len(items) > most:
        yield _error(f"no more than {most} items allowed", path)


def _error(what: str, path: str) -> str:
    return f"[ERROR] {what} [json-pointer:{path}]"


def _text_lengths(value: Any) -> Iterator[int]:
    """Lengths of every text that people see, at any depth."""
    if isinstance(value, list):
        for item in value:
            yield from _text_lengths(item)
    elif isinstance(value, dict):
        for key, inner in value.items():
            if key == "text" and isinstance(inner, str):
                yield len(inner)
            elif key != "confirm":
                yield from _text_lengths(inner)


_ELEMENTS = frozenset(
    "overflow static_select external_select users_select conversations_select channels_select"
    " multi_static_select multi_external_select multi_users_select plain_text_input number_input"
    " checkboxes radio_buttons datepicker timepicker datetimepicker image email_text_input"
    " url_text_input".split()
)
_CHECKS: Mapping[str, Callable[[Payload, str], Complaints]] = {
    "header": _header,
    "section": _section,
    "context": _context,
    "actions": _actions,
    "input": _input,
    "markdown": _markdown,
    "divider": _anything,
    "image": _anything,
    "rich_text": _anything,
    "table": _anything,
}
