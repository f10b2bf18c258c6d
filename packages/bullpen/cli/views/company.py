"""bullpen team watch: agents, activity and events on one screen."""

from __future__ import annotations

from collections import deque
from typing import ClassVar
from zoneinfo import ZoneInfo

from rich.cells import cell_len
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import Footer, Static

from bullpen.cli.command import write_transaction
from bullpen.cli.views.activity import ActivityKind, ActivityLine
from bullpen.cli.views.agent import AgentScreen
from bullpen.cli.views.agents_table import AgentsTable, agent_rows
from bullpen.cli.views.app import (
    NOTE_SECONDS,
    Gone,
    LiveView,
    Lost,
    format_clock,
    format_count,
    format_money,
    single_line,
)
from bullpen.cli.views.company_data import CompanyReader, CompanyUpdate
from bullpen.cli.views.company_help import HelpScreen
from bullpen.cli.views.feed import Feed, error_text, locate_store
from bullpen.core.clock import SystemClock
from bullpen.core.inspect.activity import AgentActivity
from bullpen.core.queue.attempts import RunTotals
from bullpen.core.queue.lanes import pause_lane, resume_lane
from bullpen.core.settings import Settings
from bullpen.core.states import MESSAGE_STATES, MessageState

NARROW, WIDE = 60, 100
PROCESS_KINDS = ("processor", "scheduler", "api")
GAP = "   "

MAX_LINES = 500
WHO_WIDTH = 28
SCROLLBAR = 1
TICK_SECONDS = 1.0
PAUSED_BY = "paused in team watch"
NO_AGENTS_TEXT = """There are no agents yet.

Next, in another terminal:
  bullpen agent add coder --provider claude
  bullpen up"""
KIND_STYLES = {
    ActivityKind.ASKED: "bold",
    ActivityKind.HANDOFF: "cyan",
    ActivityKind.SAID: "green",
    ActivityKind.POSTED: "magenta",
    ActivityKind.TROUBLE: "red",
    ActivityKind.NOTE: "dim",
}


def format_heading(update: CompanyUpdate, width: int) -> Text:
    """Two lines; a third one if no processor runs."""
    first = _title(update)
    if width < NARROW:
        if not update.company.processes.get("processor"):
            first.append("  no processor", "red")
        return Text("\n").join([first, _queue(update)])
    processes = _processes(update)
    room = width - 2 - first.cell_len - processes.cell_len
    first.append(" " * max(room, len(GAP)))
    first.append_text(processes)
    if not update.company.processes.get("processor"):
        warning = "No processor runs: nothing is answered. Next: bullpen up"
        return Text("\n").join([first, Text(warning, style="yellow"), _numbers(update, width)])
    return Text("\n").join([first, _numbers(update, width)])


def _title(update: CompanyUpdate) -> Text:
    company = update.company
    count = len(company.agents)
    agents = "1 agent" if count == 1 else f"{count} agents"
    if company.team is None:
        return Text(agents, style="bold")
    name = f" {single_line(company.team.name)}" if company.team.name else ""
    return Text.assemble((f"#{company.team.id}{name}", "bold"), (f"  {agents}", "dim"))


def _processes(update: CompanyUpdate) -> Text:
    found = Text()
    for kind in PROCESS_KINDS:
        count = update.company.processes.get(kind, 0)
        if found:
            found.append("  ")
        found.append(f"{kind} ", "dim")
        found.append(str(count) if count else "off", "green" if count else "red")
    return found


def _numbers(update: CompanyUpdate, width: int) -> Text:
    found = Text.assemble("queue  ", _queue(update))
    ours = {each.agent.id for each in update.company.agents}
    spent = sum((each for agent, each in update.spent.items() if agent in ours), RunTotals())
    found.append(f"{GAP if width >= WIDE else '  '}today ")
    if width >= WIDE:
        runs = "1 run" if spent.runs == 1 else f"{format_count(spent.runs)} runs"
        found.append(f"{runs}, ")
    found.append(f"{format_count(spent.tokens)} tokens, {format_money(spent.cost)}")
    return found


