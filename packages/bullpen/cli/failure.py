"""What went wrong: for people on standard error, with --json as the one document as well."""

from __future__ import annotations

import json
import sys
from contextlib import suppress

import click


def show_failure(text: str, hint: str, code: str) -> None:
    """Say what happened and what can be done; the same fields as in the API's errors."""
    if "--json" in sys.argv:
        with suppress(OSError):  # standard output itself may be what failed
            click.echo(json.dumps({"error": {"code": code, "message": text, "hint": hint}}))
    click.echo(f"bullpen: {text}", err=True)
    if hint:
        click.echo(f"  {hint}", err=True)
