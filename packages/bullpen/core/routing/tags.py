"""Tags in a text: `[@coder: fix it]`, `[#dev: it is fixed]`, `[send_file: report.pdf]`.

Balanced brackets nest; brackets in code or after a backslash do not count. A tag with an
unbalanced bracket ends at the last `]` before the next tag.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

MAX_NAME_CHARS = 64

# The body of a tag is never empty, so a match becomes a tag as soon as its end is found.
_TOKEN = re.compile(
    r"\\. | \]"
    r"| \[ (?: (?: (?P<sigil>[@\#]) (?P<names>[^\[\]:\n`]++) | (?i:send_file) ) : (?!\s*+\]) )?+",
    re.DOTALL | re.VERBOSE,
)

_BLANK_LINES = re.compile(r"\n{3,}")


class TagKind(StrEnum):
    """The kind of a tag, as it is written."""

    AGENT = "@"
    ROOM = "#"
    FILE = "send_file"


@dataclass(frozen=True, slots=True)
class Tag:
    """One tag: its names, its text, and its source in the text."""

    kind: TagKind
    to: tuple[str, ...]
    text: str
    source: str


Segment = str | Tag


class _Opener(NamedTuple):
    """The head of a tag, from its bracket to where its body starts."""

    kind: TagKind
    to: tuple[str, ...]
    start: int
    body: int


Span = tuple[int, int]
"""From the first character to the one after the last."""


def parse_tags(text: str) -> tuple[Segment, ...]:
    """Split a text into its tags and the text between them; joined, they give the text again."""
    openers, closes = _scan(text)
    segments: list[Segment] = []
    at = 0
    for opener, limit in zip(openers, _limits(openers, closes, len(text)), strict=True):
        if opener.start < at:
            continue
        end = closes.get(opener.start, -1)
        if end < 0:
            end = text.rfind("]", opener.body, limit)
        if end < 0:
            continue
        if at < opener.start:
            segments.append(text[at : opener.start])
        at = end + 1
        body = text[opener.body : end].strip()
        segments.append(Tag(opener.kind, opener.to, body, text[opener.start : at]))
    if at < len(text):
        segments.append(text[at:])
    return tuple(segments)


def text_outside_tags(segments: Iterable[Segment]) -> str:
    """The text outside the tags, without the empty lines that the tags leave."""
    text = "".join(each for each in segments if isinstance(each, str))
    parts: list[str] = []
    at = 0
    for start, end in code_spans(text):
        parts += (_BLANK_LINES.sub("\n\n", text[at:start]), text[start:end])
        at = end
    return "".join((*parts, _BLANK_LINES.sub("\n\n", text[at:]))).strip()


def render_tags(segments: Iterable[Segment], speaker: str) -> str:
    """The text for people: tags are shown as `@a → @b: text`, file tags are left out."""
    runs: list[list[str]] = [[]]
    for each in segments:
        if isinstance(each, str):
            runs[-1].append(each)
        elif each.kind is TagKind.FILE:
            runs.append([])
        else:
            names = ", ".join(f"{each.kind}{name}" for name in each.to)
            runs[-1].append(f"@{speaker} → {names}: {each.text}")
    return _join_without_gaps(["".join(run) for run in runs])


def _scan(text: str) -> tuple[list[_Opener], dict[int, int]]:
    """All heads of tags, and the `]` of each `[` that has one, in the order of the `]`."""
    openers: list[_Opener] = []
    closes: dict[int, int] = {}
    unclosed: list[int] = []
    for token in _tokens(text):
        start = token.start()
        if token[0].startswith("["):
            unclosed.append(start)
            if opener := _opener(token):
                openers.append(opener)
        elif token[0] == "]" and unclosed:
            closes[unclosed.pop()] = start
    return openers, closes


def _tokens(text: str) -> Iterator[re.Match[str]]:
    """The brackets, heads and escapes outside of code."""
    at = 0
    for start, end in code_spans(text):
        yield from _TOKEN.finditer(text, at, start)
        at = end
    yield from _TOKEN.finditer(text, at)


def _opener(token: re.Match[str]) -> _Opener | None:
    if token[0] == "[":
        return None
    if token["sigil"] is None:
        return _Opener(TagKind.FILE, (), token.start(), token.end())
    sigil = token["sigil"]
    names = [name.strip().lstrip(sigil).strip() for name in token["names"].split(",")]
    to = tuple([name for name in names if name])
    if not to or max(map(len, to)) > MAX_NAME_CHARS:
        return None
    return _Opener(TagKind(sigil), to, token.start(), token.end())


def _limits(openers: Sequence[_Opener], closes: Mapping[int, int], size: int) -> list[int]:
    """The latest end of each head's tag if it is not closed: the next head outside of it.

    A bracket that opens before an unclosed head is unclosed too. A later head is therefore inside
    the unclosed one only if a pair of brackets inside it encloses that later head.
    """
    limits: list[int] = []
    limit = size
    pairs = list(closes.items())
    for opener in reversed(openers):
        limits.append(limit)
        # Of the pairs that open before this head, the one that closes last.
        while pairs and pairs[-1][0] >= opener.start:
            pairs.pop()
        if not pairs or pairs[-1][1] < opener.start:
            limit = opener.start
    return limits[::-1]


def _join_without_gaps(runs: Iterable[str]) -> str:
    """The texts around left out file tags, joined without the space that the tags leave."""
    kept: list[str] = []
    spaces: list[str] = []
    for run in runs:
        body = run.strip()
        spaces.append(run[: len(run) - len(run.lstrip())])
        if body:
            kept += (_remaining_space(spaces, edge=not kept), body)
            spaces = [run[len(run.rstrip()) :]]
    return "".join((*kept, _remaining_space(spaces, edge=True)))


def _remaining_space(spaces: Sequence[str], *, edge: bool) -> str:
    """The space that remains around a left out tag: the widest one, at most an empty line."""
    if len(spaces) == 1:
        return spaces[0]
    if edge or not any(spaces):
        return ""
    lines = min(2, max(space.count("\n") for space in spaces))
    # Keep the indentation after the tag.
    _, newline, indent = spaces[-1].rpartition("\n")
    return "\n" * lines + (indent if newline else "") if lines else " "


# A paragraph ends at blank lines or at a fence. The rest of a line with ``` has no backtick,
# otherwise it would be inline code.
_BREAK = re.compile(
    r"^(?:(?:[ \t\r]*+\n)++| {0,3}(?P<fence>`{3,}+(?=[^`\n]*+$)|~{3,}+))", re.MULTILINE
)

_FENCE = re.compile(r"^ {0,3}(`{3,}+|~{3,}+)[ \t\r]*+$", re.MULTILINE)

_BACKTICKS = re.compile(r"`++")

_ESCAPE_OR_BACKTICKS = re.compile(r"\\.|`++", re.DOTALL)


def code_spans(text: str) -> tuple[Span, ...]:
    """The spans of code with their backticks and fences, in order and without overlap."""
    return tuple(_code_spans(text))


def _code_spans(text: str) -> Iterator[Span]:
    at = 0
    while match := _BREAK.search(text, at):
        yield from _inline_code(text, at, match.start())
        at = match.end()
        if fence := match["fence"]:
            at = _fence_end(text, at, fence)
            yield match.start(), at
    yield from _inline_code(text, at, len(text))


def _fence_end(text: str, at: int, fence: str) -> int:
    """The end of the block that this fence opens."""
    for match in _FENCE.finditer(text, at):
        if match[1].startswith(fence):
            return match.end()
    return len(text)


def _inline_code(text: str, at: int, end: int) -> Iterator[Span]:
    """The inline code of one paragraph."""
    runs: dict[int, list[int]] = defaultdict(list)
    for run in _BACKTICKS.finditer(text, at, end):
        runs[len(run[0])].append(run.start())
    while runs and (match := _ESCAPE_OR_BACKTICKS.search(text, at, end)):
        at = match.end()
        if match[0].startswith("`"):
            closing = runs.get(len(match[0]), [])
            which = bisect_left(closing, at)
            if which < len(closing):
                at = closing[which] + len(match[0])
                yield match.start(), at
