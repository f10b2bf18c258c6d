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
from bullpen.cli.output import format_count, format_duration
from bullpen.cli.views.activity import ActivityKind, ActivityLine
from bullpen.cli.views.agent import AgentScreen
from bullpen.cli.views.agents_table import AgentsTable, agent_rows
from bullpen.cli.views.app import (
    NOTE_SECONDS,
    Gone,
    LiveView,
    Lost,
    format_money,
    short_number,
    single_line,
)
from bullpen.cli.views.company_data import CompanyReader, CompanyUpdate
from bullpen.cli.views.company_help import HelpScreen
from bullpen.cli.views.feed import Feed, error_text, locate_store
from bullpen.core.clock import SECOND, SystemClock
from bullpen.core.inspect.activity import AgentActivity
from bullpen.core.queue.attempts import RunTotals
from bullpen.core.queue.lanes import pause_lane, resume_lane
from bullpen.core.settings import Settings
from bullpen.core.states import MESSAGE_STATES, MessageState

NARROW, WIDE = 60, 100
PROCESS_KINDS = ("processor", "scheduler", "api")
SEPARATOR = " · "
GAP = "  │  "

MAX_LINES = 500
WHO_WIDTH = 28
KIND_WIDTH = max(map(len, ActivityKind))
AGE_WIDTH = 6
SCROLLBAR = 1
TICK_SECONDS = 1.0
PAUSED_BY = "paused in team watch"
NO_AGENTS_TEXT = """There are no agents yet.

In another terminal, run:
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
    """Two lines; with a warning between them if no processor runs."""
    first = _title(update)
    if width < NARROW:
        if not update.company.processes.get("processor"):
            first.append("  no processor", "red")
        return Text("\n").join([first, _queue(update)])
    processes = _processes(update)
    room = width - 2 - first.cell_len - processes.cell_len
    first.append(" " * max(room, 2))
    first.append_text(processes)
    if not update.company.processes.get("processor"):
        warning = "No processor is running: messages stay pending. Next: bullpen up"
        return Text("\n").join([first, Text(warning, style="yellow"), _numbers(update, width)])
    return Text("\n").join([first, _numbers(update, width)])


def _title(update: CompanyUpdate) -> Text:
    company = update.company
    count = len(company.agents)
    agents = format_count(count, "agent")
    if company.team is None:
        return Text(agents, style="bold")
    name = f" {single_line(company.team.name)}" if company.team.name else ""
    return Text.assemble((f"#{company.team.id}{name}", "bold"), (f"  {agents}", "dim"))


def _processes(update: CompanyUpdate) -> Text:
    found = Text()
    for kind in PROCESS_KINDS:
        count = update.company.processes.get(kind, 0)
        if found:
            found.append(SEPARATOR, "dim")
        found.append(f"{kind} ", "dim")
        found.append("on" if count else "off", "green" if count else "red")
        if count > 1:
            found.append(f" ({count})", "dim")
    return found


def _numbers(update: CompanyUpdate, width: int) -> Text:
    found = _queue(update)
    ours = {each.agent.id for each in update.company.agents}
    spent = sum((each for agent, each in update.spent.items() if agent in ours), RunTotals())
    found.append(GAP, "dim")
    runs = "1 run" if spent.runs == 1 else f"{short_number(spent.runs)} runs"
    tokens = f"{short_number(spent.tokens)} tokens"
    cost = format_money(spent.cost)
    parts = (runs, tokens, cost) if width >= WIDE else (tokens, cost)
    found.append(f"today {SEPARATOR.join(parts)}")
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
            found.append(SEPARATOR, "dim")
        style = MESSAGE_STATES[state].style if count else "dim"
        found.append(f"{short_number(count)} {state}", style)
    return found


class Updated(Message):
    """The company has changed."""

    def __init__(self, update: CompanyUpdate) -> None:
        super().__init__()
        self.update = update


class Activity(Static):
    """The last events that fit, the newest at the bottom. Bookkeeping is shown on request."""

    DEFAULT_CSS = "Activity { height: 1fr; min-height: 2; }"

    def __init__(self, clock: SystemClock) -> None:
        super().__init__()
        self._clock = clock
        self._lines: deque[ActivityLine] = deque(maxlen=MAX_LINES)
        self._ages: list[str] = []
        self.all_events = False
        """Whether bookkeeping is shown as well."""

    def toggle(self) -> None:
        """Show all events, or leave bookkeeping out."""
        self.all_events = not self.all_events
        self.refresh()

    def tick(self) -> None:
        """Update the ages, if one has changed."""
        if self._ages != [self._age(each) for each in self._shown()]:
            self.refresh()

    def add(self, update: CompanyUpdate) -> None:
        """Add the new lines; start again if the store was opened again."""
        if update.fresh:
            self._lines.clear()
        if update.lines or update.fresh:
            self._lines.extend(update.lines)
            self.refresh()

    def render(self) -> Text:
        """The last lines that fit."""
        title = "ALL EVENTS" if self.all_events else "MESSAGES AND ANSWERS"
        heading = Text(f" {title}", style="dim")
        shown = self._shown()
        self._ages = [self._age(each) for each in shown]
        width = max((cell_len(each.who) for each in shown), default=0)
        width = min(width, WHO_WIDTH, self.size.width // 3)
        rows = [self._row(*each, width) for each in zip(shown, self._ages, strict=True)]
        if not rows:
            rows = [Text(" None yet.", style="dim")]
        return Text("\n").join([heading, *rows])

    def _shown(self) -> list[ActivityLine]:
        """The last lines that fit below the heading."""
        room = max(self.size.height - 1, 1)
        return [each for each in self._lines if self.all_events or not each.bookkeeping][-room:]

    def _age(self, line: ActivityLine) -> str:
        age = self._clock.now() - line.at
        return "now" if age < SECOND else format_duration(age)

    def _row(self, line: ActivityLine, age: str, width: int) -> Text:
        style = KIND_STYLES[line.kind]
        who = Text(line.who, style=style)
        who.truncate(width, overflow="ellipsis", pad=True)
        row = Text(f" {age:>{AGE_WIDTH}}  ", style="dim")
        if self.size.width >= NARROW:
            row.append(f"{line.kind:<{KIND_WIDTH}}  ", style)
        row.append_text(who)
        row.append("  ")
        row.append(line.text, "dim" if line.kind is ActivityKind.NOTE else "")
        row.truncate(max(self.size.width - 1, 1), overflow="ellipsis")
        return row


class WatchView(LiveView):
    """The agents, their messages and their answers."""

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
        Binding("a", "all_events", "All events"),
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
        yield Activity(self._clock)
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
        self._said.update({each.agent: each for each in update.lines if each.agent and each.own})
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

    def action_all_events(self) -> None:
        """Show bookkeeping as well, or leave it out."""
        self.screen_stack[0].query_one(Activity).toggle()

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
        """Offer pause and resume only if there is an agent."""
        if action == "all_events":
            return self.screen is self.screen_stack[0]
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
        except Exception as error:  # shown in the view
            self.call_from_thread(self.refuse, error_text(error))
            return
        text = f"Paused @{agent}; its current run continues." if pause else f"Resumed @{agent}."
        self.call_from_thread(self.notify, text, markup=False, timeout=NOTE_SECONDS)
        self._feed.wake()

    def _tick(self) -> None:
        """Update the ages of lines, and the durations of runs and rate limits."""
        if not self.is_running:  # the timer outlives the widgets while the view closes
            return
        self.screen_stack[0].query_one(Activity).tick()
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
        """The progress of each agent, or its last answer."""
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
