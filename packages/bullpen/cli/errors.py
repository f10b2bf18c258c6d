"""How errors are printed: `Error: …`, a hint on the next line, and a document with --json."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import click

from bullpen.cli.output import echo, indent_rest

HINT_INDENT = "  "


def print_error(text: str, hint: str, code: str) -> None:
    """Print an error and its hint to standard error; with --json also as a document."""
    if "--json" in sys.argv:
        with suppress(OSError):  # writing to standard output may be what failed
            echo(json.dumps({"error": text, "code": code, "hint": hint}))
    echo(f"Error: {text}", err=True)
    if hint:
        echo(f"{HINT_INDENT}{indent_rest(hint, HINT_INDENT)}", err=True)


def print_warning(text: str) -> None:
    """Print a warning to standard error."""
    echo(f"Warning: {text}", err=True)


def describe_os_error(error: OSError) -> str:
    """Return what failed and at which file, as `no space left on device: /home/ada/.bullpen`."""
    if error.strerror is None:
        return lower_first(str(error))
    places = [str(each) for each in (error.filename, error.filename2) if each is not None]
    return ": ".join([lower_first(error.strerror), *([" -> ".join(places)] if places else [])])


class UsageError(click.UsageError):
    """A wrong command line, with a hint of its own; without one the hint is the command's help."""

    def __init__(self, text: str, hint: str = "", ctx: click.Context | None = None) -> None:
        super().__init__(text, ctx)
        self.hint = hint


@contextmanager
def printed_errors() -> Iterator[None]:
    """Print a click error in the form of all errors, and end the command with its exit status."""
    try:
        yield
    except click.ClickException as error:
        print_error(_text(error), _hint(error), "usage")
        raise click.exceptions.Exit(error.exit_code) from None


def _text(error: click.ClickException) -> str:
    """The error's text in lower case and without a full stop; click's own has both."""
    if isinstance(error, click.NoSuchOption | click.exceptions.NoSuchCommand):
        text = lower_first(error.message).removesuffix(".")
        return f"{text}. Did you mean {error.possibilities[0]!r}?" if error.possibilities else text
    return lower_first(" ".join(error.format_message().split())).removesuffix(".")


def _hint(error: click.ClickException) -> str:
    """The error's own hint, or where its command is described."""
    if isinstance(error, UsageError) and error.hint:
        return error.hint
    context = error.ctx if isinstance(error, click.UsageError) else None
    return "" if context is None else f"Run `{context.command_path} --help` for usage."


def lower_first(text: str) -> str:
    """The text with a small first letter, unless it begins with an abbreviation."""
    return text if text[1:2].isupper() else text[:1].lower() + text[1:]
