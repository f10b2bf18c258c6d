"""Text for Slack: blocks of rich text. Nothing in it is parsed, so nothing becomes a mention."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from bullpen.channels.text.characters import is_blank
from bullpen.channels.text.layout import Content, groups, table_content, trim_code
from bullpen.channels.text.markers import write_out_links
from bullpen.channels.text.tree import (
    Block,
    Code,
    Document,
    Inline,
    Item,
    Paragraph,
    Row,
    Rule,
    Span,
    gap,
    in_list,
    in_quote,
)

TOTAL_LIMIT = 10_000
"""The characters of all blocks; Slack refused messages of about 13 200."""
BLOCK_LIMIT = 50
ELEMENT_LIMIT = 1_000
"""The pieces of text in all blocks. A guess: Slack names no limit."""
ROW_LIMIT = 100
COLUMN_LIMIT = 20
LINK_LIMIT = 3_000
TEXT_LIMIT = 4_000
_FALLBACK = 300
_TABLE_WIDTH = 80
_DEEPEST_INDENT = 8

Json = dict[str, object]


@dataclass(frozen=True, slots=True)
class SlackText:
    """What `chat.postMessage` takes: `blocks`, and `text` for notifications."""

    blocks: tuple[Json, ...] = ()
    text: str = ""


def render_slack(document: Document) -> SlackText:
    """The document as blocks; none if nobody would see anything of it."""
    if is_blank(document.text):
        return SlackText()
    return SlackText(tuple(_Builder().build(document)), fallback(document))


def fallback(document: Document) -> str:
    """The beginning of the document without styles, escaped, for notifications."""
    plain = document.slice(0, 2 * _FALLBACK).plain()
    if len(plain) > _FALLBACK or document.length > 2 * _FALLBACK:
        plain = plain[: _FALLBACK - 1].rstrip() + "\N{HORIZONTAL ELLIPSIS}"
    return plain.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def fits_slack(document: Document) -> bool:
    """Whether one message can carry the document."""
    rendered = render_slack(document)
    leaves = [leaf for each in rendered.blocks for leaf in _leaves(each)]
    tables = [each["rows"] for each in rendered.blocks if each["type"] == "table"]
    return (
        len(rendered.blocks) <= BLOCK_LIMIT
        and len(rendered.text) <= TEXT_LIMIT
        and all(isinstance(rows, list) and len(rows) <= ROW_LIMIT for rows in tables)
        and len(leaves) <= ELEMENT_LIMIT
        and sum(_characters(each) for each in leaves) <= TOTAL_LIMIT
    )


def _characters(element: Json) -> int:
    """The characters of an element's text and address."""
    texts = (element["text"], element.get("url"))
    return sum(len(each) for each in texts if isinstance(each, str))


def _leaves(value: object) -> Iterator[Json]:
    """The elements of a block that have text."""
    if isinstance(value, list):
        for each in value:
            yield from _leaves(each)
    elif isinstance(value, dict):
        if "text" in value:
            yield value
        yield from _leaves(value.get("elements"))
        yield from _leaves(value.get("rows"))


