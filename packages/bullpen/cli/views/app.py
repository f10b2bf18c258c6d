"""What the live views share: colours, heading, refresh and terminal checks."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import ClassVar
from zoneinfo import ZoneInfo

import click
from rich.segment import Segment
from rich.text import Text
from textual.app import App
from textual.binding import Binding, BindingType
from textual.color import Color
from textual.filter import LineFilter
from textual.message import Message
from textual.theme import Theme
from textual.widgets import Static

from bullpen.core.clock import SECOND
from bullpen.core.settings import Settings
from bullpen.core.text import visible

END_SIGNALS = (signal.SIGTERM, signal.SIGHUP)
SIGNAL_EXIT_BASE = 128
NOTE_SECONDS = 4.0
WIDTHS = [(0, "-narrow"), (60, "-usual"), (120, "-wide")]
HEIGHTS = [(0, "-low"), (16, "-high")]

# Only the terminal's own colours: readable on dark and light ones.
THEME = Theme(
    name="bullpen",
    ansi=True,
    primary="ansi_blue",
    secondary="ansi_cyan",
    warning="ansi_yellow",
    error="ansi_red",
    success="ansi_green",
    accent="ansi_cyan",
    foreground="ansi_default",
    background="ansi_default",
    surface="ansi_default",
    panel="ansi_default",
    boost="ansi_default",
    variables={
        "ansi-background": "ansi_default",
        "ansi-foreground": "ansi_default",
        "block-cursor-foreground": "ansi_default",
        "block-cursor-background": "ansi_default",
        "block-cursor-text-style": "reverse",
        "block-cursor-blurred-foreground": "ansi_default",
        "block-cursor-blurred-background": "ansi_default",
        "block-cursor-blurred-text-style": "reverse",
        "input-cursor-foreground": "ansi_default",
        "input-cursor-background": "ansi_default",
        "input-cursor-text-style": "reverse",
        "footer-key-foreground": "ansi_cyan",
        "footer-description-foreground": "ansi_default",
        "footer-background": "ansi_default",
        "footer-item-background": "ansi_default",
        "footer-description-background": "ansi_default",
        "footer-key-background": "ansi_default",
        "scrollbar": "ansi_bright_black",
        "scrollbar-hover": "ansi_bright_black",
        "scrollbar-active": "ansi_bright_black",
        "scrollbar-background": "ansi_default",
        "scrollbar-background-hover": "ansi_default",
        "scrollbar-background-active": "ansi_default",
        "border": "ansi_bright_black",
        "border-blurred": "ansi_bright_black",
    },
)

TAB = 4
COUNT_UNITS = ((1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k"))


class Lost(Message):
    """The store cannot be read; the feed tries again."""

    def __init__(self, why: str) -> None:
        super().__init__()
        self.why = why


class Gone(Static):
    """A banner with the reason why the view is out of date; hidden while it is up to date."""

    DEFAULT_CSS = """
    Gone { display: none; height: auto; max-height: 4; color: ansi_red; text-style: bold; }
    Gone.-shown { display: block; }
    """

    def say(self, why: str) -> None:
        """Show the reason, or hide the banner if there is none."""
        self.set_class(bool(why), "-shown")
        self.update(Text(f"! Not up to date, retrying every second: {why}" if why else ""))


class VisibleFilter(LineFilter):
    """Replaces control characters in every line of every widget, as `echo` does for commands."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """The line without them."""
        return [
            each if each.control else Segment(visible(each.text), each.style) for each in segments
        ]


class LiveView(App[None]):
    """A view that runs until a person quits it or the process gets a signal."""

    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+c", "quit", "Quit", show=False, priority=True),
    ]
    HORIZONTAL_BREAKPOINTS = WIDTHS
    VERTICAL_BREAKPOINTS = HEIGHTS

    def __init__(self, settings: Settings) -> None:
        super().__init__(ansi_color=True)  # App reads NO_COLOR in its constructor
        self._filters.append(VisibleFilter())
        self.settings = settings
        self.register_theme(THEME)
        self.theme = THEME.name
        self._actions = ThreadPoolExecutor(max_workers=1, thread_name_prefix="actions")

    def on_mount(self) -> None:
        """End cleanly on SIGTERM and when the terminal is closed."""
        loop = asyncio.get_running_loop()
        for each in END_SIGNALS:
            with contextlib.suppress(ValueError, RuntimeError):  # only the main thread may
                loop.add_signal_handler(each, self._end, SIGNAL_EXIT_BASE + each)
        self.app_resume_signal.subscribe(self, self._draw_all)

    def do(self, action: Callable[[], None]) -> None:
        """Run this in a thread, after earlier actions, because the store may be busy."""
        self._actions.submit(action)

    def refuse(self, text: str) -> None:
        """Show what failed."""
        self.notify(text, severity="error", markup=False, timeout=NOTE_SECONDS)

    def _draw_all(self, _: object) -> None:
        """Draw again after Ctrl-Z and `fg`, which clear the screen."""
        for each in self.screen.walk_children(with_self=True):
            each.refresh()

    def _end(self, status: int) -> None:
        self.exit(return_code=status)

    def _fatal_error(self) -> None:
        """As textual's own, without the values of variables, which may be secrets."""
        from rich.traceback import Traceback

        self.panic(Traceback(show_locals=False, width=None))


def run_view(view: LiveView) -> int:
    """Run a view until it is left; returns the exit status."""
    # Without the mouse the terminal's own selection works.
    view.run(mouse=False)
    return view.return_code or 0


def sanitize_text(text: str) -> str:
    """The text without control characters, its tabs expanded."""
    return visible(text).expandtabs(TAB)


def single_line(text: str) -> str:
    """The text as one line."""
    return " ".join(sanitize_text(text).split())


def last_line(text: str) -> str:
    """The last line that is not blank."""
    lines = [each.strip() for each in sanitize_text(text).splitlines() if each.strip()]
    return lines[-1] if lines else ""


def short_number(count: int) -> str:
    """A number in at most five characters, such as `12.3k`."""
    for least, unit in COUNT_UNITS:
        if count >= least:
            few = count < 10 * least
            return f"{count / least:.1f}{unit}" if few else f"{count // least}{unit}"
    return str(count)


def format_money(dollars: float) -> str:
    """An amount in dollars; `<$0.01` for less than a cent."""
    if 0 < dollars < 0.01:
        return "<$0.01"
    return f"${dollars:,.2f}"


def format_clock(moment: int, zone: ZoneInfo) -> str:
    """The time of day."""
    return f"{datetime.fromtimestamp(moment / SECOND, UTC).astimezone(zone):%H:%M:%S}"


def format_moment(moment: int, now: int, zone: ZoneInfo) -> str:
    """The time of day; with the date if it is not today."""
    at, today = (
        datetime.fromtimestamp(each / SECOND, UTC).astimezone(zone) for each in (moment, now)
    )
    if at.date() == today.date():
        return f"{at:%H:%M}"
    return f"{at:%m-%d %H:%M}" if at.year == today.year else f"{at:%Y-%m-%d %H:%M}"


def require_terminal(instead: str) -> None:
    """Refuse to open a view without one; `instead` is the command for pipes and scripts."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise click.UsageError(
            f"a live view needs a terminal, and this is a pipe or a file; use `{instead}`"
        )
    if os.environ.get("TERM", "") in ("", "dumb", "unknown"):
        raise click.UsageError(
            f"a live view needs a terminal with cursor movement, and TERM is "
            f"{os.environ.get('TERM', '')!r}; use `{instead}`"
        )
