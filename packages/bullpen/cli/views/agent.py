"""The page of one agent: its current conversation and its history."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from typing import ClassVar
from zoneinfo import ZoneInfo

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import Screen
from textual.widgets import Footer, Static

from bullpen.cli.command import read_transaction
from bullpen.cli.output import format_count
from bullpen.cli.views.agents_table import state_of
from bullpen.cli.views.app import (
    Gone,
    format_moment,
    format_money,
    sanitize_text,
    short_number,
    single_line,
)
from bullpen.cli.views.feed import error_text, locate_store
from bullpen.core.errors import UnknownAgent
from bullpen.core.inspect.activity import AgentStatus, get_company_status
from bullpen.core.inspect.history import HistoryEntry, newest_history
from bullpen.core.inspect.trace import Step, Trace, trace
from bullpen.core.settings import Settings
from bullpen.core.states import MESSAGE_STATES, MessageState
from bullpen.core.store.transaction import Transaction

MAX_ENTRIES = 30
"""How many entries of the history are shown."""
MAX_STEPS = 50
MAX_TEXT_CHARS = 2000
"""How many characters of a text are shown."""
REFRESH_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class AgentDetail:
    """An agent at one moment."""

    at: int
    work: AgentStatus
    conversation: Trace | None
    entries: tuple[HistoryEntry, ...]


def read_agent_detail(tx: Transaction, agent: str) -> AgentDetail:
    """Read the page of this agent."""
    for work in get_company_status(tx).agents:
        if work.agent.id == agent:
            conversation = None if work.run is None else trace(tx, work.run.message.conversation_id)
            return AgentDetail(
                tx.now, work, conversation, tuple(newest_history(tx, {agent}, MAX_ENTRIES)[::-1])
            )
    raise UnknownAgent(f"agent {agent[:40]!r} was removed")


class AgentScreen(Screen[None]):
    """The page of one agent, refreshed after each event."""

    CSS = """
    AgentScreen #who { height: auto; padding: 0 1; }
    AgentScreen VerticalScroll { padding: 0 1; margin: 1 0 0 0; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "app.pop_screen", "Back", key_display="esc"),
        Binding("p", "app.pause", "Pause"),
        Binding("r", "app.resume", "Resume"),
        Binding("up,down,pageup,pagedown", "scroll", "Scroll", key_display="↑↓"),
    ]

    def __init__(self, settings: Settings, agent: str, zone: ZoneInfo) -> None:
        super().__init__()
        self.agent = agent
        self._settings = settings
        self._zone = zone
        self._read_at = 0.0
        self._scheduled = False
        self._drawn = False

    def compose(self) -> ComposeResult:
        """Heading, text and keys."""
        yield Static(Text(f"@{self.agent}", style="bold"), id="who")
        yield Gone()
        with VerticalScroll():
            yield Static(id="what")
        yield Footer()

    def on_mount(self) -> None:
        """Read the page for the first time."""
        self.query_one(VerticalScroll).focus()
        self._read()

    def schedule_read(self) -> None:
        """Refresh the page, at most once a second."""
        if self._scheduled:
            return
        left = self._read_at + REFRESH_SECONDS - time.monotonic()
        if left <= 0:
            self._read()
        else:
            self._scheduled = True
            self.set_timer(left, self._read)

    def action_scroll(self) -> None:
        """The page scrolls itself; this entry is for the footer."""

    def _read(self) -> None:
        self._scheduled = False
        self._read_at = time.monotonic()
        # In the thread `self.app` fails once the page is closed.
        self.run_worker(partial(self._read_in_thread, self.app), thread=True, exclusive=True)

    def _read_in_thread(self, view: App[object]) -> None:
        try:
            locate_store(self._settings)
            with read_transaction(self._settings) as tx:
                detail = read_agent_detail(tx, self.agent)
        except Exception as error:  # shown in the view
            view.call_from_thread(self._show_error, error_text(error))
        else:
            view.call_from_thread(self._show, detail)

    def _show_error(self, why: str) -> None:
        if self.query(Gone):  # the page may be closed before its read ends
            self.query_one(Gone).say(why)

    def _show(self, detail: AgentDetail) -> None:
        if not self.query(Gone):
            return
        page = self.query_one(VerticalScroll)
        at_end = not self._drawn or page.is_vertical_scroll_end
        self.query_one(Gone).say("")
        self.query_one("#who", Static).update(_heading(detail))
        self.query_one("#what", Static).update(_page(detail, self._zone))
        self._drawn = True
        if at_end:
            page.scroll_end(animate=False)


def _heading(detail: AgentDetail) -> Text:
    agent = detail.work.agent
    text = Text.assemble((f"@{agent.id}", "bold"), "  ")
    if agent.name:
        text.append(f"{single_line(agent.name)}  ")
    text.append_text(state_of(detail.work, detail.at))
    if detail.work.why is not None:
        text.append(f" ({single_line(detail.work.why)})", "red")
    text.append(f"  {single_line(agent.provider)}", "dim")
    text.append(f" {single_line(agent.model)}" if agent.model else "", "dim")
    if detail.work.waiting:
        text.append(f"  {short_number(detail.work.waiting)} pending", "yellow")
    return text


def _page(detail: AgentDetail, zone: ZoneInfo) -> Text:
    rows = [Text("HISTORY", style="dim")]
    for each in detail.entries:
        rows += [_entry(each, detail.at, zone)]
    if not detail.entries:
        rows.append(Text("No messages yet.", style="dim"))
    if detail.conversation is not None:
        rows += [Text(), *_conversation(detail.conversation, detail.at, zone)]
    return Text("\n").join(rows)


def _conversation(conversation: Trace, now: int, zone: ZoneInfo) -> list[Text]:
    totals = conversation.totals
    tokens = totals.input_tokens + totals.output_tokens
    messages = format_count(totals.messages, "message")
    words = f"{messages}, {short_number(tokens)} tokens, {format_money(totals.cost)}"
    id_ = conversation.conversation_id
    rows = [Text.assemble(("CONVERSATION ", "dim"), id_, (f"  {words} so far", "dim"))]
    rows += [_step(each, now, zone) for each in conversation.steps[-MAX_STEPS:]]
    return rows


def _step(step: Step, now: int, zone: ZoneInfo) -> Text:
    message = step.message
    who = f"@{message.from_agent}" if message.from_agent else message.sender or message.channel
    return Text.assemble(
        (f"{format_moment(message.created_at, now, zone)} ", "dim"),
        (f"{single_line(who)} → @{message.agent}", "cyan" if message.from_agent else "bold"),
        " ",
        (f"[{message.status}]", MESSAGE_STATES[MessageState(message.status)].style or "dim"),
        " ",
        _short(message.message),
    )


def _entry(each: HistoryEntry, now: int, zone: ZoneInfo) -> Text:
    own = each.role == "assistant"
    who = f"@{each.agent_id}" if own else single_line(each.sender) or each.channel
    return Text.assemble(
        (f"{format_moment(each.created_at, now, zone)} ", "dim"),
        (who, "green" if own else "bold"),
        " ",
        _short(each.content),
    )


def _short(text: str) -> str:
    cleaned = sanitize_text(text).strip()
    text = cleaned if len(cleaned) <= MAX_TEXT_CHARS else f"{cleaned[:MAX_TEXT_CHARS]} …"
    return "\n      ".join(each for each in text.splitlines() if each.strip())
