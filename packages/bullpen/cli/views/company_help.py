"""The help page of `team watch`."""

from __future__ import annotations

from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import Screen
from textual.widgets import Footer, Static

from bullpen.cli.views.agents_table import ACTIVITY_SIGNS, LEADER
from bullpen.core.inspect.activity import AgentActivity

KEYS = (
    ("↑ ↓", "choose an agent"),
    ("enter", "show its current conversation and its history"),
    ("a", "show all events, or messages and answers only"),
    ("p", "pause it: it starts no more runs; messages stay pending"),
    ("r", "resume it"),
    ("?", "show this page"),
    ("q, Ctrl-C", "quit; the agents keep running"),
)

MEANINGS: dict[AgentActivity, str] = {
    AgentActivity.IDLE: "has no messages",
    AgentActivity.PROCESSING: "has a run, for this long",
    AgentActivity.LOST: "its worker ended; the messages are retried soon",
    AgentActivity.PENDING: "has pending messages, none is claimed yet",
    AgentActivity.RATE_LIMITED: "its provider asked to wait, for this long",
    AgentActivity.PAUSED: "starts no runs until a person resumes it",
    AgentActivity.DRAINING: "accepts no new messages, and answers pending ones",
}

COLUMNS = (
    ("PEND", "its pending messages"),
    ("TODAY", "the cost of its runs since midnight"),
    ("THIS TALK", "the cost of its current conversation"),
    ("top line", "counts of the whole queue; `today` is of the listed agents"),
)


class HelpScreen(Screen[None]):
    """One page; each of its keys closes it."""

    CSS = "HelpScreen VerticalScroll { padding: 1 2; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,question_mark", "app.pop_screen", "Back", key_display="esc"),
    ]

    def compose(self) -> ComposeResult:
        """The text."""
        with VerticalScroll():
            yield Static(_page())
        yield Footer()


def _page() -> Text:
    rows = [Text("Keys", style="bold")]
    rows += [_row(name, "", meaning) for name, meaning in KEYS]
    rows += [Text(), Text("States", style="bold")]
    rows += [
        _row(f"{ACTIVITY_SIGNS[each][0]} {each}", ACTIVITY_SIGNS[each][1], MEANINGS[each])
        for each in AgentActivity
    ]
    rows += [_row(LEADER, "bold", "leads the team")]
    rows += [Text(), Text("Numbers", style="bold")]
    rows += [_row(name, "", meaning) for name, meaning in COLUMNS]
    return Text("\n").join(rows)


def _row(name: str, style: str, meaning: str) -> Text:
    return Text.assemble("  ", (f"{name:<12}", style), meaning)
