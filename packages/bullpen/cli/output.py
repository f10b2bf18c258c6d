"""Printing: everything goes through `echo`, so that no control character reaches a terminal."""

from __future__ import annotations

import json
import os
import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import asdict, is_dataclass
from typing import TYPE_CHECKING

import click

from bullpen.core.clock import DAY, HOUR, MINUTE, SECOND
from bullpen.core.text import format_count as format_count
from bullpen.core.text import visible, visible_line

if TYPE_CHECKING:
    from rich.table import Table


class Ansi(str):
    """Text with Bullpen's own colours or cursor movements; what it quotes is visible."""

    __slots__ = ()


def style(
    text: str, *, fg: str | None = None, bold: bool | None = None, dim: bool | None = None
) -> Ansi:
    """The text in a style, its own control characters replaced."""
    return Ansi(click.style(visible(text), fg=fg, bold=bold, dim=dim))


_STATE_COLOURS = {
    "red": ("dead", "failed", "backoff", "fatal", "exited"),
    "yellow": ("held", "unknown", "paused", "draining", "expired"),
    "cyan": ("processing", "starting", "stopping"),
    "green": ("completed", "acked", "active", "running", "on"),
    "bright_black": ("cancelled", "archived", "stopped", "off", "done"),
}


def state_style(state: str) -> str | None:
    """The colour of a message's, response's, lane's, service's or schedule's state, if it has one.

    The names are those of click and of rich.
    """
    name = state.lower()
    return next((colour for colour, states in _STATE_COLOURS.items() if name in states), None)


def format_state(state: str) -> Ansi:
    """The state in its colour, for a line or for a cell of a table."""
    return style(state, fg=state_style(state))


def join(*parts: str) -> Ansi:
    """Styled and plain parts as one text."""
    return Ansi("".join(each if isinstance(each, Ansi) else visible(each) for each in parts))


def echo(text: str = "", *, err: bool = False, nl: bool = True, exact: bool = False) -> None:
    """Print a text; its control characters are replaced, except the styles of an `Ansi`.

    This is the only function of the command line that prints; click, rich and `print` are not
    called directly. With `exact` a pipe gets the text as it is, in UTF-8. What ends without a
    newline may move the cursor, also where colours are not wanted.
    """
    if exact and not sys.stdout.isatty():
        click.echo(text.encode(), err=err, nl=nl)
        return
    shown = text if isinstance(text, Ansi) else visible(text)
    click.echo(shown, err=err, nl=nl, color=use_color() if nl else True)


def confirm(action: str, sure: bool, *, many: bool = False) -> None:
    """Ask at a terminal whether to do `action`, and end the command if the answer is no.

    Without a terminal it does not ask: an action on named objects is done, and one on `many`
    objects, which filters selected, needs --yes.
    """
    if sure:
        return
    if sys.stdin.isatty():
        if not click.confirm(visible(f"{action}?"), err=True):
            raise click.Abort
    elif many:
        from bullpen.cli.errors import UsageError  # it prints with this module

        options = click.get_current_context().params
        look = ", or --dry-run to see what would be done" if "dry_run" in options else ""
        raise UsageError(
            "without a terminal, this command needs --yes", f"{action}: add --yes to do it{look}."
        )


def use_color() -> bool | None:
    """Return what `click.echo` takes: False with NO_COLOR, else None, which asks the terminal."""
    return False if os.environ.get("NO_COLOR") else None


def print_json(document: object) -> None:
    """Print a document as JSON; dataclasses become objects, and iterators arrays."""
    echo(json.dumps(_to_json(document)))


def print_table(rows: Sequence[Sequence[str]], empty: str) -> None:
    """Print a table, whose first row is the heading, or `empty` if it has no other row.

    At a terminal it fits the width: texts are cut, other cells are folded. In a pipe each row is
    one line with whole cells.
    """
    if len(rows) < 2:
        echo(empty)
    elif sys.stdout.isatty():
        _print_rich_table(rows)
    else:
        _print_plain_table(rows)


