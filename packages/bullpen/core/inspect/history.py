"""Read the history of agents: the newest entries, by page, filtered, and by search."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from sqlalchemy import (
    ColumnElement,
    Select,
    Table,
    bindparam,
    false,
    func,
    or_,
    select,
    union,
)

from bullpen.core.models import AGENT_MESSAGES, MESSAGES, MESSAGES_ARCHIVE
from bullpen.core.models.base import const
from bullpen.core.queue.reach import Run, by_person, person_key
from bullpen.core.roster.agents import Reach
from bullpen.core.store.paging import MAX_ROW_ID, cut_page, since_values
from bullpen.core.store.statement import Statement, columns
from bullpen.core.store.transaction import Cut, Transaction
from bullpen.core.text import check_text

H = AGENT_MESSAGES.c

PAGE_ROWS = 200

MAX_RESULTS = 10_000
"""The most entries that a search returns."""

_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]+")


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One message in the history: to an agent (role `user`) or by it (role `assistant`)."""

    id: int
    agent_id: str
    role: str
    channel: str
    sender: str
    message_id: str
    content: str
    created_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryFilter:
    """A filter for entries; None matches all."""

    agent: str | None = None
    person: str | None = None
    """A person's name or id on a channel: their messages and the answers to them."""


@dataclass(frozen=True, slots=True)
class Person:
    """A sender on a channel."""

    channel: str
    sender: str
    sender_id: str | None


def _entries() -> Select[*tuple[object, ...]]:
    return select(*columns(HistoryEntry, AGENT_MESSAGES))


def newest_history(
    tx: Transaction, agents: Collection[str] | None, limit: int
) -> list[HistoryEntry]:
    """The newest entries of these agents, newest first; None means all agents."""
    values = {**_agent_values(tx, agents), "limit": limit}
    statement = _select_newest(None if agents is None else len(agents))
    return tx.page(statement, values)


def history_since(
    tx: Transaction, agents: Collection[str] | None, since: int, upto: int, limit: int
) -> list[HistoryEntry]:
    """The entries of these agents after an id and up to another, oldest first."""
    values = {**_agent_values(tx, agents), "since": since, "upto": upto, "limit": limit}
    statement = _select_page(None if agents is None else len(agents))
    return tx.page(statement, values)


@cache
def _select_newest(count: int | None) -> Statement[HistoryEntry]:
    rows = _entries().where(*_by_agents(count)).order_by(H.id.desc()).limit(bindparam("limit"))
    return Statement(lambda: rows, HistoryEntry)


@cache
def _select_page(count: int | None) -> Statement[HistoryEntry]:
    between = (H.id > bindparam("since"), H.id <= bindparam("upto"))
    rows = _entries().where(*_by_agents(count), *between).order_by(H.id).limit(bindparam("limit"))
    return Statement(lambda: rows, HistoryEntry)


def _by_agents(count: int | None) -> list[ColumnElement[bool]]:
    if count is None:
        return []
    return [or_(false(), *(H.agent_id == bindparam(f"agent{number}") for number in range(count)))]


def _agent_values(tx: Transaction, agents: Collection[str] | None) -> dict[str, object]:
    named = sorted(agents or ())
    for each in named:
        check_text(each, tx.settings.message_bytes, "the agent id")
    return {f"agent{number}": each for number, each in enumerate(named)}


def list_history(
    tx: Transaction,
    wanted: HistoryFilter,
    since: int | None,
    limit: int,
    run: Run | None = None,
) -> list[HistoryEntry]:
    """The newest entries, oldest first; with `since`, only those from that time on.

    A run gets only the entries that it may read.
    """
    filters = dict(_filter_values(tx, wanted))
    bounds, run_values = _bounds(run)
    values = {**filters, **since_values(tx, AGENT_MESSAGES, since), "limit": limit, **run_values}
    return tx.all(_select_filtered_history(frozenset(filters), bounds), values)[::-1]


class RunBounds(NamedTuple):
    """Restricts a statement to the entries that a run may read."""

    everything: bool
    """Whether it may read all messages to and from its agent."""
    conversations: int = 0
    people: int = 0


def _bounds(run: Run | None) -> tuple[RunBounds | None, dict[str, object]]:
    """The restriction of this run and its values; without a run, there is none."""
    if run is None or run.reach is Reach.ALL:
        return None, {}
    values: dict[str, object] = {"run_agent": run.agent}
    if run.reach is Reach.PEOPLE:
        return RunBounds(everything=True), values
    for number, conversation in enumerate(run.conversations):
        values[f"conversation{number}"] = conversation
    for number, (channel, person) in enumerate(run.people):
        values |= {f"channel{number}": channel, f"person{number}": person}
    return RunBounds(False, len(run.conversations), len(run.people)), values


def _within(bounds: RunBounds | None) -> list[ColumnElement[bool]]:
    """Whether an entry belongs to the run's conversation, or to its person and its agent."""
    if bounds is None:
        return []
    by_agent = H.agent_id == bindparam("run_agent")
    if bounds.everything:
        return [by_agent]
    return [
        or_(
            *(
                condition
                for table in (MESSAGES, MESSAGES_ARCHIVE)
                for condition in (
                    _in_conversation(table, bounds.conversations),
                    by_agent & _with_person(table, bounds.people),
                )
            )
        )
    ]


