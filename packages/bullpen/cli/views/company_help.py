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
    ("enter", "its conversation of now, and what was said last"),
    ("p", "pause it: no more runs begin; messages still come in"),
    ("r", "let it work again"),
    ("?", "this page"),
    ("q, Ctrl-C", "leave; the agents go on"),
)

MEANINGS: dict[AgentActivity, str] = {
    AgentActivity.IDLE: "has nothing to do",
    AgentActivity.PROCESSING: "answers, since so long",
    AgentActivity.LOST: "its processor is gone; the work is taken up again soon",
    AgentActivity.PENDING: "has messages that nobody has taken up yet",
    AgentActivity.RATE_LIMITED: "its provider asked for a pause, so long",
    AgentActivity.PAUSED: "starts no runs, until somebody resumes it",
    AgentActivity.DRAINING: "takes nothing new, and answers what is there",
}

COLUMNS = (
    ("WAIT", "messages that wait for it"),
    ("TODAY", "what its runs cost since midnight"),
    ("THIS TALK", "what the conversation that it works on cost so far"),
    ("queue", "the numbers at the top are of the whole queue, `today` is of these agents"),
)


class HelpScreen(Screen[None]):
    """One page; each of its keys leads back."""

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
