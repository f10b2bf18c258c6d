"""The tree of an answer: blocks of styled text that every platform renders and that splitting cuts.

The tree is shallow. A block knows the quotes and list items that it is inside of, so that a cut
opens them again. Each character of text has an offset. Offsets depend on the markdown alone, not on
a platform or on its limits.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, groupby
from typing import TypeVar


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of text in one style."""

    text: str
    bold: bool = False
    italic: bool = False
    strike: bool = False
    code: bool = False
    link: str = ""
    """The address that the text links to: http, https or mailto."""

    @property
    def bare(self) -> bool:
        """Whether the text is the address itself."""
        return bool(self.link) and self.link in (self.text, f"mailto:{self.text}")

    def cut(self, start: int, end: int) -> Span:
        """A part of the span. A part of an address does not link: it would lead elsewhere."""
        if start <= 0 and end >= len(self.text):
            return self
        return replace(
            self, text=self.text[max(start, 0) : end], link="" if self.bare else self.link
        )


def merge(spans: Iterable[Span]) -> Iterator[Span]:
    """The spans, with neighbours of the same style as one; those of links stay apart."""
    for _, group in groupby(spans, key=lambda each: replace(each, text="")):
        first, *others = group
        if others and not first.link:
            yield replace(first, text="".join([first.text, *(each.text for each in others)]))
        else:
            yield from (first, *others)


@dataclass(frozen=True, slots=True)
class Inline:
    """The text of a paragraph or of a table cell."""

    spans: tuple[Span, ...] = ()
    ends: tuple[int, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "ends", tuple(accumulate(len(each.text) for each in self.spans)))

    @property
    def length(self) -> int:
        return self.ends[-1] if self.ends else 0

    @property
    def text(self) -> str:
        return "".join([each.text for each in self.spans])

    def cut(self, start: int, end: int) -> Inline:
        """The text between two offsets."""
        if start <= 0 and end >= self.length:
            return self
        if start >= end:
            return Inline()
        first, last = bisect_right(self.ends, start), bisect_left(self.ends, end)
        return Inline(
            tuple(
                span.cut(start - begin, end - begin)
                for span, begin in _with_begins(self.spans, self.ends, first, last)
            )
        )

    def strip(self) -> Inline:
        """The text without the whitespace around it."""
        if not self.spans or not (
            self.spans[0].text[0].isspace() or self.spans[-1].text[-1].isspace()
        ):
            return self
        text = self.text
        start = len(text) - len(text.lstrip())
        return self.cut(start, max(start, len(text.rstrip())))


@dataclass(frozen=True, slots=True)
class Quote:
    """A quote that blocks are inside of."""


@dataclass(frozen=True, slots=True)
class Item:
    """A list item that blocks are inside of."""

    number: int | None = None
    """The number in an ordered list."""


Container = Quote | Item


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """Where a block stands."""

    inside: tuple[Container, ...] = ()
    begins: int = 0
    """How many of the innermost containers begin with this block."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Paragraph(Placed):
    """A paragraph, or a heading if it has a level."""

    inline: Inline
    level: int = 0

    @property
    def length(self) -> int:
        return self.inline.length

    @property
    def text(self) -> str:
        return self.inline.text

    def cut(self, start: int, end: int) -> Paragraph:
        return replace(
            self, inline=self.inline.cut(start, end), begins=0 if start > 0 else self.begins
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Code(Placed):
    """A code block, fenced or indented."""

    text: str
    language: str = ""

    @property
    def length(self) -> int:
        return len(self.text)

    def cut(self, start: int, end: int) -> Code:
        text = self.text[max(start, 0) : end]
        return replace(self, text=text, begins=0 if start > 0 else self.begins)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule(Placed):
    """A thematic break. It counts as one character, so that it stays in its place."""

    text: str = "\N{EM DASH}"

    @property
    def length(self) -> int:
        return 1

    def cut(self, start: int, end: int) -> Rule:
        return self


@dataclass(frozen=True, slots=True)
class Table:
    """What the rows of a table share."""

    labels: tuple[str, ...]
    """The text of the header, shortened; it is repeated where a table continues in another part."""
    widths: tuple[int, ...]
    """The width of each column in characters of a terminal."""
    aligns: tuple[str, ...]
    """`left`, `center`, `right` or nothing for each column."""
    simple: bool
    """Whether plain text shows all of it: no links, no line breaks."""
    shortened: bool
    """Whether a label is shorter than its header."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell with text, and its column."""

    column: int
    inline: Inline