CUT_COLUMNS = ("TEXT", "TEXT OR ERROR")
"""Columns that a narrow terminal shows only the beginning of."""
MIN_TEXT_COLUMNS = 13


def _print_rich_table(rows: Sequence[Sequence[str]]) -> None:
    from rich.console import Console  # imported here: it is slow to load

    console = Console()
    table = _rich_table(rows)
    # Measured without a limit, else the table is as wide as the terminal.
    options = console.options.update(max_width=10_000)
    excess = console.measure(table, options=options).maximum - console.width
    if excess > 0:
        table = _rich_table(_cut_texts(rows, excess))
    console.print(table)


def _cut_texts(rows: Sequence[Sequence[str]], excess: int) -> Sequence[Sequence[str]]:
    """The rows with their last column cut, if it has texts, so that others keep their width."""
    if rows[0][-1] not in CUT_COLUMNS:
        return rows
    from rich.cells import cell_len

    widest = max(cell_len(row[-1]) for row in rows)
    columns = max(widest - excess, MIN_TEXT_COLUMNS)
    return [(*row[:-1], one_line(row[-1], columns)) for row in rows]


def _rich_table(rows: Sequence[Sequence[str]]) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
    for index, name in enumerate(rows[0]):
        # The first column has the ids that the next command needs: they stay whole, to be copied.
        table.add_column(name, overflow="fold", no_wrap=index == 0)
    for row in rows[1:]:
        table.add_row(
            *(
                Text.from_ansi(cell) if isinstance(cell, Ansi) else Text(visible(cell))
                for cell in row
            )
        )
    return table


def _print_plain_table(rows: Sequence[Sequence[str]]) -> None:
    rows = [[visible(cell).replace("\n", " ") for cell in row] for row in rows]
    widths = [max(len(row[index]) for row in rows) for index in range(len(rows[0]))]
    for row in rows:
        echo(
            "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
        )


def _to_json(value: object) -> object:
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, list | tuple | Iterator):
        return [_to_json(each) for each in value]
    return value


def format_fields(*fields: tuple[str, object], width: int) -> Iterator[str]:
    """Yield a line for each name and value but None, the names padded to `width` columns.

    The second and later lines of a value are indented, so that they cannot look like a field.
    """
    for name, value in fields:
        if value is not None:
            yield f"{name:<{width}} {indent_rest(str(value), ' ' * (width + 1))}".rstrip()


def indent_rest(text: str, prefix: str) -> str:
    """The text with all lines but the first indented."""
    return f"\n{prefix}".join(visible(text).split("\n"))


MIN_COLUMNS = 40


def wrap(text: str, indent: str = "") -> Iterator[str]:
    """Yield the text in indented lines that fit the terminal; a pipe gets a single line."""
    line = visible_line(text)
    if not sys.stdout.isatty():
        yield indent + line
        return
    width = max(MIN_COLUMNS, shutil.get_terminal_size().columns)
    for each in textwrap.wrap(line, width - len(indent), break_on_hyphens=False) or [""]:
        yield indent + each


def format_provider(provider: str, model: str) -> str:
    """Return a provider and, if it is not the provider's default, the model."""
    return f"{provider} with {model}" if model else provider


DURATION_UNITS = ((2 * DAY, DAY, "d"), (2 * HOUR, HOUR, "h"), (2 * MINUTE, MINUTE, "min"))


def format_duration(milliseconds: int) -> str:
    """Return a duration as `3 h`, in the largest unit of which there are two or more."""
    for least, unit, name in DURATION_UNITS:
        if milliseconds >= least:
            return f"{milliseconds // unit} {name}"
    return f"{max(0, milliseconds) // SECOND} s"


def one_line(text: str, columns: int) -> str:
    """Return the text in one line, cut at a number of terminal columns."""
    from rich.cells import cell_len, set_cell_size  # imported here: it is slow to load

    line = visible_line(text)
    return line if cell_len(line) <= columns else f"{set_cell_size(line, columns - 1).rstrip()}…"