def _in_conversation(table: Table, count: int) -> ColumnElement[bool]:
    own = (table.c.conversation_id == bindparam(f"conversation{number}") for number in range(count))
    return select(const(1)).where(table.c.message_id == H.message_id, or_(false(), *own)).exists()


def _with_person(table: Table, count: int) -> ColumnElement[bool]:
    people = (
        (table.c.channel == bindparam(f"channel{number}"))
        & (person_key(table) == bindparam(f"person{number}"))
        for number in range(count)
    )
    return (
        select(const(1))
        .where(
            table.c.message_id == H.message_id,
            table.c.agent == bindparam("run_agent"),
            by_person(table),
            or_(false(), *people),
        )
        .exists()
    )


_CONDITIONS: Mapping[str, Callable[[], ColumnElement[bool]]] = {
    "agent": lambda: H.agent_id == bindparam("agent"),
    # The history is kept longer than the messages.
    "person": lambda: or_(
        H.sender == bindparam("person"), _is_by_person(MESSAGES), _is_by_person(MESSAGES_ARCHIVE)
    ),
}


def _is_by_person(table: Table) -> ColumnElement[bool]:
    """Whether an entry belongs to a message of this person."""
    columns = table.c
    whose = or_(columns.sender == bindparam("person"), columns.sender_id == bindparam("person"))
    return (
        select(const(1))
        .where(columns.message_id == H.message_id, columns.from_agent.is_(None), whose)
        .exists()
    )


def _newest_entries() -> Select[*tuple[object, ...]]:
    return (
        _entries()
        .where(H.id > bindparam("after"), H.created_at >= bindparam("since"))
        .order_by(H.id.desc())
        .limit(bindparam("limit"))
    )


@cache
def _select_filtered_history(
    names: frozenset[str], bounds: RunBounds | None
) -> Statement[HistoryEntry]:
    return Statement(
        lambda: _newest_entries().where(
            *(_CONDITIONS[name]() for name in sorted(names)), *_within(bounds)
        ),
        HistoryEntry,
    )


def _filter_values(tx: Transaction, wanted: HistoryFilter) -> Iterator[tuple[str, str]]:
    for name, value in (("agent", wanted.agent), ("person", wanted.person)):
        if value is not None:
            yield name, check_text(value, tx.settings.message_bytes, "the filter")


def _matching_entries() -> Select[*tuple[object, ...]]:
    return (
        _entries()
        .where(
            func.lower(H.content).like(bindparam("pattern"), escape="\\"),
            H.id < bindparam("before"),
        )
        .order_by(H.id.desc())
        .limit(bindparam("limit"))
    )


@cache
def _select_matching(*, by_agent: bool, bounds: RunBounds | None) -> Statement[HistoryEntry]:
    conditions = [H.agent_id == bindparam("agent")] if by_agent else []
    return Statement(lambda: _matching_entries().where(*conditions, *_within(bounds)), HistoryEntry)


def search_history(
    tx: Transaction, text: str, agent: str | None = None, limit: int = 20, run: Run | None = None
) -> list[HistoryEntry]:
    """The entries that contain this text in any case, newest first."""
    check_text(text + (agent or ""), tx.settings.message_bytes, "the text")
    limit = min(max(1, limit), MAX_RESULTS)
    plain = text.casefold()
    bounds, run_values = _bounds(run)
    statement = _select_matching(by_agent=agent is not None, bounds=bounds)
    values: dict[str, object] = {
        **run_values,
        "pattern": _like_pattern(text.lower()),
        "agent": agent,
        "before": MAX_ROW_ID,
    }
    page = max(PAGE_ROWS, limit)
    found: list[HistoryEntry] = []
    while len(found) < limit:
        rows = tx.page(statement, {**values, "limit": page})
        found += [each for each in rows if plain in each.content.casefold()]
        cut = cut_page(tx, found[:limit])
        if isinstance(cut, Cut):
            return cut
        if len(rows) < page and not isinstance(rows, Cut):
            break
        values["before"] = rows[-1].id
    return found[:limit]


def _like_pattern(text: str) -> str:
    """A LIKE pattern with wildcards for letters beyond ASCII, whose case SQLite does not know."""
    literal = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return "%" + _BEYOND_ASCII.sub("%", literal) + "%"


@cache
def _select_people(*, of_agent: bool) -> Statement[Person]:
    def people(table: Table) -> Select[*tuple[object, ...]]:
        whose = [table.c.agent == bindparam("agent")] if of_agent else []
        return select(*columns(Person, table)).where(by_person(table), *whose)

    return Statement(
        lambda: union(*(people(table) for table in (MESSAGES, MESSAGES_ARCHIVE))), Person
    )


def list_people(tx: Transaction, run: Run | None = None) -> list[Person]:
    """Every person with a stored message; for a run, only those who wrote to its agent."""
    bounded = run is not None and run.reach is not Reach.ALL
    values = {} if run is None else {"agent": run.agent}
    return sorted(
        tx.all(_select_people(of_agent=bounded), values),
        key=lambda each: (each.channel, each.sender, each.sender_id or ""),
    )