@dataclass(frozen=True, slots=True, kw_only=True)
class Row(Placed):
    """A row of a table; the first is the header."""

    table: Table
    cells: tuple[Cell, ...]
    header: bool = False
    ends: tuple[int, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "ends", tuple(accumulate(each.inline.length for each in self.cells))
        )

    @property
    def length(self) -> int:
        return self.ends[-1] if self.ends else 0

    @property
    def text(self) -> str:
        return "".join([each.inline.text for each in self.cells])

    def cut(self, start: int, end: int) -> Row:
        first, last = bisect_right(self.ends, start), bisect_left(self.ends, end)
        cells = tuple(
            Cell(cell.column, cell.inline.cut(start - begin, end - begin))
            for cell, begin in _with_begins(self.cells, self.ends, first, last)
        )
        return replace(self, cells=cells, begins=0 if start > 0 else self.begins)


Block = Paragraph | Code | Rule | Row


@dataclass(frozen=True, slots=True)
class Document:
    """An answer, or a part of one."""

    blocks: tuple[Block, ...] = ()
    """Each has at least one character."""
    ends: tuple[int, ...] = field(init=False, repr=False, compare=False)
    """The offset of the end of each block."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "ends", tuple(accumulate(each.length for each in self.blocks)))

    @classmethod
    def parse(cls, markdown: str) -> Document:
        """The tree of a text; any text has one."""
        from bullpen.channels.text.markdown import parse_blocks  # loads the parser

        return cls(parse_blocks(markdown))

    @property
    def length(self) -> int:
        """The number of characters of text, which is also the last offset."""
        return self.ends[-1] if self.ends else 0

    @property
    def text(self) -> str:
        """The text that offsets count: no markers, and nothing between the blocks."""
        return "".join([each.text for each in self.blocks])

    def slice(self, start: int, end: int | None = None) -> Document:
        """The part between two offsets.

        What it cuts is closed at the end and opened again at the start: a fence keeps its
        language, a list item its number, a table its header.
        """
        end = self.length if end is None else min(end, self.length)
        start = max(start, 0)
        if start == 0 and end == self.length:
            return self
        if start >= end:
            return Document()
        first, last = bisect_right(self.ends, start), bisect_left(self.ends, end)
        begins = [self.ends[each - 1] if each else 0 for each in (first, last)]
        if first == last:
            return Document((self.blocks[first].cut(start - begins[0], end - begins[0]),))
        head, tail = self.blocks[first], self.blocks[last]
        return Document(
            (
                head.cut(start - begins[0], head.length),
                *self.blocks[first + 1 : last],
                tail.cut(0, end - begins[1]),
            )
        )

    def plain(self) -> str:
        """The text as people read it, with list markers, without styles and links."""
        return "".join(_plain(self.blocks)).strip()


def gap(previous: Block, block: Block) -> str:
    """The line breaks between two blocks: an empty line, except in lists and tables."""
    if isinstance(previous, Row) and isinstance(block, Row) and previous.table is block.table:
        return "\n"
    if isinstance(previous, Paragraph) and previous.level:
        return "\n"
    if in_list(previous) and in_list(block):
        return "\n"
    return "\n\n"


def in_list(block: Block) -> bool:
    """Whether the block is in a list item."""
    return any(isinstance(each, Item) for each in block.inside)


def in_quote(block: Block) -> bool:
    """Whether the block is in a quote."""
    return any(isinstance(each, Quote) for each in block.inside)


def margins(block: Block, bullet: str) -> tuple[str, str]:
    """The margin of a block's first line, with its list markers, and that of its other lines."""
    first, rest = "", ""
    new = len(block.inside) - block.begins
    for depth, container in enumerate(block.inside):
        if isinstance(container, Item):
            marker = bullet if container.number is None else f"{container.number}."
            blank = " " * (len(marker) + 1)
            first += f"{marker} " if depth >= new else blank
            rest += blank
    return first, rest


Piece = TypeVar("Piece")


def _with_begins(
    pieces: Sequence[Piece], ends: Sequence[int], first: int, last: int
) -> Iterator[tuple[Piece, int]]:
    """The pieces from `first` to `last`, each with the offset at which it begins."""
    begin = ends[first - 1] if first else 0
    for index in range(first, min(last + 1, len(pieces))):
        yield pieces[index], begin
        begin = ends[index]


def _plain(blocks: Iterable[Block]) -> Iterator[str]:
    previous: Block | None = None
    for block in blocks:
        if previous is not None:
            yield gap(previous, block)
        yield margins(block, "\N{BULLET}")[0]
        yield (
            "  ".join(each.inline.text for each in block.cells)
            if isinstance(block, Row)
            else block.text
        )
        previous = block
