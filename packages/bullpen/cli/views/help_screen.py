"""What the view of the agents shows, and its keys."""

from __future__ import annotations

from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import Screen
from textual.widgets import Footer, Static

from bullpen.cli.views.agents_table import LEADER, LOOKS
from bullpen.core.company.work import Doing

KEYS = (
    ("↑ ↓", "choose an agent"),
    ("enter", "its conversation of now, and what was said last"),
    ("p", "pause it: no more runs begin; messages still come in"),
    ("r", "let it work again"),
    ("?", "this page"),
    ("q, Ctrl-C", "leave; the agents go on"),
)

MEANINGS: dict[Doing, str] = {
    Doing.IDLE: "has nothing to do",
    Doing.RUNS: "answers, since so long",
    Doing.LOST: "its processor is gone; the work is taken up again soon",
    Doing.WAITS: "has messages that nobody has taken up yet",
    Doing.RESTS: "its provider asked for a pause, so long",
    Doing.PAUSED: "starts no runs, until somebody resumes it",
    Doing.DRAINS: "takes nothing new, and answers what is there",
}

COLUMNS = (
    ("WAIT", "messages that wait for it"),
    ("TODAY", "what its runs cost since midnight"),
    ("THIS TALK", "what the conversation that it works on cost so far"),
    ("queue", "the numbers at the top are of the whole queue, `today` is of these agents"),
)


class HelpScreen(Screen[None]):
    """One page; any of its keys leads back."""

    CSS = "HelpScreen VerticalScroll { padding: 1 2; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,question_mark", "app.pop_screen", "Back", key_display="esc"),
    ]

    def compose(self) -> ComposeResult:
        """The text."""
        with VerticalScroll():
            yield Static(_text())
        yield Footer()


def _text() -> Text:
    rows = [Text("Keys", style="bold")]
    rows += [_row(name, "", meaning) for name, meaning in KEYS]
    rows += [Text(), Text("States", style="bold")]
    rows += [_row(f"{LOOKS[each][0]} {each}", LOOKS[each][1], MEANINGS[each]) for each in Doing]
    rows += [_row(LEADER, "bold", "leads the team")]
    rows += [Text(), Text("Numbers", style="bold")]
    rows += [_row(name, "", meaning) for name, meaning in COLUMNS]
    return Text("\n").join(rows)


def _row(name: str, style: str, meaning: str) -> Text:
    return Text.assemble("  ", (f"{name:<12}", style), meaning)
