"""Changes to the rules of markdown for answers of models: no text is lost, any text is parsed."""

from __future__ import annotations

import re
from collections.abc import Callable

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock, blockquote, list_block, reference
from markdown_it.rules_inline import StateInline, emphasis, image, link

from bullpen.channels.text.links import address_length

BlockRule = Callable[[StateBlock, int, int, bool], bool]

_DEEPEST = 40
"""The depth at which quotes and lists become text: a list takes two levels. The parser drops what
is deeper than its own limit."""
_DEEPEST_BRACKETS = 10


def make_parser() -> MarkdownIt:
    """CommonMark without HTML, with strikethrough, tables and bare web addresses."""
    parser = MarkdownIt("commonmark", {"html": False, "maxNesting": 2 * _DEEPEST})
    parser.enable("strikethrough")
    terminates = ["paragraph", "reference"]
    parser.block.ruler.at("table", _table, {"alt": terminates})
    parser.block.ruler.enable("table")
    quotes = [*terminates, "blockquote", "list"]
    parser.block.ruler.at("blockquote", _bounded(blockquote), {"alt": quotes})
    parser.block.ruler.at("list", _bounded(list_block), {"alt": [*terminates, "blockquote"]})
    parser.block.ruler.at("reference", _reference)
    parser.inline.ruler.at("link", _link)
    parser.inline.ruler.at("image", _image)
    parser.inline.ruler.at("emphasis", _emphasis)
    parser.inline.ruler.push("address", _address)
    return parser


def _bounded(rule: BlockRule) -> BlockRule:
    def bounded(state: StateBlock, start: int, end: int, silent: bool) -> bool:
        return state.level < _DEEPEST and rule(state, start, end, silent)

    return bounded


