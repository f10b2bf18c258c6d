"""Printing: JSON documents, tables, counts and durations, and the question before an action."""

from __future__ import annotations

import json
import os
import sys
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import asdict, is_dataclass

import click

from bullpen.core.clock import DAY, HOUR, MINUTE, SECOND


def confirm(action: str, sure: bool, *, many: bool = False) -> None:
    """Ask at a terminal whether to do `action`, and end the command if the answer is no.

    Without a terminal there is no question: what was named is done, and what was selected by
    filters (`many`) needs --yes.
    """
    if sure:
        return
    if sys.stdin.isatty():
        if not click.confirm(f"{action}?", err=True):
            raise click.Abort
    elif many:
        raise click.UsageError(f"{action}? Say --yes, or look first with --dry-run.")


def use_color() -> bool | None:
    """Return what `click.echo` takes: False with NO_COLOR, else None, which asks the terminal."""
    return False if os.environ.get("NO_COLOR") else None


def print_json(document: object) -> None:
    """Print a document as JSON; dataclasses become objects, and iterators arrays."""
    click.echo(json.dumps(_to_json(document)))


def print_table(rows: Sequence[Sequence[str]], empty: str) -> None:
    """Print a table, whose first row is the heading, or `empty` if it has no other row.

    At a terminal it fits the width; in a pipe each row is one line with whole cells.
    """
    if len(rows) < 2:
        click.echo(empty)
    elif sys.stdout.isatty():
        _print_rich_table(rows)
    else:
        _print_plain_table(rows)


def _print_rich_table(rows: Sequence[Sequence[str]]) -> None:
    from rich import box  # imported here: it is slow to load
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
    for index, name in enumerate(rows[0]):
        # The first column has the ids that the next command needs: they stay whole, to be copied.
        table.add_column(name, overflow="fold", no_wrap=index == 0)
    for row in rows[1:]:
        table.add_row(*(Text(cell) for cell in row))
    Console().print(table)


def _print_plain_table(rows: Sequence[Sequence[str]]) -> None:
    widths = [max(len(row[index]) for row in rows) for index in range(len(rows[0]))]
    for row in rows:
        click.echo(
            "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
        )


def _to_json(value: object) -> object:
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, list | tuple | Iterator):
        return [_to_json(each) for each in value]
    return value


def format_fields(*fields: tuple[str, object], width: int) -> Iterator[str]:
    """Yield a line for each name and value but None, the names padded to `width` columns."""
    for name, value in fields:
        if value is not None:
            yield f"{name:<{width}} {value}".rstrip()


def format_count(count: int, noun: str, plural: str = "") -> str:
    """Return a count with its noun, as `1 message` or `3 messages`."""
    return f"{count} {noun}" if count == 1 else f"{count} {plural or noun + 's'}"


def format_provider(provider: str, model: str) -> str:
    """Return a provider and, if it is not the provider's own choice, the model."""
    return f"{provider} with {model}" if model else provider


DURATION_UNITS = ((2 * DAY, DAY, "d"), (2 * HOUR, HOUR, "h"), (2 * MINUTE, MINUTE, "min"))


def format_duration(milliseconds: int) -> str:
    """Return a duration as `3 h`, in the largest unit of which there are two or more."""
    for least, unit, name in DURATION_UNITS:
        if milliseconds >= least:
            return f"{milliseconds // unit} {name}"
    return f"{max(0, milliseconds) // SECOND} s"


KEPT_CONTROLS = "\n\t"
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
CONTROL_CATEGORIES = ("Cc", "Cs", "Zl", "Zp")
# Marks that change the direction of text can make a command look like another.
BIDI_CONTROLS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def sanitize(text: str) -> str:
    """Replace control characters, which could move the cursor, set a title or reverse the text."""
    if text.isprintable():
        return text if BIDI_CONTROLS.isdisjoint(text) else _replace_controls(text)
    return _replace_controls(click.unstyle(text).replace("\r\n", "\n"))


def one_line(text: str, columns: int) -> str:
    """Return the text in one line, cut at a number of terminal columns."""
    from rich.cells import cell_len, set_cell_size  # imported here: it is slow to load

    line = sanitize(" ".join(text.split()))
    return line if cell_len(line) <= columns else f"{set_cell_size(line, columns - 1).rstrip()}…"


def _replace_controls(text: str) -> str:
    return "".join(
        REPLACEMENT
        if each not in KEPT_CONTROLS
        and (unicodedata.category(each) in CONTROL_CATEGORIES or each in BIDI_CONTROLS)
        else each
        for each in text
    )
