"""What was said, as a chat shows it: when, who to whom, and the text below if it has many lines."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from textwrap import indent
from zoneinfo import ZoneInfo

import click

from bullpen.cli.visible import sanitize
from bullpen.core.clock import SECOND
from bullpen.core.history.rooms import Post
from bullpen.core.history.search import HistoryEntry
from bullpen.core.settings import Settings
from bullpen.core.time_zone import get_zone, owner_zone_name

INDENT = "    "


def print_spoken(settings: Settings, found: Iterable[HistoryEntry]) -> None:
    """What was said to agents and by them."""
    _show(
        settings, ((each.created_at, each.message_id, _who(each), each.content) for each in found)
    )


def print_posts(settings: Settings, found: Iterable[Post]) -> None:
    """What was said in a room."""
    lines = (
        (each.created_at, "", f"{each.from_agent} → #{each.team_id}", each.message)
        for each in found
    )
    _show(settings, lines)


def _show(settings: Settings, lines: Iterable[tuple[int, str, str, str]]) -> None:
    here = get_zone(owner_zone_name(settings))
    for at, message_id, who, text in lines:
        for line in _lines(_clock(at, here), sanitize(message_id), sanitize(who), sanitize(text)):
            click.echo(line, color=False if os.environ.get("NO_COLOR") else None)


def _lines(when: str, message_id: str, who: str, text: str) -> Iterator[str]:
    head = "  ".join(each for each in (click.style(when, dim=True), message_id) if each)
    head = f"{head}  {click.style(who, bold=True)}:"
    text = text.rstrip("\n")
    if "\n" in text:
        yield head
        yield indent(text, INDENT)
    else:
        yield f"{head} {text}".rstrip()


def _who(said: HistoryEntry) -> str:
    if said.role == "user":
        return f"{said.sender} ({said.channel}) → @{said.agent_id}"
    if said.role == "assistant":
        return f"@{said.agent_id} ({said.channel})"
    return f"note to @{said.agent_id}"


def _clock(at: int, here: ZoneInfo) -> str:
    return f"{datetime.fromtimestamp(at / SECOND, UTC).astimezone(here):%Y-%m-%d %H:%M:%S}"