def _reference(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """The definition of a link; one of a footnote, such as `[^1]: word`, stays text."""
    first = state.bMarks[start] + state.tShift[start]
    return not state.src.startswith("[^", first) and reference(state, start, end, silent)


def _link(state: StateInline, silent: bool) -> bool:
    """A link; brackets in brackets are tried to a depth, because each level reads them again."""
    return _too_deep(state, silent) or link(state, silent)


def _too_deep(state: StateInline, silent: bool) -> bool:
    """Whether the look-ahead has skipped the rest, as the parser does at its own limit."""
    if not silent or state.level < _DEEPEST_BRACKETS or state.src[state.pos] not in "![":
        return False
    state.pos = state.posMax
    return True


def _image(state: StateInline, silent: bool) -> bool:
    """An image; its text is parsed apart, and the level starts again at 0."""
    depth = state.env.get("images", 0)
    if depth >= 3:
        return False
    if _too_deep(state, silent):
        return True
    state.env["images"] = depth + 1
    try:
        return image(state, silent)
    finally:
        state.env["images"] = depth


def _address(state: StateInline, silent: bool) -> bool:
    """A bare web address: a link whose underscores and asterisks are no emphasis."""
    if state.linkLevel > 0 or not state.src.startswith("://", state.pos):
        return False
    scheme = _SCHEME.search(state.src, max(0, state.pos - 6), state.pos)
    if scheme is None or (not silent and not state.pending.endswith(scheme[1])):
        return False
    begin = state.pos - len(scheme[1])
    length = address_length(state.src, begin, state.posMax)
    if not length:
        return False
    if not silent:
        state.pending = state.pending[: -len(scheme[1])]
        address = state.src[begin : begin + length]
        state.push("link_open", "a", 1).attrs = {"href": address}
        state.push("text", "", 0).content = address
        state.push("link_close", "a", -1)
    state.pos = begin + length
    return True


def _emphasis(state: StateInline, silent: bool) -> bool:
    """Emphasis, but `__init__`, `2*3*4` and `x**2` are text, and CJK needs no spaces around it."""
    start = state.pos
    marker = state.src[start]
    if silent or marker not in "*_":
        return False
    if marker == "_":
        name = _DUNDER.match(state.src, start, state.posMax)
        if name and not (start and _WORD.match(state.src[start - 1])):
            state.append_pending(name[0])
            state.pos = name.end()
            return True
    before = len(state.delimiters)
    if not emphasis.tokenize(state, silent):
        return False
    if marker == "*":
        _open_or_close(state, start, before)
    return True


def _open_or_close(state: StateInline, start: int, first: int) -> None:
    before = state.src[start - 1] if start else " "
    after = state.src[state.pos] if state.pos < state.posMax else " "
    if _WORD.match(before) and _WORD.match(after):
        for delimiter in state.delimiters[first:]:
            delimiter.open = False
    elif _CJK.match(before) or _CJK.match(after):
        for delimiter in state.delimiters[first:]:
            delimiter.open = delimiter.open or not after.isspace()
            delimiter.close = delimiter.close or not before.isspace()


def _table(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """A table; unlike GFM, pipes in code do not end a cell, and cells beyond the header stay."""
    columns = _columns(state, start, end)
    if columns is None:
        return False
    if silent:
        return True
    header, aligns = columns
    state.push("table_open", "table", 1).meta = {"aligns": aligns}
    _push_row(state, start, header)
    interrupts = state.md.block.ruler.getRules("blockquote")
    line = start + 2
    while line < end and state.sCount[line] >= state.blkIndent and not state.is_code_block(line):
        text = _line(state, line)
        if not text or any(rule(state, line, end, True) for rule in interrupts):
            break
        _push_row(state, line, _cells(text, len(aligns)))
        line += 1
    state.push("table_close", "table", -1)
    state.line = line
    return True


def _columns(state: StateBlock, start: int, end: int) -> tuple[list[str], tuple[str, ...]] | None:
    """The cells of the header and the alignment of the columns, if a table starts here."""
    if start + 2 > end or state.sCount[start + 1] < state.blkIndent:
        return None
    if state.is_code_block(start) or state.is_code_block(start + 1):
        return None
    header, delimiters = _line(state, start), _line(state, start + 1)
    if "|" not in header or not _DELIMITERS.fullmatch(delimiters):
        return None
    aligns = tuple(_align(each.strip()) for each in delimiters.strip("|").split("|"))
    cells = _cells(header, len(aligns))
    return (cells, aligns) if len(cells) == len(aligns) else None


def _push_row(state: StateBlock, line: int, cells: list[str]) -> None:
    state.push("tr_open", "tr", 1)
    for cell in cells:
        token = state.push("inline", "", 0)
        token.map = [line, line + 1]
        token.content = cell
        token.children = []
    state.push("tr_close", "tr", -1)


def _line(state: StateBlock, line: int) -> str:
    return state.src[state.bMarks[line] + state.tShift[line] : state.eMarks[line]].strip()


def _align(delimiter: str) -> str:
    left, right = delimiter.startswith(":"), delimiter.endswith(":")
    if left and right:
        return "center"
    return "right" if right else "left" if left else ""


def _cells(line: str, count: int) -> list[str]:
    """The cells of a line, at most `count`: the last one has the rest."""
    cells = _split(line, _code_spans(line))
    if len(cells) < count and (split := _split(line, [])) and len(split) == count:
        cells = split
    if len(cells) > count:
        cells[count - 1 :] = [" | ".join(cells[count - 1 :])]
    return cells


def _split(line: str, code: list[tuple[int, int]]) -> list[str]:
    """The line split at the pipes outside of code, except at escaped ones."""
    cells = []
    begin = 0
    spans = iter([*code, (len(line), len(line))])
    span = next(spans)
    for found in _PIPE.finditer(line):
        at = found.start()
        while at >= span[1] and span[1] < len(line):
            span = next(spans)
        if not (span[0] <= at < span[1]):
            cells.append(line[begin:at])
            begin = at + 1
    cells.append(line[begin:])
    if line.startswith("|"):
        del cells[0]
    if len(cells) > 1 and not cells[-1].strip():
        del cells[-1]
    return [each.strip().replace("\\|", "|") for each in cells]


def _code_spans(line: str) -> list[tuple[int, int]]:
    """Where the code spans of a line are: between two runs of as many backticks."""
    runs = [(each.start(), each.end()) for each in _BACKTICKS.finditer(line)]
    following: dict[int, int] = {}
    closes = [0] * len(runs)
    for index in range(len(runs) - 1, -1, -1):
        size = runs[index][1] - runs[index][0]
        closes[index] = following.get(size, -1)
        following[size] = index
    spans = []
    index = 0
    while index < len(runs):
        close = closes[index]
        if close > 0:
            spans.append((runs[index][0], runs[close][1]))
            index = close
        index += 1
    return spans


_SCHEME = re.compile(r"(?<![A-Za-z0-9])(https?)$", re.IGNORECASE)
_DUNDER = re.compile(r"__[a-z0-9]+(?:_[a-z0-9]+)*__(?![A-Za-z0-9_])")
_WORD = re.compile(r"[A-Za-z0-9]")
_CJK = re.compile(
    "[\u1100-\u11ff\u2e80-\ua4cf\uac00-\ud7ff\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef]"
)
_DELIMITERS = re.compile(r"\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?")
_PIPE = re.compile(r"(?<!\\)\|")
_BACKTICKS = re.compile(r"`+")
