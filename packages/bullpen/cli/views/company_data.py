"""The data behind `team watch`, read from the database."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from zoneinfo import ZoneInfo

from bullpen.cli.views.activity import ActivityLine, activity_line, is_about
from bullpen.cli.views.app import last_line
from bullpen.core.clock import SECOND, start_of_day
from bullpen.core.events.conversation import AgentProgress, ChainStepDone
from bullpen.core.events.log import EventFilter, EventRecord, list_events
from bullpen.core.events.message import (
    MessageCancelled,
    MessageDead,
    MessageFailed,
    MessageHeld,
    MessageReleased,
)
from bullpen.core.events.tail import EventTail
from bullpen.core.inspect.activity import (
    ActiveRun,
    AgentStatus,
    CompanyStatus,
    get_company_status,
    last_run_before,
    run_totals_since,
)
from bullpen.core.inspect.event_details import event_details
from bullpen.core.queue.attempts import RunTotals
from bullpen.core.store.base import Store
from bullpen.core.store.transaction import Transaction

INITIAL_EVENTS = 300
"""How many of the last events are read when a view opens."""
PAGE_EVENTS = 500
MAX_PAGES = 4
MAX_LINES = 100
"""The most lines of one update; earlier events are left out."""
LOOK_SECONDS = 5
"""How often the status is read without an event, because a process may have ended."""
COUNT_SECONDS = 2
"""The shortest time between two counts of the spending."""

RUN_END_EVENTS = (
    ChainStepDone,
    MessageFailed,
    MessageDead,
    MessageHeld,
    MessageCancelled,
    MessageReleased,
)
"""The events that may end a run, which has a cost."""

NO_FILTER = EventFilter()


@dataclass(frozen=True, slots=True)
class CompanyUpdate:
    """The present state of the agents, and the events since the last update."""

    company: CompanyStatus
    spent: dict[str, RunTotals]
    """The usage of each agent's runs today."""
    lines: tuple[ActivityLine, ...]
    progress: dict[str, tuple[int, str]]
    """The time and text of the last progress of each agent."""
    fresh: bool
    """Whether the store was just opened, and earlier lines are replaced."""


@dataclass(slots=True)
class SpendingCounter:
    """Counts the usage of today, again after a run may have ended."""

    zone: ZoneInfo
    spent: dict[str, RunTotals] = field(default_factory=dict)
    _day: int = 0
    _after: int = 0
    _at: int = 0
    _stale: bool = True

    def run_ended(self) -> None:
        """Note that the count is stale."""
        self._stale = True

    def due(self, now: int) -> bool:
        """Whether the count is stale, and old enough."""
        return self._stale and now - self._at >= COUNT_SECONDS * SECOND

    def count(self, tx: Transaction) -> None:
        """Count the usage of today, if it is due."""
        day = start_of_day(tx.now, self.zone)
        if day != self._day:
            self._day, self._after, self._stale = day, last_run_before(tx, day), True
            self._at = 0
        if self.due(tx.now):
            self.spent = run_totals_since(tx, self._day, self._after)
            self._at, self._stale = tx.now, False


@dataclass(slots=True)
class CompanyReader:
    """Reads all agents, or those of a team."""

    team: str | None
    zone: ZoneInfo

    def __call__(self, store: Store) -> Iterator[CompanyUpdate | None]:
        """Yield everything first, then each update, or None."""
        tail = EventTail.from_now(store)
        spending = SpendingCounter(self.zone)
        progress: dict[str, tuple[int, str]] = {}
        with store.read() as tx:
            events = list_events(tx, NO_FILTER, None, tail.position, INITIAL_EVENTS)[::-1]
        update = self._update(store, spending, events, progress, fresh=True)
        yield update
        while True:
            events = _read(tail)
            now = store.clock.now()
            old = now - update.company.at >= LOOK_SECONDS * SECOND
            if events or old or spending.due(now):
                update = self._update(store, spending, events, progress, fresh=False)
                yield update
            else:
                yield None

    def _update(
        self,
        store: Store,
        spending: SpendingCounter,
        events: Sequence[EventRecord],
        progress: dict[str, tuple[int, str]],
        *,
        fresh: bool,
    ) -> CompanyUpdate:
        if any(isinstance(each.event, RUN_END_EVENTS) for each in events):
            spending.run_ended()
        with store.read() as tx:
            company = get_company_status(tx, self.team)
            members = frozenset(each.agent.id for each in company.agents)
            ours = [event for event in events if is_about(event, self.team, members)]
            lines = _lines(tx, ours)
            spending.count(tx)
        for record in ours:
            event = record.event
            if isinstance(event, AgentProgress) and record.agent is not None:
                text = last_line(event.text)
                if text:
                    progress[record.agent] = (record.created_at, text)
        return CompanyUpdate(company, spending.spent, lines, dict(progress), fresh)


def _read(tail: EventTail) -> list[EventRecord]:
    found: list[EventRecord] = []
    for _ in range(MAX_PAGES):
        page = tail.read(PAGE_EVENTS)
        found += page
        if len(page) < PAGE_EVENTS:
            break
    return found


def _lines(tx: Transaction, events: Sequence[EventRecord]) -> tuple[ActivityLine, ...]:
    shown = [event for event in events if event.type != AgentProgress.type][-MAX_LINES:]
    lines = (activity_line(*each) for each in zip(shown, event_details(tx, shown), strict=True))
    return tuple(each for each in lines if each is not None)


Document = dict[str, object]


def company_fields(company: CompanyStatus, spent: Mapping[str, RunTotals]) -> Document:
    """The status for a JSON document, with the usage of today."""
    queue = company.queue
    return {
        "at": company.at,
        "team": None if company.team is None else company.team.id,
        "leader": None if company.team is None else company.team.leader,
        "queue": {
            "pending": queue.pending,
            "processing": queue.processing,
            "held": queue.held,
            "dead": queue.dead,
            "outgoing": queue.outgoing,
        },
        "processes": company.processes,
        "agents": [_agent(each, spent.get(each.agent.id, RunTotals())) for each in company.agents],
    }


def _agent(work: AgentStatus, today: RunTotals) -> Document:
    return {
        "id": work.agent.id,
        "name": work.agent.name,
        "provider": work.agent.provider,
        "model": work.agent.model,
        "state": work.activity.value,
        "reason": work.why,
        "until": work.until,
        "waiting": work.waiting,
        "run": None if work.run is None else _run(work.run),
        "today": _spent(today),
    }


def _run(run: ActiveRun) -> Document:
    return {
        "message_id": run.message.message_id,
        "conversation_id": run.message.conversation_id,
        "message": run.message.message,
        "messages": run.messages,
        "since": run.since,
        "worker": run.worker,
        "conversation": _spent(run.conversation),
    }


def _spent(spent: RunTotals) -> Document:
    return {
        "runs": spent.runs,
        "cost": spent.cost,
        "input_tokens": spent.input_tokens,
        "output_tokens": spent.output_tokens,
    }
