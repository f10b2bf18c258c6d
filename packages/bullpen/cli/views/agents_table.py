"""The table of agents; the terminal's width decides its columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.widgets import DataTable

from bullpen.cli.output import format_duration
from bullpen.cli.views.app import format_money, short_number, single_line
from bullpen.core.inspect.activity import AgentActivity, AgentStatus, CompanyStatus
from bullpen.core.queue.attempts import RunTotals

NARROW, WIDE = 60, 120
LEADER = "★"
CELL_PADDING = 1

ACTIVITY_SIGNS: dict[AgentActivity, tuple[str, str]] = {
    AgentActivity.IDLE: ("○", "dim"),
    AgentActivity.PROCESSING: ("●", "green"),
    AgentActivity.LOST: ("!", "bold red"),
    AgentActivity.PENDING: ("◌", "yellow"),
    AgentActivity.RATE_LIMITED: ("◔", "yellow"),
    AgentActivity.PAUSED: ("■", "red"),
    AgentActivity.DRAINING: ("▽", "yellow"),
}
"""The sign and the colour of each."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column and its greatest width."""

    name: str
    max_width: int
    right: bool = False


AGENT = Column("AGENT", 20)
STATE = Column("STATE", 20)
WAITING = Column("PEND", 5, right=True)
PROVIDER = Column("PROVIDER", 14)
MODEL = Column("MODEL", 24)
TODAY = Column("TODAY", 8, right=True)
TOKENS = Column("TOKENS", 7, right=True)
RUNS = Column("RUNS", 5, right=True)
TALK = Column("THIS TALK", 9, right=True)
NOW = Column("NOW", 1000)
"""The last column takes the remaining width."""


def columns_for(width: int) -> tuple[Column, ...]:
    """The columns that fit."""
    if width < NARROW:
        return (AGENT, STATE, NOW)
    if width < WIDE:
        return (AGENT, STATE, WAITING, PROVIDER, TODAY, NOW)
    return (AGENT, STATE, WAITING, PROVIDER, MODEL, RUNS, TOKENS, TODAY, TALK, NOW)


@dataclass(frozen=True, slots=True)
class AgentRow:
    """An agent at one moment."""

    work: AgentStatus
    leads: bool
    spent: RunTotals
    said: str
    """The progress of its run, or its last answer."""
    now: int

    def cell(self, column: Column) -> Text:
        """The cell of this column."""
        match column.name:
            case AGENT.name:
                return Text(self.work.agent.id + (f" {LEADER}" if self.leads else ""), style="bold")
            case STATE.name:
                return state_of(self.work, self.now)
            case WAITING.name:
                return _count(self.work.waiting, "yellow")
            case PROVIDER.name:
                return Text(single_line(self.work.agent.provider))
            case MODEL.name:
                return Text(single_line(self.work.agent.model) or "default", style="dim")
            case RUNS.name:
                return _count(self.spent.runs, "")
            case TOKENS.name:
                return Text(short_number(self.spent.tokens) if self.spent.tokens else "", style="")
            case TODAY.name:
                return Text(format_money(self.spent.cost) if self.spent.cost else "")
            case TALK.name:
                cost = 0.0 if self.work.run is None else self.work.run.conversation.cost
                return Text(format_money(cost) if cost else "")
            case _:
                return self._at()

    def _at(self) -> Text:
        if self.work.run is not None:
            return Text(self.said)
        if self.work.why is not None and self.work.activity in (
            AgentActivity.PAUSED,
            AgentActivity.DRAINING,
        ):
            return Text(single_line(self.work.why), style="red")
        return Text(self.said, style="dim")


def state_of(work: AgentStatus, now: int) -> Text:
    """The agent's state as a sign and words."""
    sign, style = ACTIVITY_SIGNS[work.activity]
    words = work.activity.value
    if work.run is not None:
        words = f"{words} {format_duration(now - work.run.since)}"
        if work.why is not None:  # it is paused: no run follows
            words = f"{words} {ACTIVITY_SIGNS[AgentActivity.PAUSED][0]}"
    elif work.until is not None:
        words = f"{words} {format_duration(work.until - now)}"
    return Text(f"{sign} {words}", style=style)


