"""What people see of a message of Slack: the text of its blocks, and their buttons."""

from __future__ import annotations

from collections.abc import Iterator

Json = dict[str, object]


def plain(message: Json) -> str:
    """What people see of a message, without styles."""
    blocks = message.get("blocks")
    if not isinstance(blocks, list):
        return str(message.get("text", ""))
    return "\n".join(filter(None, ("".join(_texts(each)) for each in blocks))).strip()


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, list):
        for each in value:
            yield from _texts(each)
    if not isinstance(value, dict) or value.get("type") == "actions":
        return
    kind = value.get("type")
    if kind == "link":
        yield str(value.get("text") or value.get("url"))
    elif isinstance(value.get("text"), str):
        yield value["text"]
    yield from _texts(value.get("elements"))
    yield from _texts(value.get("rows"))
    if kind in ("rich_text_preformatted", "rich_text_list", "rich_text_quote"):
        yield "\n"


def values(message: Json) -> list[str]:
    """The values of the buttons."""
    blocks = message.get("blocks")
    actions = [each for each in blocks or () if each["type"] == "actions"]  # type: ignore[attr-defined]
    return [button["value"] for each in actions for button in each["elements"]]
