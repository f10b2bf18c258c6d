"""The platforms as the tests see them, and a form of their texts that people can read."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from bullpen.channels.text.discord import fits_discord, render_discord
from bullpen.channels.text.plain import (
    fits_sms,
    fits_whatsapp,
    render_sms,
    render_whatsapp,
    segments,
)
from bullpen.channels.text.slack import fits_slack, render_slack
from bullpen.channels.text.split import next_end
from bullpen.channels.text.telegram import fits_telegram, render_telegram
from bullpen.channels.text.tree import Document


@dataclass(frozen=True, slots=True)
class Platform:
    name: str
    fits: Callable[[Document], bool]
    show: Callable[[Document], str]
    """What is sent, for people: invisible characters are named."""


def split(document: Document, fits: Callable[[Document], bool], start: int = 0) -> Iterator[int]:
    """The end of each part."""
    while start < document.length:
        start = next_end(document, start, fits)
        yield start


def parts(document: Document, fits: Callable[[Document], bool]) -> list[Document]:
    ends = list(split(document, fits))
    return [document.slice(start, end) for start, end in zip([0, *ends], ends, strict=False)]


def utf16(text: str, offset: object, length: object) -> str:
    assert isinstance(offset, int)
    assert isinstance(length, int)
    units = text.encode("utf-16-le")
    return units[2 * offset : 2 * (offset + length)].decode("utf-16-le")


def _slack(document: Document) -> str:
    rendered = render_slack(document)
    lines = [f"text: {rendered.text!r}"]
    for block in rendered.blocks:
        rows = block.get("rows") or block.get("elements") or []
        assert isinstance(rows, list)
        lines.append(str(block["type"]))
        lines += [f"  {_compact(each)}" for each in rows]
    return "\n".join(lines)


def _compact(value: object) -> str:
    """Rich text in a short form: text as a string, styles and addresses behind it."""
    if isinstance(value, list):
        return "  |  ".join(_compact(each) for each in value)
    assert isinstance(value, dict)
    if "text" in value:
        style = value.get("style", {})
        marks = "".join(f" {each}" for each in style)
        return json.dumps(value["text"], ensure_ascii=False) + marks + _address(value)
    inner = " ".join(_compact(each) for each in value["elements"])
    if value["type"] in ("rich_text", "rich_text_section"):
        return inner
    others = {key: value[key] for key in value if key not in ("type", "elements") and value[key]}
    name = value["type"].removeprefix("rich_text_")
    items = "".join(f"\n    * {_compact(each)}" for each in value["elements"])
    return f"{name} {others or ''}{items if name == 'list' else ' ' + inner}"


def _address(value: dict[str, object]) -> str:
    return f" <{value['url']}>" if value["type"] == "link" else ""


def _telegram(document: Document) -> str:
    rendered = render_telegram(document)
    lines = [rendered.text]
    for each in rendered.entities:
        extra = each.get("url") or each.get("language") or ""
        quoted = utf16(rendered.text, each["offset"], each["length"])
        lines.append(f"  [{each['offset']}+{each['length']} {each['type']} {extra}] {quoted!r}")
    return "\n".join(lines)


def _sms(document: Document) -> str:
    text = render_sms(document)
    return f"{text}\n  [{segments(text)} segments]"


PLATFORMS = (
    Platform("slack", fits_slack, _slack),
    Platform("telegram", fits_telegram, _telegram),
    Platform("discord", fits_discord, render_discord),
    Platform("whatsapp", fits_whatsapp, render_whatsapp),
    Platform("sms", fits_sms, _sms),
)


def readable(text: str) -> str:
    """The text with invisible characters named, long runs counted and long middles left out."""
    text = _RUN.sub(lambda found: f"{found[1]}{{×{len(found[0]) // len(found[1])}}}", text)
    text = _INVISIBLE.sub(lambda found: f"⟨{ord(found[0]):04X}⟩", text)
    lines = [_shorten(each, 300) for each in text.split("\n")]
    if len(lines) > 40:
        lines[15:-15] = [f"⟨{len(lines) - 30} lines⟩"]
    return "\n".join(each.rstrip() for each in lines)


def _shorten(line: str, length: int) -> str:
    if len(line) <= length:
        return line
    return f"{line[:150]}⟨{len(line) - 250} characters⟩{line[-100:]}"


_RUN = re.compile(r"([^\W\d_]{1,12}|\S{1,6})\1{30,}")
_INVISIBLE = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\xa0\u00ad\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\u2800\u3000\u3164\ufeff]"
)
