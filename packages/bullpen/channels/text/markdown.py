"""Markdown to the blocks of a document.

Receipts of parts have offsets into the text that this gives: after a change to it, a response that
is half sent can continue at another place.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import groupby

from markdown_it import MarkdownIt
from markdown_it.token import Token

from bullpen.channels.text.characters import clean, is_blank, width
from bullpen.channels.text.links import claims_another, usable_link
from bullpen.channels.text.rules import make_parser
from bullpen.channels.text.tree import (
    Block,
    Cell,
    Code,
    Container,
    Inline,
    Item,
    Paragraph,
    Quote,
    Row,
    Rule,
    Span,
    Table,
    merge,
)


def parse_blocks(markdown: str) -> tuple[Block, ...]:
    """The blocks of a text, each with at least one character; none if no character is visible.

    A text that the parser fails on becomes paragraphs of plain text.
    """
    text = clean(markdown)
    try:
        blocks = tuple(_Builder().build(_parser().parse(text, {})))
    except Exception:  # a person is waiting for the answer, formatted or not
        blocks = _paragraphs(text)
    return () if is_blank("".join(each.text for each in blocks)) else blocks


@cache
def _parser() -> MarkdownIt:
    return make_parser()


def _paragraphs(text: str) -> tuple[Block, ...]:
    """The text without any markdown read."""
    pieces = (each.strip() for each in re.split(r"\n\s*\n", text))
    return tuple(Paragraph(inline=Inline((Span(each),))) for each in pieces if each)


@dataclass(slots=True)
class _Open:
    """A quote or list item that is open."""

    container: Container
    begun: bool = False


@dataclass(slots=True)
class _Builder:
    """Blocks from the tokens of the parser."""

    open: list[_Open] = field(default_factory=list)
    numbers: list[int | None] = field(default_factory=list)
    """The next number of each open list; none in lists with bullets."""

    def build(self, tokens: Sequence[Token]) -> Iterator[Block]:
        each = iter(tokens)
        for token in each:
            match token.type:
                case "inline":
                    yield from self._paragraph(token, 0)
                case "heading_open":
                    yield from self._paragraph(next(each), int(token.tag[1:]))
                case "fence" | "code_block":
                    yield from self._code(token)
                case "hr":
                    inside, begins = self._place()
                    yield Rule(inside=inside, begins=begins)
                case "table_open":
                    yield from self._table(each, token.meta["aligns"])
                case _:
                    self._container(token)

    def _container(self, token: Token) -> None:
        match token.type:
            case "blockquote_open":
                self.open.append(_Open(Quote()))
            case "list_item_open":
                self.open.append(_Open(Item(self.numbers[-1])))
                if self.numbers[-1] is not None:
                    self.numbers[-1] += 1
            case "blockquote_close" | "list_item_close":
                self.open.pop()
            case "bullet_list_open":
                self.numbers.append(None)
            case "ordered_list_open":
                self.numbers.append(int(token.attrs.get("start", 1)))
            case "bullet_list_close" | "ordered_list_close":
                self.numbers.pop()

    def _place(self) -> tuple[tuple[Container, ...], int]:
        begins = sum(not each.begun for each in self.open)
        for each in self.open:
            each.begun = True
        return tuple([each.container for each in self.open]), begins

    def _paragraph(self, token: Token, level: int) -> Iterator[Block]:
        inline = _inline(token)
        if not inline.length:
            return
        starts = bool(self.open) and not self.open[-1].begun
        if starts and isinstance(self.open[-1].container, Item):
            inline = _checkbox(inline)
        inside, begins = self._place()
        yield Paragraph(inline=inline, level=level, inside=inside, begins=begins)

    def _code(self, token: Token) -> Iterator[Block]:
        text = clean(token.content).removesuffix("\n")
        if not text:
            return
        language = _LANGUAGE.match(token.info.strip())
        inside, begins = self._place()
        yield Code(
            text=text, language=language[0] if language else "", inside=inside, begins=begins
        )

    def _table(self, tokens: Iterator[Token], aligns: tuple[str, ...]) -> Iterator[Block]:
        rows: list[list[Inline]] = []
        for token in tokens:
            if token.type == "tr_open":
                rows.append([])
            elif token.type == "inline":
                rows[-1].append(_inline(token))
            elif token.type == "table_close":
                break
        table = _describe(rows, aligns)
        for index, row in enumerate(rows):
            cells = tuple(Cell(column, each) for column, each in enumerate(row) if each.length)
            if cells:
                inside, begins = self._place()
                yield Row(table=table, cells=cells, header=not index, inside=inside, begins=begins)


def _describe(rows: Sequence[Sequence[Inline]], aligns: tuple[str, ...]) -> Table:
    header = [" ".join(each.text.split()) for each in rows[0]]
    labels = tuple(
        each if len(each) <= _LONGEST_LABEL else each[: _LONGEST_LABEL - 1] + "…" for each in header
    )
    if len(header) > _MOST_LABELS:
        labels = ("",) * len(header)
    widths = [0] * len(aligns)
    simple = True
    for row in rows:
        for column, cell in enumerate(row):
            text = cell.text
            widths[column] = max(widths[column], width(text))
            simple = simple and "\n" not in text and _is_simple(cell)
    return Table(
        labels=labels,
        widths=tuple(widths),
        aligns=aligns,
        simple=simple,
        shortened=list(labels) != header,
    )


def _is_simple(cell: Inline) -> bool:
    return all(not each.link or each.bare for each in cell.spans)


def _inline(token: Token) -> Inline:
    spans = [each for each in _spans(token.children or []) if each.text]
    merged: list[Span] = []
    for address, group in groupby(spans, key=lambda each: each.link):
        label = list(group)
        merged.extend(_link(label) if address else label)
    return Inline(tuple(merge(merged)))


def _link(spans: list[Span]) -> list[Span]:
    """The spans of a link. A label that shows another address is followed by the real one."""
    address = spans[0].link
    label = "".join(each.text for each in spans)
    if label in (address, f"mailto:{label}") or not claims_another(label, address):
        return spans
    return [
        *(replace(each, link="") for each in spans),
        Span(" ("),
        Span(address.removeprefix("mailto:"), link=address),
        Span(")"),
    ]


def _spans(tokens: Sequence[Token]) -> Iterator[Span]:
    """The spans of an inline text, in the styles that are open at each."""
    depth = {"strong": 0, "em": 0, "s": 0}
    address = ""
    unusable = ""
    label: list[str] = []
    for token in tokens:
        if token.tag in depth:
            depth[token.tag] += token.nesting
            continue
        if token.type == "link_open":
            address, unusable = _address(str(token.attrs.get("href", "")))
            label = []
            continue
        if token.type == "link_close":
            if unusable and unusable != "".join(label):
                yield Span(f" ({unusable})")
            address = unusable = ""
            continue
        for span in _leaf(token, address):
            label.append(span.text)
            yield replace(
                span,
                bold=depth["strong"] > 0,
                italic=depth["em"] > 0,
                strike=depth["s"] > 0,
            )


def _leaf(token: Token, address: str) -> Iterator[Span]:
    match token.type:
        case "text":
            text = _BREAK.sub("\n", clean(token.content))
            # The parser shows addresses without their percent signs; those of links are clean.
            if address and usable_link(text):
                text = usable_link(text)
            yield Span(text, link=address)
        case "code_inline":
            yield Span(clean(token.content), code=True, link=address)
        case "softbreak" | "hardbreak":
            yield Span("\n", link=address)
        case "image":
            own, unusable = _address(str(token.attrs.get("src", "")))
            alt = clean(_plain(token.children or [])).strip() or "image"
            yield Span(alt, link=address or own)
            if unusable or (address and own):
                yield Span(f" ({unusable or own})", link="")
        case _:
            yield Span(clean(token.content), link=address)


def _plain(tokens: Sequence[Token]) -> str:
    return "".join(_plain(each.children) if each.children else each.content for each in tokens)


def _address(written: str) -> tuple[str, str]:
    """The address of a link if it is usable, and otherwise the text that shows it."""
    usable = usable_link(written)
    return (usable, "") if usable or written.startswith("#") else ("", clean(written))


def _checkbox(inline: Inline) -> Inline:
    """The text of a list item with the checkbox of a task as one character."""
    first = inline.spans[0]
    found = None if first.code or first.link else _TASK.match(first.text)
    if found is None:
        return inline
    box = "☐" if found[1] == " " else "☑"
    return Inline((replace(first, text=f"{box} {first.text[4:]}"), *inline.spans[1:]))


_LONGEST_LABEL = 40
_MOST_LABELS = 50
_LANGUAGE = re.compile(r"[A-Za-z0-9_+.#-]{1,20}")
_BREAK = re.compile(r"<br\s{0,3}/?>", re.IGNORECASE)
_TASK = re.compile(r"\[([ xX])\] ")
