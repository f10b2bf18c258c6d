"""One agent: the conversation that it works on, and what was said last. It follows what happens."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import ClassVar
from zoneinfo import ZoneInfo

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import Screen
from textual.widgets import Footer, Static

from bullpen.cli.command import read_transaction
from bullpen.cli.views.agents_table import state_of
from bullpen.cli.views.app import (
    Gone,
    format_count,
    format_moment,
    format_money,
    sanitize_text,
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

MAX_SPOKEN = 30
"""So many of the last things said are shown."""
MAX_STEPS = 50
MAX_TEXT_CHARS = 2000
"""So many characters of one of them."""
REFRESH_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class AgentDetail:
    """An agent at a moment."""

    at: int
    work: AgentStatus
    talk: Trace | None
    said: tuple[HistoryEntry, ...]


def read_agent_detail(tx: Transaction, agent: str) -> AgentDetail:
    """What there is to be seen of this agent."""
    for work in get_company_status(tx).agents:
        if work.agent.id == agent:
            talk = None if work.run is None else trace(tx, work.run.message.conversation_id)
            return AgentDetail(
                tx.now, work, talk, tuple(newest_history(tx, {agent}, MAX_SPOKEN)[::-1])
            )
    raise UnknownAgent(f"there is no agent {agent[:40]!r} any more")


class AgentScreen(Screen[None]):
    """The page of one agent; it is read again when something has happened."""

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
        self._waits = False
        self._drawn = False

    def compose(self) -> ComposeResult:
        """Who it is, and what it does."""
        yield Static(Text(f"@{self.agent}", style="bold"), id="who")
        yield Gone()
        with VerticalScroll():
            yield Static(id="what")
        yield Footer()

    def on_mount(self) -> None:
        """Read it for the first time."""
        self.query_one(VerticalScroll).focus()
        self._read()

    def look_again(self) -> None:
        """Something has happened: read it anew, but not all the time."""
        if self._waits:
            return
        left = self._read_at + REFRESH_SECONDS - time.monotonic()
        if left <= 0:
            self._read()
        else:
            self._waits = True
            self.set_timer(left, self._read)

    def action_scroll(self) -> None:
        """The page itself does it; this is for the footer."""

    def _read(self) -> None:
        self._waits = False
        self._read_at = time.monotonic()
        self.run_worker(self._in_thread, thread=True, exclusive=True)

    def _in_thread(self) -> None:
        try:
            locate_store(self._settings)
            with read_transaction(self._settings) as tx:
                found = read_agent_detail(tx, self.agent)
        except Exception as error:  # shown instead of what could not be read
            self.app.call_from_thread(self._say, error_text(error))
        else:
            self.app.call_from_thread(self._show, found)

    def _say(self, why: str) -> None:
        if self.is_mounted:
            self.query_one(Gone).say(why)

    def _show(self, found: AgentDetail) -> None:
        if not self.is_mounted:
            return
        page = self.query_one(VerticalScroll)
        at_end = not self._drawn or page.is_vertical_scroll_end
        self.query_one(Gone).say("")
        self.query_one("#who", Static).update(_who(found))
        self.query_one("#what", Static).update(_page(found, self._zone))
        self._drawn = True
        if at_end:
            page.scroll_end(animate=False)


def _who(found: AgentDetail) -> Text:
    agent = found.work.agent
    text = Text.assemble((f"@{agent.id}", "bold"), "  ")
    if agent.name:
        text.append(f"{single_line(agent.name)}  ")
    text.append_text(state_of(found.work, found.at))
    if found.work.why is not None:
        text.append(f" ({single_line(found.work.why)})", "red")
    text.append(f"  {single_line(agent.provider)}", "dim")
    text.append(f" {single_line(agent.model)}" if agent.model else "", "dim")
    if found.work.waiting:
        text.append(f"  {format_count(found.work.waiting)} wait", "yellow")
    return text


def _page(found: AgentDetail, zone: ZoneInfo) -> Text:
    rows = [Text("LAST SAID", style="dim")]
    for each in found.said:
        rows += [_said(each, found.at, zone)]
    if not found.said:
        rows.append(Text("Nobody has said anything to it yet.", style="dim"))
    if found.talk is not None:
        rows += [Text(), *_talk(found.talk, found.at, zone)]
    return Text("\n").join(rows)


def _talk(talk: Trace, now: int, zone: ZoneInfo) -> list[Text]:
    totals = talk.totals
    tokens = totals.input_tokens + totals.output_tokens
    words = (
        f"{totals.messages} messages, {format_count(tokens)} tokens, {format_money(totals.cost)}"
    )
    rows = [Text.assemble(("WORKS ON ", "dim"), talk.conversation_id, (f"  {words} so far", "dim"))]
    rows += [_step(each, now, zone) for each in talk.steps[-MAX_STEPS:]]
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


def _said(each: HistoryEntry, now: int, zone: ZoneInfo) -> Text:
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
    shown = cleaned if len(cleaned) <= MAX_TEXT_CHARS else f"{cleaned[:MAX_TEXT_CHARS]} …"
    return "\n      ".join(each for each in shown.splitlines() if each.strip())
