"""Whether there is a terminal that a view can take over."""

from __future__ import annotations

import os
import sys

import click


def require_terminal(instead: str) -> None:
    """Refuse to open a view without one; `instead` is the command for pipes and scripts."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise click.UsageError(
            f"a live view needs a terminal, and this is a pipe or a file. Use: {instead}"
        )
    if os.environ.get("TERM", "") in ("", "dumb", "unknown"):
        raise click.UsageError(
            f"a live view needs a terminal that can move its cursor; TERM is "
            f"{os.environ.get('TERM', '')!r}. Use: {instead}"
        )