def _queue(update: CompanyUpdate) -> Text:
    queue = update.company.queue
    found = Text()
    for state, count in (
        (MessageState.PENDING, queue.pending),
        (MessageState.PROCESSING, queue.processing),
        (MessageState.HELD, queue.held),
        (MessageState.DEAD, queue.dead),
    ):
        if found:
            found.append(" ")
        found.append(format_count(count), MESSAGE_STATES[state].style if count else "dim")
        found.append(f" {state}", "dim")
    return found


class Updated(Message):
    """The company has changed."""

    def __init__(self, update: CompanyUpdate) -> None:
        super().__init__()
        self.update = update


class Activity(Static):
    """The last events that fit, the newest at the bottom."""

    DEFAULT_CSS = "Activity { height: 1fr; min-height: 2; }"

    def __init__(self, zone: ZoneInfo) -> None:
        super().__init__()
        self._zone = zone
        self._lines: deque[ActivityLine] = deque(maxlen=MAX_LINES)

    def add(self, update: CompanyUpdate) -> None:
        """Add the new lines; start over if the store was opened again."""
        if update.fresh:
            self._lines.clear()
        if update.lines or update.fresh:
            self._lines.extend(update.lines)
            self.refresh()

    def render(self) -> Text:
        """The last lines that fit."""
        room = max(self.size.height - 1, 1)
        rule = Text(" ACTIVITY", style="dim")
        shown = list(self._lines)[-room:]
        width = max((cell_len(each.who) for each in shown), default=0)
        rows = [self._row(each, min(width, WHO_WIDTH, self.size.width // 3)) for each in shown]
        if not rows:
            rows = [Text(" Nothing has happened yet.", style="dim")]
        return Text("\n").join([rule, *rows])

    def _row(self, each: ActivityLine, width: int) -> Text:
        who = Text(each.who, style=KIND_STYLES[each.kind])
        who.truncate(width, overflow="ellipsis", pad=True)
        row = Text.assemble(
            (f" {format_clock(each.at, self._zone)}  ", "dim"),
            who,
            "  ",
            (each.text, "dim" if each.kind is ActivityKind.NOTE else ""),
        )
        row.truncate(max(self.size.width - 1, 1), overflow="ellipsis")
        return row


class WatchView(LiveView):
    """The agents, and what happens between them."""

    CSS = """
    #heading { height: auto; max-height: 4; padding: 0 1; }
    AgentsTable {
        height: auto; max-height: 60%; margin: 1 0; background: ansi_default;
        overflow-x: hidden; scrollbar-size: 0 1; scrollbar-gutter: stable;
    }
    AgentsTable > .datatable--header { background: ansi_default; text-style: none; }
    AgentsTable > .datatable--cursor { text-style: reverse; }
    #nobody { display: none; height: 1fr; padding: 1; }
    .-nobody #nobody { display: block; }
    .-nobody AgentsTable { display: none; }
    .-low AgentsTable { max-height: 100%; height: 1fr; margin: 0; }
    .-low Activity { display: none; }
    .-low #heading { max-height: 2; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "Quit"),
        Binding("question_mark", "help", "Help", key_display="?"),
        Binding("p", "pause", "Pause"),
        Binding("r", "resume", "Resume"),
        Binding("ctrl+z", "suspend_process", show=False),
    ]

    def __init__(self, settings: Settings, team: str | None, zone: ZoneInfo) -> None:
        super().__init__(settings)
        self.team = team
        self.zone = zone
        self.latest: CompanyUpdate | None = None
        self._said: dict[str, ActivityLine] = {}
        self._clock = SystemClock()
        self._feed = Feed(
            settings,
            CompanyReader(team, zone),
            lambda update: self.post_message(Updated(update)),
            lambda why: self.post_message(Lost(why)),
        )

    def compose(self) -> ComposeResult:
        """Heading, agents, activity and keys."""
        yield Static(id="heading")
        yield Gone()
        yield AgentsTable()
        yield Static(NO_AGENTS_TEXT, id="nobody", markup=False)
        yield Activity(self.zone)
        yield Footer()

    def on_mount(self) -> None:
        """Start the feed."""
        super().on_mount()
        self.query_one(AgentsTable).focus()
        self.set_interval(TICK_SECONDS, self._tick)
        self._feed.start()

    def on_unmount(self) -> None:
        """Stop the feed."""
        self._feed.stop()

    def on_updated(self, message: Updated) -> None:
        """Show the update."""
        update = self.latest = message.update
        if update.fresh:
            self._said.clear()
        self._said.update(
            {
                each.agent: each
                for each in update.lines
                if each.agent and each.who == f"@{each.agent}"
            }
        )
        main = self.screen_stack[0]
        main.query_one(Gone).say("")
        main.set_class(not update.company.agents, "-nobody")
        main.query_one(Activity).add(update)
        self._fill()
        if isinstance(self.screen, AgentScreen):
            self.screen.schedule_read()

    def on_lost(self, lost: Lost) -> None:
        """Show that the view is out of date."""
        self.screen_stack[0].query_one(Gone).say(lost.why)

    def on_resize(self) -> None:
        """Fit the table to the new size."""
        self.call_after_refresh(self._fill)

    def on_data_table_row_selected(self) -> None:
        """Open the page of an agent."""
        self.action_look()

    def action_help(self) -> None:
        """Open the help."""
        self.push_screen(HelpScreen())

    def action_look(self) -> None:
        """Open the page of the selected agent."""
        agent = self._chosen()
        if agent is not None:
            self.push_screen(AgentScreen(self.settings, agent, self.zone))

    def action_pause(self) -> None:
        """Pause the selected agent."""
        agent = self._chosen()
        if agent is not None:
            self.do(lambda: self._switch(agent, pause=True))

    def action_resume(self) -> None:
        """Resume the selected agent."""
        agent = self._chosen()
        if agent is not None:
            self.do(lambda: self._switch(agent, pause=False))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer pause and resume only where there is an agent."""
        if action not in ("pause", "resume", "help"):
            return True
        nobody = self.latest is not None and not self.latest.company.agents
        return not isinstance(self.screen, HelpScreen) and (action == "help" or not nobody)

    def _chosen(self) -> str | None:
        if isinstance(self.screen, AgentScreen):
            return self.screen.agent
        return self.screen_stack[0].query_one(AgentsTable).chosen

    def _switch(self, agent: str, *, pause: bool) -> None:
        """Pause or resume, in a thread: the store may be busy."""
        try:
            locate_store(self.settings)
            with write_transaction(self.settings) as tx:
                if pause:
                    pause_lane(tx, agent, PAUSED_BY)
                else:
                    resume_lane(tx, agent)
        except Exception as error:  # shown where it happened
            self.call_from_thread(self.refuse, error_text(error))
            return
        text = f"@{agent} is paused; a run that has begun goes on." if pause else f"@{agent} works."
        self.call_from_thread(self.notify, text, markup=False, timeout=NOTE_SECONDS)
        self._feed.wake()

    def _tick(self) -> None:
        """Update the durations of what runs or rests."""
        found = () if self.latest is None else self.latest.company.agents
        if any(
            each.run is not None or each.activity is AgentActivity.RATE_LIMITED for each in found
        ):
            self._fill()

    def _fill(self) -> None:
        if self.latest is None:
            return
        main = self.screen_stack[0]
        now = max(self._clock.now(), self.latest.company.at)
        width = self.size.width
        found = agent_rows(self.latest.company, self.latest.spent, self._progress(), now)
        main.query_one(AgentsTable).fill(found, width - SCROLLBAR)
        main.query_one("#heading", Static).update(format_heading(self.latest, width))
        self.refresh_bindings()

    def _progress(self) -> dict[str, str]:
        """The progress of each agent, or what it said last."""
        assert self.latest is not None
        found = {agent: each.text for agent, each in self._said.items()}
        for work in self.latest.company.agents:
            if work.run is None:
                continue
            at, said = self.latest.progress.get(work.agent.id, (0, ""))
            asked = f"← {work.run.message.from_agent or work.run.message.sender}: "
            asked += single_line(work.run.message.message)
            found[work.agent.id] = said if at >= work.run.since else asked
        return found
