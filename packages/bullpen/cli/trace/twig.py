"""A tree of lines: drawn by rich on a terminal, and the same in plain text elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:  # the command line begins without
    from rich.tree import Tree

ARROW = "→"
GUIDES = ("├── ", "└── ", "│   ", "    ")
ASCII = ("+-- ", "`-- ", "|   ", "    ")


@dataclass(frozen=True, slots=True)
class StyledLine:
    """One line, and how it is shown where there are colours."""

    text: str
    style: str = ""


@dataclass(frozen=True, slots=True)
class LineTree:
    """Some lines, with others below them."""

    lines: tuple[StyledLine, ...]
    children: tuple[LineTree, ...] = ()


def to_rich_tree(root: LineTree) -> Tree:
    """The tree, for a terminal."""
    from rich.text import Text  # only here: the command line begins without
    from rich.tree import Tree

    def label(twig: LineTree) -> Text:
        return Text("\n").join(Text(each.text, each.style) for each in twig.lines)

    top = Tree(label(root), guide_style="dim")
    waiting = [(top, root)]
    while waiting:
        place, twig = waiting.pop()
        waiting += [(place.add(label(each)), each) for each in twig.children]
    return top


def tree_lines(root: LineTree, guides: tuple[str, str, str, str] = GUIDES) -> Iterator[str]:
    """The tree as lines of text, each as long as it is."""
    middle, last, beside, beneath = guides
    waiting = [(root, "", "")]
    while waiting:
        twig, first, rest = waiting.pop()
        below = beside if twig.children else ""
        for number, line in enumerate(_split(twig)):
            yield (first + line if number == 0 else rest + below + line).rstrip()
        for each in reversed(twig.children):
            end = each is twig.children[-1]
            waiting.append(
                (each, rest + (last if end else middle), rest + (beneath if end else beside))
            )


def guides_for(out: TextIO) -> tuple[str, str, str, str]:
    """The guides that this stream can show."""
    try:
        "".join(GUIDES).encode(out.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return ASCII
    return GUIDES


def print_tree(root: LineTree) -> None:
    """Print the tree; what the stream cannot show is escaped, and stops nothing."""
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")
    if sys.stdout.isatty():
        from rich.console import Console  # only here: the command line begins without

        Console(highlight=False).print(to_rich_tree(root))
    else:
        guides = guides_for(sys.stdout)
        for each in tree_lines(root, guides):
            print(each if guides is GUIDES else each.replace(ARROW, "->"))


def _split(twig: LineTree) -> Iterator[str]:
    for each in twig.lines:
        yield from each.text.split("\n")
