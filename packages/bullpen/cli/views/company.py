"""bullpen team watch: agents, activity and events on one screen."""

from __future__ import annotations

from collections import deque
from typing import ClassVar
from zoneinfo import ZoneInfo

from rich.cells import cell_len
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.message import Message
from textual.screen import Screen
from textual.widgets import Footer, Static

from bullpen.cli.command import write_transaction
from bullpen.cli.views.activity import ActivityKind, ActivityLine
from bullpen.cli.views.agent import AgentScreen
from bullpen.cli.views.agents_table import ACTIVITY_SIGNS, LEADER, AgentsTable, agent_rows
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
from bullpen.cli.views.feed import Feed, error_text, locate_store
from bullpen.core.clock import SystemClock
from bullpen.core.inspect.activity import AgentActivity
from bullpen.core.queue.conversations import RunTotals
from bullpen.core.queue.lanes import pause_lane, resume_lane
from bullpen.core.settings import Settings
from bullpen.core.states import MESSAGE_STATES, MessageState

NARROW, WIDE = 60, 100
PROCESS_KINDS = ("processor", "scheduler", "api")
GAP = "   "


def format_heading(news: CompanyUpdate, width: int) -> Text:
    """Two lines; a third one when nothing can be answered."""
    first = _title(news)
    if width < NARROW:
        if not news.company.processes.get("processor"):
            first.append("  no processor", "red")
        return Text("\n").join([first, _queue(news)])
    processes = _processes(news)
    room = width - 2 - first.cell_len - processes.cell_len
    first.append(" " * max(room, len(GAP)))
    first.append_text(processes)
    if not news.company.processes.get("processor"):
        warning = "No processor runs: nothing is answered. Next: bullpen up"
        return Text("\n").join([first, Text(warning, style="yellow"), _numbers(news, width)])
    return Text("\n").join([first, _numbers(news, width)])


def _title(news: CompanyUpdate) -> Text:
    company = news.company
    count = len(company.agents)
    agents = "1 agent" if count == 1 else f"{count} agents"
    if company.team is None:
        return Text(agents, style="bold")
    name = f" {single_line(company.team.name)}" if company.team.name else ""
    return Text.assemble((f"#{company.team.id}{name}", "bold"), (f"  {agents}", "dim"))


def _processes(news: CompanyUpdate) -> Text:
    found = Text()
    for kind in PROCESS_KINDS:
        count = news.company.processes.get(kind, 0)
        if found:
            found.append("  ")
        found.append(f"{kind} ", "dim")
        found.append(str(count) if count else "off", "green" if count else "red")
    return found


def _numbers(news: CompanyUpdate, width: int) -> Text:
    found = Text.assemble("queue  ", _queue(news))
    ours = {each.agent.id for each in news.company.agents}
    spent = sum((each for agent, each in news.spent.items() if agent in ours), RunTotals())
    found.append(f"{GAP if width >= WIDE else '  '}today ")
    if width >= WIDE:
        runs = "1 run" if spent.runs == 1 else f"{format_count(spent.runs)} runs"
        found.append(f"{runs}, ")
    found.append(f"{format_count(spent.tokens)} tokens, {format_money(spent.cost)}")
    return found


def _queue(news: CompanyUpdate) -> Text:
    queue = news.company.queue
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
    AgentActivity.RUNS: "answers, since so long",
    AgentActivity.LOST: "its processor is gone; the work is taken up again soon",
    AgentActivity.WAITS: "has messages that nobody has taken up yet",
    AgentActivity.RESTS: "its provider asked for a pause, so long",
    AgentActivity.PAUSED: "starts no runs, until somebody resumes it",
    AgentActivity.DRAINS: "takes nothing new, and answers what is there",
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


class Told(Message):
    """There is news."""

    def __init__(self, news: CompanyUpdate) -> None:
        super().__init__()
        self.news = news


