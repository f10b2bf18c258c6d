"""Text for Telegram: plain text with entities, which needs no escaping."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from bullpen.channels.text.characters import WORD_JOINER, is_blank, utf16_length
from bullpen.channels.text.layout import Laid, lay_out
from bullpen.channels.text.markers import write_out_links
from bullpen.channels.text.tree import Code, Document, Paragraph, Span

TEXT_LIMIT = 4096
"""In UTF-16 units."""
ENTITY_LIMIT = 100
_LINK_LIMIT = 2_048
_TABLE_WIDTH = 44
"""A phone shows about as many characters in a line of code."""


@dataclass(frozen=True, slots=True)
class TelegramText:
    """What `sendMessage` takes: `text` and `entities`, with offsets in UTF-16 units."""

    text: str
    entities: tuple[dict[str, object], ...] = ()


def render_telegram(document: Document) -> TelegramText:
    """The document as text with entities; empty if nobody would see anything of it."""
    builder = _Builder()
    for laid in lay_out(document, table_width=_TABLE_WIDTH, bullet="\N{BULLET}"):
        builder.add(laid)
    text = "".join(builder.pieces)
    return TelegramText("") if is_blank(text) else _without_mentions(text, builder)


def fits_telegram(document: Document) -> bool:
    """Whether one message can carry the document."""
    rendered = render_telegram(document)
    return len(rendered.entities) <= ENTITY_LIMIT and utf16_length(rendered.text) <= TEXT_LIMIT


@dataclass(slots=True)
class _Entity:
    type: str
    start: int
    """In characters, as the end."""
    end: int
    extra: str = ""
    """The address of a link, the language of code."""

    def as_dict(self, offset: int, end: int) -> dict[str, object]:
        entity: dict[str, object] = {"type": self.type, "offset": offset, "length": end - offset}
        if self.extra:
            entity["language" if self.type == "pre" else "url"] = self.extra
        return entity


@dataclass(slots=True)
class _Builder:
    pieces: list[str] = field(default_factory=list)
    length: int = 0
    entities: list[_Entity] = field(default_factory=list)
    latest: dict[str, _Entity] = field(default_factory=dict)

    def add(self, laid: Laid) -> None:
        start = self.length
        self._text(laid.gap)
        if laid.quoted:
            quote = self.latest.get("blockquote")
            begin = start if quote is not None and quote.end == start else self.length
        else:
            begin = -1
        self._text(laid.first)
        content = laid.content
        if isinstance(content, Code):
            self._styled(content.text, "pre", content.language)
        elif isinstance(content, Paragraph):
            for span in write_out_links(content.inline.spans, _is_link):
                self._span(span, laid.rest, heading=content.level > 0)
        else:
            self._text(3 * content.text)
        if begin >= 0:
            self._entity("blockquote", begin, self.length)

    def _span(self, span: Span, margin: str, *, heading: bool) -> None:
        text = span.text.replace("\n", "\n" + margin) if margin else span.text
        start = self.length
        if span.code:  # nothing else may be in or around code
            self._styled(text, "code")
        else:
            self._text(text)
            for name in _styles(span, heading=heading):
                self._entity(name, start, self.length)
        if span.link and not span.bare and not span.code:
            self._entity("text_link", start, self.length, span.link)

    def _text(self, text: str) -> None:
        self.pieces.append(text)
        self.length += len(text)

    def _styled(self, text: str, name: str, extra: str = "") -> None:
        start = self.length
        self._text(text)
        self._entity(name, start, self.length, extra)

    def _entity(self, name: str, start: int, end: int, extra: str = "") -> None:
        """Add an entity, or extend the one of the same kind that ends where it starts."""
        latest = self.latest.get(name)
        if name != "pre" and latest and latest.end == start and latest.extra == extra:
            latest.end = end
            return
        self.latest[name] = entity = _Entity(name, start, end, extra)
        self.entities.append(entity)


def _is_link(address: str) -> bool:
    return address.startswith("http") and len(address) <= _LINK_LIMIT


def _styles(span: Span, *, heading: bool) -> Iterator[str]:
    if span.bold or heading:
        yield "bold"
    if span.italic:
        yield "italic"
    if span.strike:
        yield "strikethrough"


def _without_mentions(text: str, builder: _Builder) -> TelegramText:
    """The text with what Telegram would take for a mention, command or its own link broken up.

    Telegram looks for them in the text, entities or not, except in code.
    """
    code = sorted((each.start, each.end) for each in builder.entities if each.type in _CODE)
    starts = [start for start, _ in code]

    def in_code(at: int) -> bool:
        index = bisect_right(starts, at)
        return index > 0 and at < code[index - 1][1]

    breaks = [each.end() for each in _LIVE.finditer(text) if not in_code(each.start())]
    pieces = [text[start:end] for start, end in pairwise([0, *breaks, len(text)])]
    wide = [] if text.isascii() else [at for at, char in enumerate(text) if char > "\uffff"]

    def units(at: int) -> int:
        return at + bisect_left(wide, at) + bisect_left(breaks, at)

    entities = sorted(builder.entities, key=lambda each: (each.start, -each.end))
    return TelegramText(
        WORD_JOINER.join(pieces),
        tuple(each.as_dict(units(each.start), units(each.end)) for each in entities),
    )


# After the rules of Telegram's own search: a name has a border in front, a command as well, and a
# link of its own scheme is one wherever it stands.
_LIVE = re.compile(
    r"(?<!\w)@(?=[A-Za-z0-9_]{2})"
    r"|(?<![\w/<>])/(?=[A-Za-z0-9_]{1,64}(?:@[A-Za-z0-9_]{3,32})?(?![\w/<>]))"
    r"|(?:tg|ton|tonsite):(?=//)",
    re.IGNORECASE,
)
_CODE = ("pre", "code")
