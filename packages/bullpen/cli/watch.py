"""Show a command's output at a terminal again and again, until Ctrl-C."""

from __future__ import annotations

import io
import os
import sys
import time
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout, suppress

from bullpen.cli.errors import UsageError
from bullpen.cli.output import Ansi, echo

WATCH_SECONDS = 2.0
"""The time between two refreshes."""
TOP_LEFT, ERASE_LINE, ERASE_BELOW = "\x1b[H", "\x1b[K", "\x1b[J"


class _Capture(io.StringIO):
    """Text for a terminal, which is written in one piece."""

    def isatty(self) -> bool:
        """Keep colours and the layout for a terminal."""
        return True


def watch(print_once: Callable[[], object], seconds: float = WATCH_SECONDS) -> None:
    """Show what a function prints, as much of it as fits, until Ctrl-C."""
    if not sys.stdout.isatty():
        raise UsageError(
            "--watch needs a terminal: standard output is a pipe or a file",
            "Leave --watch out to print the output once.",
        )
    with suppress(KeyboardInterrupt):
        while True:
            text = _Capture()
            with redirect_stdout(text), redirect_stderr(text), suppress(SystemExit):
                print_once()
            lines = text.getvalue().splitlines()[: os.get_terminal_size().lines - 1]
            shown = "".join(f"{each}{ERASE_LINE}\n" for each in lines)
            echo(Ansi(TOP_LEFT + shown + ERASE_BELOW), nl=False)
            time.sleep(seconds)
    echo()