@dataclass(slots=True)
class _Builder:
    """The elements of the rich text block that is being filled."""

    elements: list[Json] = field(default_factory=list)
    tables: int = 0
    previous: Block | None = None
    """The block that the last element came from."""

    def build(self, document: Document) -> Iterator[Json]:
        for blocks in groups(document):
            block = blocks[0]
            rows = [each for each in blocks if isinstance(each, Row)]
            if rows and not self.tables and len(rows[0].table.aligns) <= COLUMN_LIMIT:
                # Slack takes one table in a message; the others become text.
                self.tables = 1
                yield from self._flush()
                yield _table(rows)
            elif isinstance(block, Rule):
                yield from self._flush()
                yield {"type": "divider"}
            else:
                content = block if not isinstance(block, Row) else table_content(rows, _TABLE_WIDTH)
                self._add(block, content)
                self.previous = blocks[-1] if self.elements else None
        yield from self._flush()

    def _flush(self) -> Iterator[Json]:
        if self.elements:
            yield {"type": "rich_text", "elements": self.elements}
        self.elements, self.previous = [], None

    def _add(self, block: Block, content: Content) -> None:
        if isinstance(content, Code):
            self._code(block, trim_code(content))
            return
        inline = content.inline.strip() if isinstance(content, Paragraph) else Inline()
        elements = _elements(inline, heading=isinstance(content, Paragraph) and content.level > 0)
        if not elements:
            return
        item = next((each for each in reversed(block.inside) if isinstance(each, Item)), None)
        if item is not None and block.begins:
            self._item(block, item, elements)
        else:
            self._section(block, elements)

    def _code(self, block: Block, code: Code) -> None:
        if not code.text:
            return
        item = next((each for each in reversed(block.inside) if isinstance(each, Item)), None)
        if item is not None and block.begins:
            self._item(block, item, [{"type": "text", "text": " "}])
        element: Json = {
            "type": "rich_text_preformatted",
            "elements": [{"type": "text", "text": code.text}],
            "border": int(in_quote(block)),
        }
        if code.language:
            element["language"] = code.language
        self.elements.append(element)

    def _section(self, block: Block, elements: list[Json]) -> None:
        kind = "rich_text_quote" if in_quote(block) else "rich_text_section"
        last = self.elements[-1] if self.elements else None
        if last is not None and self.previous is not None:
            breaks: Json = {"type": "text", "text": gap(self.previous, block)}
            inner = last["elements"]
            if last["type"] == kind and isinstance(inner, list):
                inner.extend([breaks, *elements])
                return
            if last["type"] == "rich_text_list" and isinstance(inner, list) and in_list(block):
                # A list item has one section: its other paragraphs are lines of it.
                inner[-1]["elements"].extend([breaks, *elements])
                return
            if last["type"] in ("rich_text_list", "rich_text_quote"):
                elements = [{"type": "text", "text": "\n"}, *elements]
        self.elements.append({"type": kind, "elements": elements})

    def _item(self, block: Block, item: Item, elements: list[Json]) -> None:
        section: Json = {"type": "rich_text_section", "elements": elements}
        depth = sum(isinstance(each, Item) for each in block.inside) - 1
        shape: Json = {
            "type": "rich_text_list",
            "style": "bullet" if item.number is None else "ordered",
            "indent": min(depth, _DEEPEST_INDENT),
            "border": int(in_quote(block)),
        }
        last = self.elements[-1] if self.elements else {}
        inner = last.get("elements")
        if isinstance(inner, list) and all(last.get(key) == shape[key] for key in shape):
            offset = last.get("offset", 0)
            expected = (offset if isinstance(offset, int) else 0) + len(inner) + 1
            if item.number in (None, expected):
                inner.append(section)
                return
        if item.number is not None and item.number > 1:
            shape["offset"] = item.number - 1
        self.elements.append({**shape, "elements": [section]})


def _table(rows: Sequence[Row]) -> Json:
    table = rows[0].table
    lines = [] if rows[0].header else [[_cell(Inline((Span(each),))) for each in table.labels]]
    for row in rows:
        cells = {each.column: each.inline for each in row.cells}
        lines.append([_cell(cells.get(each, Inline())) for each in range(len(table.aligns))])
    settings = [{"align": each or "left", "is_wrapped": True} for each in table.aligns]
    return {"type": "table", "column_settings": settings, "rows": lines}


def _cell(cell: Inline) -> Json:
    """A cell; an empty one is refused, so it has a space."""
    elements = _elements(cell, heading=False) or [{"type": "text", "text": " "}]
    section = {"type": "rich_text_section", "elements": elements}
    return {"type": "rich_text", "elements": [section]}


def _elements(inline: Inline, *, heading: bool) -> list[Json]:
    spans = write_out_links(inline.spans, lambda address: len(address) <= LINK_LIMIT)
    return [_span(each, heading=heading) for each in spans if each.text]


def _span(span: Span, *, heading: bool) -> Json:
    styles = {
        "bold": span.bold or heading,
        "italic": span.italic,
        "strike": span.strike,
        "code": span.code,
    }
    style = {name: True for name, on in styles.items() if on}
    element: Json = {"type": "text", "text": span.text}
    if span.link:
        element = {"type": "link", "url": span.link, "text": span.text}
    if style:
        element["style"] = style
    return element
