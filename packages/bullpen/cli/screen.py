"""The output of `bullpen send`: answers on standard output, progress on standard error."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, field

from bullpen.cli.output import Ansi, echo, join, one_line, style, use_color
from bullpen.core.clock import SECOND, format_interval
from bullpen.core.events.conversation import (
    AgentProgress,
    ChainStepDone,
    ChainStepStart,
    MessageEnqueued,
    MessageReceived,
)
from bullpen.core.events.message import (
    MessageCancelled,
    MessageDead,
    MessageFailed,
    MessageHeld,
    MessageReleased,
    MessageResumed,
)
from bullpen.core.inspect.follow import FollowedAnswer, FollowedEvent
from bullpen.core.message import ROOM

ERASE_LINE = Ansi("\r\x1b[2K")
PLAIN_WIDTH = 200
"""The width of a line of progress without a terminal."""

FALLBACK_WIDTH = 79

START_EVENTS = (MessageReceived, ChainStepStart)
END_EVENTS = (
    ChainStepDone,
    MessageFailed,
    MessageReleased,
    MessageDead,
    MessageHeld,
    MessageCancelled,
)


@dataclass(slots=True)
class Screen:
    """Standard output, standard error, and a status line at its end that is redrawn."""

    quiet: bool
    """Print answers only, no progress."""
    silent: bool
    """Print no answers: the JSON document has them."""
    began: float = field(default_factory=time.monotonic)
    _working: dict[str, str] = field(default_factory=dict)
    _posted: set[str] = field(default_factory=set)
    _answers: list[FollowedAnswer] = field(default_factory=list)
    _drawn: bool = False
    _many_lines: bool | None = None

    @property
    def moves(self) -> bool:
        """Whether the terminal can redraw a line."""
        return sys.stderr.isatty() and os.environ.get("TERM") != "dumb" and not self.quiet

    def expect(self, answers: Collection[FollowedAnswer]) -> None:
        """Record answers that are about to be shown, so that no event repeats their handoffs."""
        if not self.silent:
            self._answers += answers

    def answer(self, answered: FollowedAnswer) -> None:
        """Show an answer with its files, separated from the previous one."""
        if self.silent:
            return
        self.clear()
        files = [f"[file: {file}]" for file in answered.files]
        text = "\n".join([*([answered.message] if answered.message else []), *files])
        many = "\n" in text
        if self._many_lines is not None and (many or self._many_lines):
            echo()
        self._many_lines = many
        name = f"@{answered.agent}"
        # A handoff and a notice about the agent begin with its name.
        rest = text.removeprefix(name) if text.startswith(f"{name} ") else f": {text}"
        if sys.stdout.isatty():
            echo(join(style(name, bold=True), rest))
        else:
            echo(f"{name}{rest}", exact=True)

    def show_event(self, what: FollowedEvent, paused: Collection[str]) -> None:
        """Show an event, if it is worth a line; `paused` are the agents that do not try again."""
        event, agent = what.record.event, what.record.agent or ""
        if isinstance(event, START_EVENTS):
            self._working.setdefault(agent, "")
        elif isinstance(event, END_EVENTS):
            self._working.pop(agent, None)
        elif isinstance(event, AgentProgress):
            self._working[agent] = event.text
            if not self.moves:
                self.line(f"@{agent} is working: {self._working[agent]}")
        line = self._line_of(what, paused)
        if line:
            self.line(line)

    def line(self, text: str) -> None:
        """Show a line of progress."""
        if not self.quiet:
            self.clear()
            width = _width() if self.moves else PLAIN_WIDTH
            echo(style(one_line(text, width), dim=True), err=True)

    def note(self, *lines: str) -> None:
        """Show lines, with --quiet as well."""
        self.clear()
        for each in lines:
            echo(each, err=True)

    def update_status(self, waits_for: tuple[str, ...]) -> None:
        """Redraw the status line: the agents that are working, or those that are not yet."""
        if not self.moves:
            return
        took = format_interval(int((time.monotonic() - self.began) * SECOND))
        line = one_line(self._format_work(took) or _format_wait(waits_for, took), _width())
        echo(
            join(ERASE_LINE, line if use_color() is False else style(line, dim=True)),
            err=True,
            nl=False,
        )
        self._drawn = True

    def clear(self) -> None:
        """Erase the status line."""
        if self._drawn:
            echo(ERASE_LINE, err=True, nl=False)
            self._drawn = False

    def _format_work(self, took: str) -> str:
        names = ", ".join(f"@{agent}" for agent in self._working)
        progress = next((text for text in reversed(self._working.values()) if text), "")
        verb = "is working" if len(self._working) == 1 else "are working"
        at_what = f": {progress}" if progress else ""
        return f"{names} {verb}, {took}{at_what}" if names else ""

    def _line_of(self, what: FollowedEvent, paused: Collection[str]) -> str:
        agent = what.record.agent
        match what.record.event:
            case MessageEnqueued():
                return self._handed_on(what)
            case MessageFailed() as failed if agent not in paused:
                when = format_interval(failed.wait) if failed.wait >= SECOND else "a moment"
                return f"@{agent} failed: {failed.error}. Next try in {when}"
            case MessageReleased():
                return f"@{agent} was interrupted and will start again"
            case MessageResumed():
                return f"{what.record.message_id} was resumed for @{agent}"
            case _:
                return ""

    def _handed_on(self, what: FollowedEvent) -> str:
        """A handoff that no answer shows; a post in a room only once."""
        origin = what.details.origin
        if origin is None or origin.from_agent is None:
            return ""
        to = f"@{what.record.agent}"
        if origin.channel == ROOM:
            to = f"#{origin.team_id}"
            post = f"{origin.from_agent} {to} {origin.preview}"
            if post in self._posted:
                return ""
            self._posted.add(post)
        handoff = f"@{origin.from_agent} → "
        if any(handoff in each.message and to in each.message for each in self._answers):
            return ""
        return f"{handoff}{to}: {origin.preview}"


def _format_wait(waits_for: tuple[str, ...], took: str) -> str:
    names = ", ".join(f"@{agent}" for agent in dict.fromkeys(waits_for))
    return f"waiting for {names}, {took}" if names else f"waiting, {took}"


def _width() -> int:
    """The width of the terminal, less one: a full line would be broken."""
    with suppress(OSError):
        return os.get_terminal_size(sys.stderr.fileno()).columns - 1
    return FALLBACK_WIDTH
