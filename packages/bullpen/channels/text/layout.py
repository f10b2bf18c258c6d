"""Layout: a document as lines with margins, its tables as text, for platforms without tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from bullpen.channels.text.characters import width
from bullpen.channels.text.tree import (
    Block,
    Code,
    Document,
    Inline,
    Paragraph,
    Row,
    Rule,
    Span,
    Table,
    gap,
    in_quote,
    margins,
    merge,
)

Content = Paragraph | Code | Rule


@dataclass(frozen=True, slots=True, kw_only=True)
class Laid:
    """A paragraph, code block or rule, and its place in the text."""

    content: Content
    gap: str
    """The line breaks before it."""
    first: str
    """The margin of its first line, with list markers."""
    rest: str
    """The margin of its other lines."""
    quoted: bool
    follows_quote: bool

    def with_margins(self, text: str) -> str:
        """The text of the content with its gap, and as lines of a quote if it is in one."""
        if not self.quoted:
            return self.gap + text
        gap = self.gap.replace("\n\n", "\n>\n") if self.follows_quote else self.gap
        return gap + "\n".join(f"> {line}" for line in text.split("\n"))


def lay_out(document: Document, *, table_width: int, bullet: str) -> Iterator[Laid]:
    """The contents of a document in order.

    A table of at most `table_width` columns becomes code with aligned cells, a wider one a list
    of "header: value" lines.
    """
    previous: Block | None = None
    for blocks in groups(document):
        block = blocks[0]
        content = block if isinstance(block, Content) else None
        if isinstance(block, Row):
            content = table_content([each for each in blocks if isinstance(each, Row)], table_width)
        if isinstance(content, Paragraph):
            content = Paragraph(inline=content.inline.strip(), level=content.level)
        elif isinstance(content, Code):
            content = trim_code(content)
        if content is None or not content.length:
            continue
        first, rest = margins(block, bullet)
        if previous is None and not first.strip():
            first = ""  # platforms cut spaces at the start of a message
        yield Laid(
            content=content,
            gap="" if previous is None else gap(previous, block),
            first=first,
            rest=rest,
            quoted=in_quote(block),
            follows_quote=previous is not None and in_quote(previous),
        )
        previous = blocks[-1]


def groups(document: Document) -> Iterator[list[Block]]:
    """The blocks of a document; the rows of a table are together."""
    tables = groupby(
        document.blocks, key=lambda each: id(each.table) if isinstance(each, Row) else 0
    )
    for table, blocks in tables:
        if table:
            yield list(blocks)
        else:
            yield from ([each] for each in blocks)


def trim_code(code: Code) -> Code:
    """The code without the empty lines around it; the margin of its first line stays."""
    lines = code.text.split("\n")
    filled = [index for index, line in enumerate(lines) if line.strip()]
    text = "\n".join(lines[filled[0] : filled[-1] + 1]) if filled else ""
    return Code(text=text.rstrip(), language=code.language)


def table_content(rows: Sequence[Row], table_width: int) -> Content:
    """The rows of a table as code with aligned cells, or as lines if they are too wide."""
    table = rows[0].table
    if table.simple and sum(table.widths) + 3 * (len(table.widths) - 1) <= table_width:
        return Code(text=_aligned(rows, table))
    return Paragraph(inline=Inline(tuple(merge(_records(rows, table)))))


def _aligned(rows: Sequence[Row], table: Table) -> str:
    header = _texts(rows[0]) if rows[0].header else list(table.labels)
    body = [_texts(each) for each in rows if not each.header]
    rule = "-+-".join("-" * each for each in table.widths)
    lines = [_aligned_line(header, table), rule, *(_aligned_line(each, table) for each in body)]
    return "\n".join(lines)


def _texts(row: Row) -> list[str]:
    texts = {each.column: each.inline.text for each in row.cells}
    return [texts.get(column, "") for column in range(len(row.table.aligns))]


def _aligned_line(cells: Sequence[str], table: Table) -> str:
    padded = [
        _pad(text, size, align)
        for text, size, align in zip(cells, table.widths, table.aligns, strict=False)
    ]
    return " | ".join(padded).rstrip()


def _pad(text: str, size: int, align: str) -> str:
    missing = max(0, size - width(text))
    if align == "right":
        return " " * missing + text
    before = missing // 2 if align == "center" else 0
    return " " * before + text + " " * (missing - before)


def _records(rows: Sequence[Row], table: Table) -> Iterator[Span]:
    """A line "header: value" for each cell, and an empty line between the rows."""
    lines = 0
    for index, row in enumerate(rows):
        if row.header and not table.shortened and len(rows) > 1 and len(table.labels) > 1:
            continue  # each row shows it
        if lines:
            yield Span("\n\n" if len(table.labels) > 1 else "\n")
        yield from _record(row, table)
        lines = index + 1


def _record(row: Row, table: Table) -> Iterator[Span]:
    for index, cell in enumerate(row.cells):
        label = table.labels[cell.column]
        if index:
            yield Span("\n" if label and not row.header else " | ")
        if label and not row.header and len(table.labels) > 1:
            yield Span(f"{label}:", bold=True)
            yield Span(" ")
        yield from cell.inline.spans
