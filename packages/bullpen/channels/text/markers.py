"""Markers around styled text, for platforms whose styles are characters in the text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from urllib.parse import unquote

from bullpen.channels.text.characters import ZERO_WIDTH_SPACE
from bullpen.channels.text.links import short_link
from bullpen.channels.text.tree import Span


def mark_up(
    spans: Sequence[Span],
    markers: Mapping[str, str],
    write: Callable[[Span], str],
    between: str = "",
) -> str:
    """The spans with markers around their styles, properly nested.

    Whitespace at the border of a style stays outside: a marker beside a space is none. `between`
    separates a closing marker from an opening one.
    """
    pieces: list[str] = []
    open_styles: list[str] = []
    space = ""
    for span in spans:
        core = span.text if span.code else span.text.strip()
        if not core:
            space += span.text
            continue
        before, after = ("", "") if span.code else _around(span.text, core)
        wanted = [name for name in markers if getattr(span, name)]
        kept = _kept(open_styles, wanted)
        closed = [markers[name] for name in reversed(open_styles[kept:])]
        opened = [name for name in wanted if name not in open_styles[:kept]]
        space += before
        if closed and opened and not space:
            space = between
        pieces += [*closed, space, *(markers[name] for name in opened)]
        open_styles[kept:] = opened
        pieces.append(write(span if core == span.text else replace(span, text=core)))
        space = after
    pieces += [markers[name] for name in reversed(open_styles)]
    return "".join([*pieces, space])


def _around(text: str, core: str) -> tuple[str, str]:
    start = len(text) - len(text.lstrip())
    return text[:start], text[start + len(core) :]


def _kept(open_styles: Sequence[str], wanted: Sequence[str]) -> int:
    """How many of the open styles stay open, outermost first."""
    for index, name in enumerate(open_styles):
        if name not in wanted:
            return index
    return len(open_styles)


def write_out_links(spans: Sequence[Span], is_link: Callable[[str], bool]) -> Iterator[Span]:
    """The spans, with addresses that cannot be a link written behind their labels."""
    for address, group in groupby(spans, key=lambda each: each.link):
        if not address or is_link(address):
            yield from group
            continue
        label = list(group)
        shown = "".join(each.text for each in label).strip()
        readable = address.removeprefix("mailto:")
        if shown in (readable, unquote(readable), readable.partition("://")[2].rstrip("/")):
            yield Span(readable)
        else:
            yield from (replace(each, link="") for each in label)
            yield Span(f" ({short_link(readable)})")


def break_fences(text: str) -> str:
    """The text without three backticks in a row, which would end a fence."""
    return text.replace("``", f"`{ZERO_WIDTH_SPACE}`") if "```" in text else text
