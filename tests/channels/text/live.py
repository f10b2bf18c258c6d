"""Finds what would be a mention, a command or a foreign link in a rendered text.

These are the platforms' own rules as far as they are known, written apart from the renderers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from bullpen.channels.text.discord import render_discord
from bullpen.channels.text.slack import render_slack
from bullpen.channels.text.telegram import render_telegram
from bullpen.channels.text.tree import Document

SAFE = re.compile(r"(https?://[^\s@/]+(/\S*)?|https?://[^\s@/]+[?#]\S*|mailto:\S+)")


def live_on_slack(document: Document) -> list[str]:
    """Elements other than text and links, links to elsewhere, markup in the fallback."""
    rendered = render_slack(document)
    found = [] if "<" not in rendered.text and ">" not in rendered.text else [rendered.text]
    known = {
        "rich_text", "rich_text_section", "rich_text_list", "rich_text_quote",
        "rich_text_preformatted", "table", "divider", "text", "link",
    }  # fmt: skip
    for element in elements(list(rendered.blocks)):
        if element["type"] not in known:
            found.append(str(element))
        if element["type"] == "link" and not SAFE.fullmatch(str(element["url"])):
            found.append(str(element["url"]))
    return found


def elements(value: object) -> Iterator[dict[str, object]]:
    """Every object of the blocks that has a type."""
    if isinstance(value, list):
        for each in value:
            yield from elements(each)
    elif isinstance(value, dict):
        if "type" in value:
            yield value
        for each in value.values():
            yield from elements(each)


def live_on_telegram(document: Document) -> list[str]:
    """What Telegram's own search finds outside of code, and entities that people did not mean."""
    rendered = render_telegram(document)
    found = []
    units = bytearray(rendered.text.encode("utf-16-le"))
    for each in rendered.entities:
        url = str(each.get("url", "https://x"))
        if each["type"] in ("mention", "text_mention", "bot_command") or not SAFE.fullmatch(url):
            found.append(str(each))
        if each["type"] in ("code", "pre"):
            begin, length = int(str(each["offset"])), int(str(each["length"]))
            units[2 * begin : 2 * (begin + length)] = b" \0" * length
    text = units.decode("utf-16-le")
    found += re.findall(r"(?<!\w)@[A-Za-z0-9_]{2,32}(?!\w)", text)
    name = "[A-Za-z0-9_]"
    found += re.findall(rf"(?<![\w/<>])/{name}{{1,64}}(?:@{name}{{3,32}})?(?![\w/<>])", text)
    return [*found, *re.findall(r"(?:tg|ton|tonsite)://", text)]


def live_on_discord(document: Document) -> list[str]:
    """Mentions, commands, times and emoji outside of code, links to elsewhere, invitations."""
    text = re.sub(r"\\[^0-9A-Za-z\s]", "\0", render_discord(document))
    text = re.sub(r"```.*?```", "\0", text, flags=re.DOTALL)
    text = re.sub(r"(?<!`)(`+)(?!`)(.*?)(?<!`)\1(?!`)", "\0", text, flags=re.DOTALL)
    found = re.findall(r"@everyone|@here|<@[!&]?\w+>|<#\w+>|<a?:\w+:\d+>|<t:-?\d+(?::\w)?>", text)
    found += re.findall(r"</[\w -]+:\d+>|<id:\w+>", text)
    found += [each for each in re.findall(r"\]\(<?([^>)]*)", text) if not SAFE.match(each)]
    shown = re.sub(r"<https?://[^>]*>", "\0", text)
    return [*found, *re.findall(r"discord\.gg/\w+", shown)]
