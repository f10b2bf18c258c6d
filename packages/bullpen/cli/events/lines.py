"""An event in one line: its number, when, what, whose, and what goes with it."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import click

from bullpen.cli.visible import one_line, sanitize
from bullpen.core.clock import SECOND
from bullpen.core.events.append import EventType
from bullpen.core.events.facts import EventDetails, event_details
from bullpen.core.events.tail import Event
from bullpen.core.store.transaction import Transaction

TYPE_COLUMNS = 18
MAX_COLUMNS = 2000
"""So long is a line where no terminal says how wide it is."""

FAILURE_SUFFIXES = ("_failed", "_dead", "_lost", "_refused", "_missed", "_unknown", "_grew")
START_EVENTS = frozenset(
    {EventType.MESSAGE_RECEIVED, EventType.MESSAGE_ENQUEUED, EventType.CHAIN_HANDOFF}
)
"""What is shown with the beginning of its message; others with what was said."""


@dataclass(frozen=True, slots=True)
class EventFormatter:
    """How lines are written here."""

    here: ZoneInfo

    def of(self, tx: Transaction, events: Sequence[Event]) -> list[str]:
        """A line for each."""
        return [self._line(*each) for each in zip(events, event_details(tx, events), strict=True)]

    def _line(self, event: Event, facts: EventDetails) -> str:
        local = datetime.fromtimestamp(event.created_at / SECOND, UTC).astimezone(self.here)
        # A terminal has little room: there the day is said only if it is another one.
        today = sys.stdout.isatty() and local.date() == datetime.now(self.here).date()
        head = f"{event.id:>6}  {local:{'%H:%M:%S' if today else '%Y-%m-%d %H:%M:%S'}}  "
        whose = f"@{event.agent}" if event.agent else ""
        about = sanitize(event.message_id or event.conversation_id or "")
        rest = [
            *(f"{name}={_word(value)}" for name, value in _data(event)),
            _said(event, facts),
        ]
        words = f"{sanitize(whose)}  {about}  "
        room = max(0, _wide() - len(head) - max(TYPE_COLUMNS, len(event.type)) - 2 - len(words))
        kind = click.style(f"{event.type:<{TYPE_COLUMNS}}", fg=_colour(event.type))
        text = one_line(" ".join(each for each in rest if each), room) if room else ""
        return f"{head}{kind}  {words}{text}".rstrip()


def _wide() -> int:
    """As wide as the terminal, or all of it for a pipe."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else MAX_COLUMNS


def _data(event: Event) -> Iterator[tuple[str, object]]:
    """What goes with it, without what the line says already."""
    for name, value in event.data.items():
        if value is not None and name != "said" and value != [event.message_id]:
            yield name, value


def colours() -> bool | None:
    """Whether there are colours: None is as the terminal says."""
    return False if os.environ.get("NO_COLOR") else None


def _said(event: Event, facts: EventDetails) -> str:
    text = facts.text
    if text is None and event.type in START_EVENTS and facts.origin is not None:
        text = facts.origin.preview
    return f'"{text}"' if text else ""


def _word(value: object) -> str:
    if isinstance(value, dict):
        return ",".join(f"{name}:{_word(each)}" for name, each in value.items())
    if isinstance(value, list):
        return ",".join(map(_word, value))
    text = str(value)
    return f'"{text}"' if " " in text or not text else text


def _colour(kind: str) -> str | None:
    if kind.endswith(FAILURE_SUFFIXES):
        return "red"
    if kind == EventType.AGENT_PROGRESS:
        return "bright_black"
    return "yellow" if kind.endswith(("_held", "_paused", "_skipped", "_retried")) else "cyan"
