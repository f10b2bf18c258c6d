"""Details of events for viewers: the agent's name, the message and the text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from sqlalchemy import Select, Table, Text, bindparam, func, select
from sqlalchemy.sql.elements import ColumnElement

from bullpen.core.events.base import Event
from bullpen.core.events.company import RoomPosted
from bullpen.core.events.conversation import ChainHandoff, ChainStepDone, TeamChainStart
from bullpen.core.events.log import EventRecord
from bullpen.core.events.response import ResponseReady
from bullpen.core.models import (
    AGENT_MESSAGES,
    AGENTS,
    CHAT_MESSAGES,
)
from bullpen.core.models.archive import MESSAGE_TABLES, RESPONSE_TABLES, live_and_archived
from bullpen.core.models.base import const
from bullpen.core.roster.teams import Team, find_team, teams_of
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction

Row = TypeVar("Row")

PREVIEW_CHARS = 120
"""The length of a message's preview, as TinyAGI's clients expect it."""

MAX_TEXT_CHARS = 20_000
"""The length of a text in the details of an event; the history has the whole text."""

MAX_HISTORY_ROWS = 16
"""The number of newest rows of an agent's history that contain the text of its run."""

H = AGENT_MESSAGES.c
P = CHAT_MESSAGES.c


@dataclass(frozen=True, slots=True)
class MessageOrigin:
    """The message of an event."""

    channel: str
    sender: str
    preview: str
    from_agent: str | None
    team_id: str | None


@dataclass(frozen=True, slots=True)
class EventRecipient:
    """The recipient of a response, and their channel."""

    channel: str
    sender: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EventDetails:
    """The stored details of an event; None if they do not exist, or were deleted."""

    agent_name: str | None = None
    origin: MessageOrigin | None = None
    to: EventRecipient | None = None
    text: str | None = None
    """The text of the response, of the run, or of the post."""
    length: int = 0
    """The length of the whole text."""
    team: Team | None = None
    shared_team: str | None = None
    """The first team that has both agents of a handoff."""


def _truncated(text: ColumnElement[str], length: int) -> ColumnElement[str]:
    return func.substr(text, const(1), const(length), type_=Text)


def _message(table: Table) -> Select[tuple[str, str, str, str | None, str | None]]:
    columns = table.c
    text = _truncated(columns.message, PREVIEW_CHARS)
    return select(columns.channel, columns.sender, text, columns.from_agent, columns.team_id).where(
        columns.message_id == bindparam("message_id")
    )


def _response(table: Table) -> Select[tuple[str, str, str, int]]:
    columns = table.c
    text = _truncated(columns.message, MAX_TEXT_CHARS)
    return select(columns.channel, columns.sender, text, func.length(columns.message)).where(
        columns.id == bindparam("response")
    )


def _run_text() -> Select[tuple[str, int]]:
    latest = (
        select(H.id, H.message_id, H.role, H.content, H.created_at)
        .where(H.agent_id == bindparam("agent"), H.id <= bindparam("said"))
        .order_by(H.id.desc())
        .limit(const(MAX_HISTORY_ROWS))
        .subquery()
        .c
    )
    return (
        select(_truncated(latest.content, MAX_TEXT_CHARS), func.length(latest.content))
        .where(
            latest.message_id == bindparam("message_id"),
            latest.created_at == bindparam("at"),
            latest.role == const("assistant"),
        )
        .order_by(latest.id)
        .limit(const(1))
    )


MESSAGE: Statement[tuple[str, str, str, str | None, str | None]] = Statement(
    lambda: live_and_archived(MESSAGE_TABLES, _message)
)
RESPONSE: Statement[tuple[str, str, str, int]] = Statement(
    lambda: live_and_archived(RESPONSE_TABLES, _response)
)
RUN_TEXT: Statement[tuple[str, int]] = Statement(_run_text)
ROOM_POST: Statement[tuple[str, int]] = Statement(
    lambda: select(_truncated(P.message, MAX_TEXT_CHARS), func.length(P.message)).where(
        P.id == bindparam("post")
    )
)
AGENT_NAME: Statement[tuple[str]] = Statement(
    lambda: select(AGENTS.c.name).where(AGENTS.c.id == bindparam("agent"))
)


def event_details(tx: Transaction, records: Sequence[EventRecord]) -> list[EventDetails]:
    """The details of each of these events."""
    events = [record.event for record in records]
    names = _rows_by_key(tx, AGENT_NAME, "agent", (record.agent for record in records))
    origins = _rows_by_key(tx, MESSAGE, "message_id", (record.message_id for record in records))
    answers = _rows_by_key(tx, RESPONSE, "response", map(_response_id, events))
    posts = _rows_by_key(tx, ROOM_POST, "post", map(_post_id, events))
    teams = {each: find_team(tx, each) for each in set(map(_started_team, events)) if each}
    shared = {each: _shared_team(tx, *each) for each in set(map(_handoff, records)) if each}
    run_texts = _run_texts(tx, records)
    details = []
    for record, event in zip(records, events, strict=True):
        name, origin = names.get(record.agent), origins.get(record.message_id)
        answer = answers.get(_response_id(event))
        text, length = run_texts.get(record.id) or posts.get(_post_id(event)) or (None, 0)
        if answer is not None:
            text, length = answer[2:]
        details.append(
            EventDetails(
                agent_name=None if name is None else name[0] or record.agent,
                origin=None if origin is None else MessageOrigin(*origin),
                to=None if answer is None else EventRecipient(*answer[:2]),
                text=text,
                length=length,
                team=teams.get(_started_team(event) or ""),
                shared_team=shared.get(_handoff(record) or ("", "")),
            )
        )
    return details


def _rows_by_key(
    tx: Transaction, statement: Statement[Row], name: str, keys: Iterable[object]
) -> dict[object, Row]:
    """The rows of these keys, without keys that have no row."""
    present = [key for key in dict.fromkeys(keys) if key is not None]
    rows = tx.one_each(statement, [{name: key} for key in present])
    return {key: row for key, row in zip(present, rows, strict=True) if row is not None}


def _run_texts(tx: Transaction, records: Sequence[EventRecord]) -> dict[int, tuple[str, int]]:
    """The text of the run that ended with each of these events, by event id."""
    ends = [record for record in records if _last_history_id(record.event) is not None]
    values = [
        {
            "agent": record.agent,
            "said": _last_history_id(record.event),
            "message_id": record.message_id,
            "at": record.created_at,
        }
        for record in ends
    ]
    rows = tx.one_each(RUN_TEXT, values)
    return {record.id: row for record, row in zip(ends, rows, strict=True) if row is not None}


def _last_history_id(event: Event) -> int | None:
    return event.said if isinstance(event, ChainStepDone) else None


def _response_id(event: Event) -> int | None:
    return event.response if isinstance(event, ResponseReady) else None


def _post_id(event: Event) -> int | None:
    return event.post if isinstance(event, RoomPosted) else None


def _started_team(event: Event) -> str | None:
    return event.team if isinstance(event, TeamChainStart) else None


def _handoff(record: EventRecord) -> tuple[str, str] | None:
    """The sending and the receiving agent of a handoff."""
    event = record.event
    return (record.agent or "", event.to) if isinstance(event, ChainHandoff) else None


def _shared_team(tx: Transaction, agent: str, other: str) -> str | None:
    return next((team.id for team in teams_of(tx, agent) if other in team.members), None)
