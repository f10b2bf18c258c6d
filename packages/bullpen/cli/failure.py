"""What went wrong: for people on standard error, with --json as the one document as well."""

from __future__ import annotations

import json
import sys
from contextlib import suppress

import click


def print_error(text: str, hint: str, code: str) -> None:
    """Say what happened and what can be done; the same fields as in the API's errors."""
    print_error_json(text, hint, code)
    click.echo(f"bullpen: {text}", err=True)
    if hint:
        click.echo(f"  {hint}", err=True)


def print_error_json(text: str, hint: str, code: str) -> None:
    """With --json the one document; a person reads it elsewhere."""
    if "--json" in sys.argv:
        with suppress(OSError):  # standard output itself may be what failed
            click.echo(json.dumps({"error": {"code": code, "message": text, "hint": hint}}))


def print_usage_error_json(error: click.ClickException) -> None:
    """The same for what click finds wrong; it shows it to people itself."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    hint = "" if context is None else f"See `{context.command_path} --help`."
    print_error_json(error.format_message(), hint, "usage")
