"""What the pages quote: commands, routes, and texts that Bullpen prints."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import click

from bullpen.api.description import describe
from bullpen.cli.history import HistoryGroup
from bullpen.cli.main import cli

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
GENERATED = {"commands.md"}
"""Pages whose commands are the program's own help."""

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_INLINE = re.compile(r"(?<!`)`([^`\n]+(?:\n[^`\n]+)?)`(?!`)")
_INDENTED = re.compile(r"^ {4}(bullpen .*)$", re.MULTILINE)
_SHELL = {"", "sh", "console"}
_BEFORE = r"(?:^|[|;&(]\s*|\$\(|(?<!\S)(?:sudo|exec)\s+|(?:[\d*]+\s+){5}|[A-Z_]+=\S*\s+)"
_COMMAND = re.compile(rf"{_BEFORE}(?:\$\s+)?(?:\S*/bin/)?bullpen(?=\s|$)")
_ROUTE = re.compile(
    r"(?:\b(GET|POST|PUT|PATCH|DELETE) )?(?:https?://[\w.:$-]+)?(?<!\.com)(/api/[^\s`\"')|,;]*)"
)
_HOLE = re.compile(r"<\w+>|\{\w+\}|…|\$\w+")
_NAMED = re.compile(
    r"`(bullpen [^`]*)`|(?:Next|[Rr]un|Then|Test|add):\s+(bullpen [^\n]*)|^ {2,}(bullpen [^\n]*)$",
    re.MULTILINE,
)
"""Commands in a text: between backticks, after a colon, or on a line of their own."""
FIELD = "FIELD"
"""Stands for what the program fills into a text."""
LITERAL_CHARS = 8
"""A piece of a text must have so many letters of its own to be looked for."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command line of `bullpen` on a page."""

    page: Path
    text: str

    def problem(self) -> str | None:
        """Say what the program would not understand of it."""
        try:
            words = shlex.split(self.text, comments=True)
        except ValueError as error:
            return str(error)
        # A command keeps the help option of its first context, so this one has the program's.
        context = click.Context(cli, info_name="bullpen", **cli.context_settings)
        return _problem(cli, context, words)


def pages() -> list[Path]:
    """Every page that people and agents read; the changelog names commands of other versions."""
    shipped = [*(ROOT / "packages").rglob("*.md"), *(ROOT / "examples").rglob("*.md")]
    return [*ROOT.glob("[RC][EO]*.md"), *sorted(DOCS.rglob("*.md")), *sorted(shipped)]


def commands(page: Path) -> Iterator[Command]:
    """Find each command line of `bullpen` in the blocks and in the text of a page."""
    if page.name in GENERATED:
        return
    text = page.read_text(encoding="utf-8")
    for language, block in _FENCE.findall(text):
        if language in _SHELL:
            for line in _logical_lines(_typed(block) if language == "console" else block):
                yield from (Command(page, each) for each in _commands_of(line))
    for line in _INDENTED.findall(text):
        yield from (Command(page, each) for each in _commands_of(line))
    for quoted in _INLINE.findall(_FENCE.sub("", text)):
        words = " ".join(quoted.split())
        if words.startswith("bullpen ") or " bullpen " in words:
            yield from (Command(page, each) for each in _commands_of(words))


def program_commands() -> Iterator[Command]:
    """Find each command line that a text of the program names: a hint, or an example of a help."""
    for path, text in program_texts():
        for found in _NAMED.findall(text):
            quoted = next(part for part in found if part)
            for each in re.split(r"(?:, |; )(?:then: )?(?=bullpen )", quoted):
                for command in _commands_of(each):
                    yield Command(path, command.strip().rstrip(".;"))


def routes(page: Path) -> Iterator[tuple[str, str]]:
    """Find each path of the API on a page, with its method if one is named."""
    if page.name in GENERATED:
        return
    for method, path in _ROUTE.findall(page.read_text(encoding="utf-8")):
        yield method, _HOLE.sub("x", path.split("?")[0].split("#")[0]).rstrip(".:/*")


def is_route(method: str, path: str) -> bool:
    """Whether the API has this path, with this method."""
    for known, methods in described_routes():
        # A page may name the beginning of several paths.
        if re.fullmatch(known, path) and (not method or method.lower() in methods):
            return True
    return not method and any(each.startswith(f"{path}/") for each in raw_paths())


@cache
def raw_paths() -> tuple[str, ...]:
    """Return every path of the API; OpenAPI has no WebSockets."""
    return (*describe()["paths"], "/api/ws/")


@cache
def described_routes() -> tuple[tuple[str, frozenset[str]], ...]:
    """Return every path of the API as a regular expression, with its methods."""
    return tuple(
        (re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(path)), frozenset(methods))
        for path, methods in describe()["paths"].items()
    )