def agent_rows(
    company: CompanyStatus, spent: Mapping[str, RunTotals], said: Mapping[str, str], now: int
) -> list[AgentRow]:
    """A row for each agent."""
    leader = None if company.team is None else company.team.leader
    return [
        AgentRow(
            work=each,
            leads=each.agent.id == leader,
            spent=spent.get(each.agent.id, RunTotals()),
            said=said.get(each.agent.id, ""),
            now=now,
        )
        for each in company.agents
    ]


class AgentsTable(DataTable[Text]):
    """A table that keeps the selected agent selected when rows change."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "select_cursor", "Details", key_display="⏎"),
        Binding("up", "cursor_up", "Select", key_display="↑↓"),
        Binding("down", "cursor_down", show=False),
    ]

    def __init__(self) -> None:
        super().__init__(cursor_type="row", zebra_stripes=False, cell_padding=CELL_PADDING)
        self._shown: tuple[object, ...] = ()
        self._cells: dict[tuple[str, str], Text] = {}

    @property
    def chosen(self) -> str | None:
        """The id of the agent under the cursor."""
        if not self.row_count:
            return None
        return self.ordered_rows[self.cursor_row].key.value

    def fill(self, rows: Sequence[AgentRow], width: int) -> None:
        """Show these rows; cells that did not change are not drawn again."""
        columns = columns_for(width)
        cells = {
            (each.work.agent.id, column.name): each.cell(column)
            for each in rows
            for column in columns
        }
        widths = _widths(columns, rows, cells, width)
        layout = (tuple(each.work.agent.id for each in rows), tuple(widths.items()))
        if layout != self._shown:
            self._rebuild(columns, rows, cells, widths)
            self._shown = layout
        else:
            for (agent, name), text in cells.items():
                if text != self._cells.get((agent, name)):
                    self.update_cell(agent, name, _fitted(text, widths[name]))
        self._cells = cells

    def on_resize(self) -> None:
        """Keep the selected agent in view."""
        self.call_after_refresh(self._scroll_cursor_into_view)

    def _rebuild(
        self,
        columns: Sequence[Column],
        rows: Sequence[AgentRow],
        cells: Mapping[tuple[str, str], Text],
        widths: Mapping[str, int],
    ) -> None:
        chosen = self.chosen
        self.clear(columns=True)
        for column in columns:
            heading = Text(column.name, style="dim", justify="right" if column.right else "left")
            self.add_column(heading, key=column.name, width=widths[column.name])
        for each in rows:
            agent = each.work.agent.id
            fitted = (_fitted(cells[agent, each.name], widths[each.name]) for each in columns)
            self.add_row(*fitted, key=agent)
        ids = [each.work.agent.id for each in rows]
        if chosen in ids:
            self.move_cursor(row=ids.index(chosen), animate=False)
            self.call_after_refresh(self._scroll_cursor_into_view)  # at the new size


def _widths(
    columns: Sequence[Column],
    rows: Sequence[AgentRow],
    cells: Mapping[tuple[str, str], Text],
    width: int,
) -> dict[str, int]:
    """The width of each column: its longest cell, up to its limit; the last takes the rest.

    The state has a fixed width, because it changes every second.
    """
    widths: dict[str, int] = {}
    left = width - 2 * CELL_PADDING * len(columns)
    for column in columns[:-1]:
        longest = max((cells[each.work.agent.id, column.name].cell_len for each in rows), default=0)
        fitting = STATE.max_width if column is STATE else max(len(column.name), longest)
        most = max(column.max_width, width * 3 // 10) if column is AGENT else column.max_width
        widths[column.name] = min(fitting, most, max(left - len(NOW.name), 1))
        left -= widths[column.name]
    widths[columns[-1].name] = max(left, len(NOW.name))
    return widths


def _fitted(text: Text, width: int) -> Text:
    fitted = text.copy()
    fitted.truncate(width, overflow="ellipsis", pad=fitted.justify != "right")
    return fitted


def _count(count: int, style: str) -> Text:
    return Text(short_number(count) if count else "", style=style, justify="right")
