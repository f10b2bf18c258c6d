"""Finds words and phrases that Bullpen's texts must not use, and says what to write instead.

`python -m tests.docs.words [PATH...]` lists them; a test fails while there are any. The list is
`banned_words.tsv`: a regular expression and what to write instead, separated by a tab.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIST = Path(__file__).with_name("banned_words.tsv")

READ_BY_PEOPLE = ("packages", "docs", "services", "migrations", "deploy", "examples")
PAGES = ("README.md", "CHANGELOG.md", "Makefile", "tmux.conf")
CODE = re.compile(r"`[^`]+`")
SUFFIXES = {".py", ".md", ".conf", ".sh", ".service", ".ini", ".mako", ""}


@dataclass(frozen=True, slots=True)
class Text:
    """A piece of text that a person reads, on one line, and where it begins."""

    path: Path
    line: int
    words: str


@dataclass(frozen=True, slots=True)
class Finding:
    """A banned word in a text."""

    text: Text
    found: str
    instead: str

    def __str__(self) -> str:
        place = self.text.path.relative_to(ROOT)
        around = self.text.words.find(self.found)
        quote = self.text.words[max(0, around - 40) : around + len(self.found) + 40]
        return f"{place}:{self.text.line}: {self.found!r} (say: {self.instead}): …{quote}…"


def banned_words() -> list[tuple[re.Pattern[str], str]]:
    """Return each pattern and what to write instead."""
    lines = LIST.read_text(encoding="utf-8").splitlines()
    rows = (line.split("\t") for line in lines if line and not line.startswith("#"))
    return [(re.compile(pattern, re.IGNORECASE), instead) for pattern, instead in rows]


def find_banned(texts: Iterable[Text]) -> Iterator[Finding]:
    """Find each use of a banned word; `code` and strings of one word are names, and may be old."""
    banned = banned_words()
    for text in texts:
        words = CODE.sub("`…`", text.words)
        if " " not in words:
            continue
        for pattern, instead in banned:
            for match in pattern.finditer(words):
                yield Finding(text, match[0], instead)


def read_texts(paths: Iterable[Path] | None = None) -> Iterator[Text]:
    """Read every text of these files, or of everything that people read."""
    for path in all_files() if paths is None else paths:
        if path.suffix == ".py":
            yield from _python(path)
        elif path.suffix in SUFFIXES:
            yield from _paragraphs(path)


def all_files() -> Iterator[Path]:
    """Every file that people read, tests left out."""
    for name in READ_BY_PEOPLE:
        yield from sorted(each for each in (ROOT / name).rglob("*") if each.is_file())
    yield from (ROOT / name for name in PAGES)


def _python(path: Path) -> Iterator[Text]:
    """The strings and comments of a module; a string in several pieces is one text."""
    source = path.read_text(encoding="utf-8")
    inside = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.JoinedStr):
            inside |= {id(each) for each in node.values}
            parts = (
                str(each.value) if isinstance(each, ast.Constant) else "{}" for each in node.values
            )
            yield Text(path, node.lineno, _one_line("".join(parts)))
        elif (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in inside
        ):
            yield Text(path, node.lineno, _one_line(node.value))
    yield from _comments(path, source)


def _comments(path: Path, source: str) -> Iterator[Text]:
    """The comments of a module; those of consecutive lines are one text."""
    block: list[str] = []
    begin = last = 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            continue
        if token.start[0] != last + 1 and block:
            yield Text(path, begin, " ".join(block))
            block = []
        begin = begin if block else token.start[0]
        block.append(token.string.lstrip("#: "))
        last = token.start[0]
    if block:
        yield Text(path, begin, " ".join(block))


def _paragraphs(path: Path) -> Iterator[Text]:
    """The paragraphs of a page or of a script."""
    block: list[str] = []
    begin = 0
    for number, line in enumerate([*path.read_text(encoding="utf-8").splitlines(), ""], start=1):
        if line.strip():
            begin = begin if block else number
            block.append(line.strip().lstrip("#> "))
        elif block:
            yield Text(path, begin, _one_line(" ".join(block)))
            block = []


def _one_line(text: str) -> str:
    return " ".join(text.split())


def main() -> None:
    """List what is found in these paths, or everywhere."""
    named = [Path(each).resolve() for each in sys.argv[1:]]
    files = [
        each for each in all_files() if not named or any(each.is_relative_to(n) for n in named)
    ]
    findings = list(find_banned(read_texts(files)))
    for each in findings:
        print(each)
    print(f"{len(findings)} in {len(files)} files")
    sys.exit(bool(findings))


if __name__ == "__main__":
    main()
