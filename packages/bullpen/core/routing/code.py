"""Where a text is code: fenced blocks and inline code, in which nothing is a tag."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator

Span = tuple[int, int]
"""From the first character to the one after the last."""

# A paragraph ends at blank lines or at a fence. What follows ``` on its line has no backtick in it:
# else it would be inline code.
_BREAK = re.compile(
    r"^(?:(?:[ \t\r]*+\n)++| {0,3}(?P<fence>`{3,}+(?=[^`\n]*+$)|~{3,}+))", re.MULTILINE
)
_FENCE = re.compile(r"^ {0,3}(`{3,}+|~{3,}+)[ \t\r]*+$", re.MULTILINE)
_BACKTICKS = re.compile(r"`++")
_ESCAPE_OR_BACKTICKS = re.compile(r"\\.|`++", re.DOTALL)


def code_spans(text: str) -> tuple[Span, ...]:
    """The spans that are code, with their backticks and fences, in order and without overlap."""
    return tuple(_code_spans(text))


def _code_spans(text: str) -> Iterator[Span]:
    at = 0
    while found := _BREAK.search(text, at):
        yield from _inline_code(text, at, found.start())
        at = found.end()
        if fence := found["fence"]:
            at = _fence_end(text, at, fence)
            yield found.start(), at
    yield from _inline_code(text, at, len(text))


def _fence_end(text: str, at: int, fence: str) -> int:
    """The end of the block that this fence opens."""
    for found in _FENCE.finditer(text, at):
        if found[1].startswith(fence):
            return found.end()
    return len(text)


def _inline_code(text: str, at: int, end: int) -> Iterator[Span]:
    """The inline code of one paragraph."""
    runs: dict[int, list[int]] = defaultdict(list)
    for run in _BACKTICKS.finditer(text, at, end):
        runs[len(run[0])].append(run.start())
    while runs and (found := _ESCAPE_OR_BACKTICKS.search(text, at, end)):
        at = found.end()
        if found[0].startswith("`"):
            closing = runs.get(len(found[0]), [])
            which = bisect_left(closing, at)
            if which < len(closing):
                at = closing[which] + len(found[0])
                yield found.start(), at