class Activity(Static):
    """What happened, the last at the bottom: as many lines as there is room for."""

    DEFAULT_CSS = "Activity { height: 1fr; min-height: 2; }"

    def __init__(self, zone: ZoneInfo) -> None:
        super().__init__()
        self._zone = zone
        self._lines: deque[ActivityLine] = deque(maxlen=MAX_LINES)

    def tell(self, news: CompanyUpdate) -> None:
        """Add what is new; when the store was opened anew, begin anew."""
        if news.fresh:
            self._lines.clear()
        if news.lines or news.fresh:
            self._lines.extend(news.lines)
            self.refresh()

    def render(self) -> Text:
        """The last ones that fit."""
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
    """What each agent does, and what happens between them."""

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
        self.news: CompanyUpdate | None = None
        self._said: dict[str, ActivityLine] = {}
        self._clock = SystemClock()
        self._feed = Feed(
            settings,
            CompanyReader(team, zone),
            lambda news: self.post_message(Told(news)),
            lambda why: self.post_message(Lost(why)),
        )

    def compose(self) -> ComposeResult:
        """The heading, the agents, what happens, the keys."""
        yield Static(id="heading")
        yield Gone()
        yield AgentsTable()
        yield Static(NO_AGENTS_TEXT, id="nobody", markup=False)
        yield Activity(self.zone)
        yield Footer()

    def on_mount(self) -> None:
        """Begin to follow."""
        super().on_mount()
        self.query_one(AgentsTable).focus()
        self.set_interval(TICK_SECONDS, self._tick)
        self._feed.start()

    def on_unmount(self) -> None:
        """Let go of the store."""
        self._feed.stop()

    def on_told(self, told: Told) -> None:
        """Show the news."""
        news = self.news = told.news
        if news.fresh:
            self._said.clear()
        self._said.update({each.who: each for each in news.lines if each.agent == each.who})
        main = self.screen_stack[0]
        main.query_one(Gone).say("")
        main.set_class(not news.company.agents, "-nobody")
        main.query_one(Activity).tell(news)
        self._fill()
        if isinstance(self.screen, AgentScreen):
            self.screen.look_again()

    def on_lost(self, lost: Lost) -> None:
        """Say that what is shown is old."""
        self.screen_stack[0].query_one(Gone).say(lost.why)

    def on_resize(self) -> None:
        """Use the room that there is now."""
        self.call_after_refresh(self._fill)

    def on_data_table_row_selected(self) -> None:
        """Enter was pressed on an agent."""
        self.action_look()

    def action_help(self) -> None:
        """Explain what is shown."""
        self.push_screen(HelpScreen())

    def action_look(self) -> None:
        """Look at the chosen agent."""
        agent = self._chosen()
        if agent is not None:
            self.push_screen(AgentScreen(self.settings, agent, self.zone))

    def action_pause(self) -> None:
        """Start no more runs of the chosen agent."""
        agent = self._chosen()
        if agent is not None:
            self.do(lambda: self._switch(agent, off=True))

    def action_resume(self) -> None:
        """Let the chosen agent work again."""
        agent = self._chosen()
        if agent is not None:
            self.do(lambda: self._switch(agent, off=False))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Where there is no agent nothing can be done with one."""
        if action not in ("pause", "resume", "help"):
            return True
        nobody = self.news is not None and not self.news.company.agents
        return not isinstance(self.screen, HelpScreen) and (action == "help" or not nobody)

    def _chosen(self) -> str | None:
        if isinstance(self.screen, AgentScreen):
            return self.screen.agent
        return self.screen_stack[0].query_one(AgentsTable).chosen

    def _switch(self, agent: str, *, off: bool) -> None:
        """In a thread: the store may be busy for a while."""
        try:
            locate_store(self.settings)
            with write_transaction(self.settings) as tx:
                if off:
                    pause_lane(tx, agent, PAUSED_BY)
                else:
                    resume_lane(tx, agent)
        except Exception as error:  # shown where it happened
            self.call_from_thread(self.refuse, error_text(error))
            return
        said = f"@{agent} is paused; a run that has begun goes on." if off else f"@{agent} works."
        self.call_from_thread(self.notify, said, markup=False, timeout=NOTE_SECONDS)
        self._feed.wake()

    def _tick(self) -> None:
        """Let the seconds pass of what runs or rests."""
        found = () if self.news is None else self.news.company.agents
        if any(each.run is not None or each.activity is AgentActivity.RESTS for each in found):
            self._fill()

    def _fill(self) -> None:
        if self.news is None:
            return
        main = self.screen_stack[0]
        now = max(self._clock.now(), self.news.company.at)
        width = self.size.width
        found = agent_rows(self.news.company, self.news.spent, self._doings(), now)
        main.query_one(AgentsTable).fill(found, width - SCROLLBAR)
        main.query_one("#heading", Static).update(format_heading(self.news, width))
        self.refresh_bindings()

    def _doings(self) -> dict[str, str]:
        """What each does now, or did last."""
        assert self.news is not None
        found = {agent: each.text for agent, each in self._said.items()}
        for work in self.news.company.agents:
            if work.run is None:
                continue
            at, said = self.news.progress.get(work.agent.id, (0, ""))
            asked = f"← {work.run.message.from_agent or work.run.message.sender}: "
            asked += single_line(work.run.message.message)
            found[work.agent.id] = said if at >= work.run.since else asked
        return found