def unprinted(line: str) -> str:
    """Return the part of a line that no text of the program prints; empty if it prints all."""
    covered = [False] * len(line)
    for pattern in printed_texts():
        for match in pattern.finditer(line):
            covered[match.start() : match.end()] = [True] * (match.end() - match.start())
    left = "".join(each for each, done in zip(line, covered, strict=True) if not done)
    return left if len(re.sub(r"\W", "", left)) > len(line) // 3 else ""


@cache
def printed_texts() -> tuple[re.Pattern[str], ...]:
    """Return each string of the program as a regular expression; fields match anything."""
    found = set()
    for _, text in program_texts():
        parts = re.split(rf"{FIELD}|\{{\w*\}}", text)  # a field of `str.format` is one, too
        if len(re.sub(r"\W", "", "".join(parts))) >= LITERAL_CHARS:
            last = "" if parts[-1] else ".{0,90}"
            found.add(".{1,90}?".join(re.escape(each) for each in parts) + last)
    return tuple(re.compile(each) for each in sorted(found))


@cache
def program_texts() -> tuple[tuple[Path, str], ...]:
    """Return each string of the program, with `FIELD` for what is filled in."""
    texts = []
    for path in sorted((ROOT / "packages").rglob("*.py")):
        inside = set()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                inside |= {id(each) for each in node.values}
                pieces = (
                    str(each.value) if isinstance(each, ast.Constant) else FIELD
                    for each in node.values
                )
                texts.append((path, "".join(pieces)))
            elif (
                isinstance(node, ast.Constant)
                and isinstance(node.value, str)
                and id(node) not in inside
            ):
                texts.append((path, node.value))
    return tuple(texts)


def _typed(block: str) -> str:
    """What a transcript's reader types: the lines after `$ `, and those after `> ` below them."""
    typed = re.findall(r"^\$ .*(?:\n> .*)*", block, re.MULTILINE)
    return "\n".join(each[2:].replace("\n> ", "\n") for each in typed)


def _logical_lines(block: str) -> Iterator[str]:
    """The lines of a block; one that ends in a backslash or in an open quote has more."""
    line = ""
    for each in block.splitlines():
        line = f"{line}\n{each}" if line else each
        if line.endswith("\\"):
            line = line[:-1].rstrip() + " "
            continue
        try:
            shlex.split(line, comments=True)
        except ValueError:
            if _COMMAND.search(line):
                continue
        yield line.replace("\n", " ")
        line = ""
    if line:
        yield line.replace("\n", " ")


def _commands_of(line: str) -> Iterator[str]:
    """What follows `bullpen` in a line, up to the end of its command."""
    for match in _COMMAND.finditer(line):
        yield _up_to_operator(line[match.end() :])


def _up_to_operator(text: str) -> str:
    """The text up to the first operator of the shell that is not quoted."""
    quote = ""
    for place, each in enumerate(text):
        if quote:
            quote = "" if each == quote else quote
        elif each in "'\"":
            quote = each
        elif each in "|;&<>)" or text.startswith("$(", place):
            return text[:place]
    return text


def _problem(command: click.Command, context: click.Context, words: list[str]) -> str | None:
    """Say what this command would not understand of these words."""
    words = [each for each in words if each not in ("…", "...")]
    if isinstance(command, click.Group):
        options = _leading_options(words)
        if options and isinstance(command, HistoryGroup):
            options, words = [], ["list", *words]
        problem = _parse(command, context, options)
        rest = words[len(options) :]
        if problem or not rest or _is_placeholder(rest[0]):
            return problem
        try:
            name, found, rest = command.resolve_command(context, rest)
        except click.UsageError as error:
            return error.format_message()
        assert found is not None
        return _problem(found, click.Context(found, info_name=name, parent=context), rest)
    return _parse(command, context, words)


def _leading_options(words: list[str]) -> list[str]:
    for place, each in enumerate(words):
        if not each.startswith("-"):
            return words[:place]
    return words


def _parse(command: click.Command, context: click.Context, words: list[str]) -> str | None:
    """Say which of these options and values the command does not take."""
    if "--help" in words or "-h" in words:
        return None
    try:
        values, rest, _ = command.make_parser(context).parse_args(list(words))
    except click.BadOptionUsage as error:
        # A text may name an option without a value for it.
        return None if words[-1] == error.option_name else error.format_message()
    except click.UsageError as error:
        return error.format_message()
    if rest and not isinstance(command, click.Group):
        return f"too many arguments: {' '.join(map(str, rest))}"
    for parameter in command.params:
        if isinstance(parameter.type, click.Choice):
            given = values.get(parameter.name or "")
            for each in given if isinstance(given, (list, tuple)) else [given]:
                if isinstance(each, str) and not _is_placeholder(each):
                    try:
                        parameter.type.convert(each, parameter, context)
                    except click.UsageError as error:
                        return error.format_message()
    return None


def _is_placeholder(word: str) -> bool:
    return word.isupper() or "…" in word or "|" in word or word in ("...",)
