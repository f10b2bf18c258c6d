"""The end of a claim: its lane is freed and the attempt is recorded."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from sqlalchemy import ColumnElement, bindparam, func, insert, select

from bullpen.core.errors import StaleToken
from bullpen.core.ids import agent_of
from bullpen.core.message import NO_USAGE, Failure, Message, Usage
from bullpen.core.models import ATTEMPTS, MESSAGES
from bullpen.core.models.base import const, decode_numbers
from bullpen.core.queue.lanes import FREE_LANE, FreedLane, agent_of_token
from bullpen.core.states import MessageState
from bullpen.core.store.paging import MAX_ROW_ID, TablePager
from bullpen.core.store.statement import Statement, columns
from bullpen.core.store.transaction import DeferredRow, Transaction

M = MESSAGES.c

_VARIABLE_PART = re.compile(r"\b[0-9a-f]{8,}|\d+|\b[a-z]+_[a-z0-9]{8}\b")

_MAX_ERROR_CHARS = 2000
"""The length of the error in an attempt; the message has more of it."""


class AttemptOutcome(StrEnum):
    """The outcome of a run."""

    COMPLETED = "completed"
    FAILED = "failed"
    CRASHED = "crashed"
    RELEASED = "released"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Attempt:
    """A finished run."""

    id: int
    message_id: str
    messages: int
    agent: str
    worker: str
    outcome: str
    error_kind: str | None
    error: str | None
    fingerprint: str | None
    retry_count: int
    provider: str | None
    model: str | None
    input_tokens: int
    output_tokens: int
    cost: float
    conversation_id: str
    hop: int
    team_id: str | None
    channel: str
    enqueued_at: int
    claimed_at: int
    started_at: int
    finished_at: int
    sender: str
    sender_id: str | None
    from_agent: str | None
    available_at: int | None
    conversation_at: int | None
    attempt: int | None
    dead: int
    wait: int | None


@dataclass(frozen=True, slots=True)
class RunTotals:
    """The number of runs, and their cost and tokens."""

    runs: int = 0
    cost: float = 0.0
    """In dollars."""
    input_tokens: int = 0
    output_tokens: int = 0

    @property
    def tokens(self) -> int:
        """Input and output tokens together."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: RunTotals) -> RunTotals:
        return RunTotals(
            self.runs + other.runs,
            self.cost + other.cost,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
        )


@dataclass(frozen=True, slots=True)
class EndedClaim:
    """A claim that has just ended, and freed its lane."""

    agent: str
    token: str
    ids: tuple[int, ...]
    claimed_at: int
    worker: str


def run_totals_columns() -> tuple[ColumnElement[Any], ...]:
    """The columns of `RunTotals`, summed over the selected attempts."""
    sums = (ATTEMPTS.c.cost, ATTEMPTS.c.input_tokens, ATTEMPTS.c.output_tokens)
    return (func.count(), *(func.coalesce(func.sum(each), const(0)) for each in sums))


def is_claimed() -> tuple[ColumnElement[bool], ...]:
    """Whether the message with this row id is claimed with this token."""
    return (
        M.id == bindparam("message"),
        M.status == const(MessageState.PROCESSING.value),
        M.claim_token == bindparam("token"),
    )


SELECT_CLAIMED: Statement[Message] = Statement(
    lambda: select(*columns(Message, MESSAGES)).where(*is_claimed()), Message
)

INSERT_ATTEMPT: Statement[None] = Statement(
    lambda: insert(ATTEMPTS).values(
        {column.name: bindparam(column.name) for column in ATTEMPTS.c if column.name != "id"}
    )
)

ATTEMPT_LISTING = TablePager(ATTEMPTS, Attempt)


def end_claim(tx: Transaction, token: str) -> EndedClaim:
    """Free the locked lane of this claim; its token becomes invalid."""
    return read_ended_claim(token, send_end_claim(tx, token))


def send_end_claim(tx: Transaction, token: str) -> DeferredRow[FreedLane]:
    """Send the statement of `end_claim` without waiting for its row; see `read_ended_claim`."""
    return tx.one_deferred(
        FREE_LANE, {"agent": agent_of_token(token), "token": token, "now": tx.now}
    )


def read_ended_claim(token: str, freed: DeferredRow[FreedLane]) -> EndedClaim:
    """The claim that `send_end_claim` ended, if it was valid."""
    row = freed()
    if row is None:
        raise StaleToken(f"claim {token} has ended")
    return EndedClaim(agent_of(token), token, tuple(decode_numbers(row[0])), row[1], row[2])


def claimed_messages(tx: Transaction, ended: EndedClaim) -> list[Message]:
    """The messages of this claim, the primary first."""
    values = [{"message": each, "token": ended.token} for each in ended.ids]
    return [each for each in tx.one_each(SELECT_CLAIMED, values) if each is not None]


def record_attempt(
    tx: Transaction,
    ended: EndedClaim,
    primary: Message,
    outcome: AttemptOutcome,
    usage: Usage = NO_USAGE,
    failure: Failure | None = None,
    *,
    messages: int,
    dead: int = 0,
    wait: int = 0,
) -> None:
    """Record a finished run of so many messages, how many of them are dead, and the back-off."""
    tx.write(
        INSERT_ATTEMPT,
        {
            "message_id": primary.message_id,
            "messages": messages,
            "agent": ended.agent,
            "worker": ended.worker,
            "outcome": outcome.value,
            "error_kind": None if failure is None else failure.kind.value,
            "error": None if failure is None else failure.error[:_MAX_ERROR_CHARS],
            "fingerprint": None if failure is None else fingerprint(failure.error),
            "retry_count": primary.retry_count,
            "provider": usage.provider,
            "model": usage.model,
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
            "cost": usage.cost,
            "conversation_id": primary.conversation_id,
            "hop": primary.hop,
            "team_id": primary.team_id,
            "channel": primary.channel,
            "enqueued_at": primary.created_at,
            "claimed_at": ended.claimed_at,
            "started_at": ended.claimed_at if usage.started_at is None else usage.started_at,
            "finished_at": tx.now,
            "sender": primary.sender,
            "sender_id": primary.sender_id,
            "from_agent": primary.from_agent,
            "available_at": primary.available_at,
            "conversation_at": primary.began_at,
            "attempt": primary.runs,
            "dead": dead,
            "wait": wait or None,
        },
    )


def list_attempts(
    tx: Transaction,
    filters: Mapping[str, object],
    since: int | None,
    limit: int,
    *,
    upto: int = MAX_ROW_ID,
) -> list[Attempt]:
    """The next attempts after an id, up to another; without `since`, the newest first.

    `filters` are values by column; None matches all.
    """
    return ATTEMPT_LISTING.page(tx, filters, since, limit, upto)


def fingerprint(error: str) -> str:
    """A short hash, the same for errors that differ only in numbers and ids."""
    shape = _VARIABLE_PART.sub("#", error[:_MAX_ERROR_CHARS].lower())[:200]
    return hashlib.sha256(shape.encode(errors="replace")).hexdigest()[:12]
