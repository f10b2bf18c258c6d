"""Splitting: the end of each part of an answer, at a good place within the platform's limits."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from enum import IntEnum

from bullpen.channels.text.characters import blank_length, clusters
from bullpen.channels.text.tree import Block, Document, Paragraph, Row, in_list

Fits = Callable[[Document], bool]

_FIRST_WINDOW = 2_048
_FIRST_PIECES = 64


class Cut(IntEnum):
    """The kinds of places where a part may end, best first."""

    PARAGRAPH = 0
    BLOCK = 1
    """Between list items, between rows of a table."""
    LINE = 2
    SENTENCE = 3
    SPACE = 4


def next_end(document: Document, start: int, fits: Fits) -> int:
    """The end of the part that begins at `start`: the longest that fits, cut at the best place.

    It is greater than `start` unless that is the end of the document already. A part that ends
    between paragraphs may be shorter, down to half of the space. Only if not even one character
    fits, the part does not.
    """
    low, window = 0, _first_window(document, start)
    piece = document.slice(start, start + window)
    while fits(piece):
        if start + window >= document.length:
            return document.length
        low, window = window, 2 * window
        piece = document.slice(start, start + window)
    return start + _cut(piece, low, fits)


def _first_window(document: Document, start: int) -> int:
    """A length to begin with, which is short where the blocks, cells or spans are short."""
    index = bisect_right(document.ends, start)
    if index >= len(document.ends):
        return 1
    block = document.blocks[index]
    inner = block.inline.ends if isinstance(block, Paragraph) else ()
    inner = block.ends if isinstance(block, Row) else inner
    begin = document.ends[index] - block.length
    piece = bisect_right(inner, start - begin) + _FIRST_PIECES
    if piece < len(inner):
        end = begin + inner[piece]
    else:
        end = document.ends[min(index + _FIRST_PIECES, len(document.ends) - 1)]
    return min(_FIRST_WINDOW, end - start)


def _cut(piece: Document, low: int, fits: Fits) -> int:
    """The best place to cut a piece that does not fit; its first `low` characters do.

    It is behind the first character that can be seen: platforms refuse an empty message.
    """
    text = piece.text
    blank = blank_length(text)
    places = {offset: cut for offset, cut in _places(piece).items() if offset > blank}
    offsets = sorted(places)
    known = bisect_right(offsets, low)
    full = _last_fitting(piece, offsets[known:], fits) or (offsets[known - 1] if known else 0)
    if 2 * full <= low or _fits_double(piece, full, fits):
        ends = [each for each in clusters(text) if each > max(full, blank)]
        full = _last_fitting(piece, ends, fits) or full or ends[0]
        places.setdefault(full, Cut.SPACE)
        offsets = sorted(places)
    offsets = offsets[: bisect_right(offsets, full)]
    for cut in Cut:
        best = max((each for each in offsets if places[each] <= cut), default=0)
        if 2 * best > full and (best == full or fits(piece.slice(0, best))):
            return best
    return full


def _fits_double(piece: Document, full: int, fits: Fits) -> bool:
    """Whether a cut at `full` loses more than half of the space."""
    return not full or (2 * full < piece.length and fits(piece.slice(0, 2 * full)))


def _last_fitting(piece: Document, offsets: Sequence[int], fits: Fits) -> int:
    """The last of the offsets up to which the piece fits, or 0."""
    low, high = 0, len(offsets)
    while low < high:
        middle = (low + high) // 2
        if fits(piece.slice(0, offsets[middle])):
            low = middle + 1
        else:
            high = middle
    return offsets[low - 1] if low else 0


def _places(piece: Document) -> dict[int, Cut]:
    """The offsets where the piece may be cut; the start of the rest has no space in front."""
    text = piece.text
    places = {each.end(): Cut.SPACE for each in _SPACE.finditer(text)}
    places |= {each.end(): Cut.SENTENCE for each in _SENTENCE.finditer(text)}
    places |= {each.end(): Cut.LINE for each in _LINE.finditer(text)}
    following = [*piece.blocks[1:], None]
    for end, block, after in zip(piece.ends, piece.blocks, following, strict=True):
        if after is not None:
            places[end] = _between(block, after)
    places.pop(0, None)
    places.pop(len(text), None)
    return places


def _between(block: Block, after: Block) -> Cut:
    if isinstance(block, Paragraph) and (block.level or block.text.rstrip().endswith(":")):
        return Cut.SPACE  # a heading belongs to what follows
    if isinstance(block, Row) and isinstance(after, Row) and block.table is after.table:
        return Cut.SPACE if block.header else Cut.BLOCK
    if in_list(block) and in_list(after):
        return Cut.BLOCK
    return Cut.PARAGRAPH


_LINE = re.compile(r"\n")
_SENTENCE = re.compile(
    "[.!?\u2026][)\"'\\]\u00bb\u201d\u2019]*[^\\S\n]+|[\u3002\uff01\uff1f]+[\u300d\u300f\uff09\u201d\u2019]*"
)
_SPACE = re.compile(r"(?<=\S)[^\S\n]+")
