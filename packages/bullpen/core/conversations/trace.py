"""trace: a conversation with its whole life, for whoever asks why."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import bindparam, func, select

from bullpen.core.conversations.members import Stand, count, members
from bullpen.core.errors import NotFound
from bullpen.core.models import ARCHIVE, ATTEMPTS, LANES, MESSAGES
from bullpen.core.models.base import const
from bullpen.core.outbox.browse import SeenResponse, responses_to
from bullpen.core.queue.attempts import Attempt, browse_attempts
from bullpen.core.queue.browse import Seen
from bullpen.core.states import ARCHIVED, MessageState
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import check_text

M = MESSAGES.c
A = ATTEMPTS.c
L = LANES.c

MOST = 1000
"""So many messages, runs and answers of one conversation are shown."""

LIVE: Statement[tuple[object, ...]] = Statement(
    lambda: members(MESSAGES).order_by(M.id).limit(const(MOST))
)
OLD: Statement[tuple[object, ...]] = Statement(
    lambda: members(ARCHIVE).order_by(ARCHIVE.c.id).limit(const(MOST))
)

TOTALS: Statement[tuple[int, float, int, int]] = Statement(
    lambda: select(
        func.count(),
        func.coalesce(func.sum(A.cost), const(0)),
        func.coalesce(func.sum(A.input_tokens), const(0)),
        func.coalesce(func.sum(A.output_tokens), const(0)),
    ).where(A.conversation_id == bindparam("conversation"))
)

CLAIMED_AT: Statement[tuple[int]] = Statement(
    lambda: select(L.claimed_at).where(
        L.agent == bindparam("agent"), L.lease_expires_at.is_not(None)
    )
)

# All messages of one run are completed at the same moment; the attempt is that of its first.
BESIDE: Statement[tuple[str]] = Statement(
    lambda: (
        select(M.message_id)
        .join(ATTEMPTS, A.message_id == M.message_id)
        .where(
            M.status.in_([const(state.value) for state in ARCHIVED]),
            M.updated_at == bindparam("at"),
            M.agent == bindparam("agent"),
            M.claimed_by == bindparam("worker"),
            A.finished_at == bindparam("at"),
        )
        .order_by(M.id)
        .limit(const(1))
    )
)


@dataclass(frozen=True, slots=True)
class Step:
    """A message of the conversation, and when what was done with it last."""

    message: Seen
    archived: bool
    claimed_at: int | None
    started_at: int | None
    finished_at: int | None
    answered_with: str | None
    """The message by whose run it was answered as well."""


@dataclass(frozen=True, slots=True)
class Totals:
    """What it took."""

    messages: int
    attempts: int
    cost: float
    input_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True)
class Trace:
    """All of a conversation."""

    conversation_id: str
    stand: Stand
    totals: Totals
    steps: tuple[Step, ...]
    attempts: tuple[Attempt, ...]
    responses: tuple[SeenResponse, ...]

    @property
    def handoffs(self) -> tuple[Seen, ...]:
        """The messages that agents wrote to each other."""
        return tuple(step.message for step in self.steps if step.message.from_agent is not None)

    @property
    def agents(self) -> frozenset[str]:
        """Everyone who has a part in it."""
        return frozenset(
            (
                *(step.message.agent for step in self.steps),
                *(each.agent for each in self.attempts),
                *(each.agent for each in self.responses),
            )
        )


def trace(tx: Transaction, conversation_id: str) -> Trace:
    """The conversation of this id, archived rows included."""
    check_text(conversation_id, tx.settings.message_bytes, "the conversation's id")
    asked: dict[str, object] = {"conversation": conversation_id}
    found = [(Seen(*row), False) for row in tx.all(LIVE, asked)]  # type: ignore[arg-type]
    found += [(Seen(*row), True) for row in tx.all(OLD, asked)]  # type: ignore[arg-type]
    found.sort(key=lambda each: each[0].id)
    attempts = browse_attempts(tx, {"conversation_id": conversation_id}, 0, MOST)
    named = {conversation_id, *(message.message_id for message, _ in found[:MOST])}
    responses = responses_to(tx, sorted(named))[:MOST]
    if not found and not attempts and not responses:
        raise NotFound(
            f"there is no conversation {conversation_id[:60]!r}",
            hint="Its id is that of its first message.",
        )
    last = {each.message_id: each for each in attempts}
    counts = count(tx, conversation_id)
    return Trace(
        conversation_id=conversation_id,
        stand=counts.stand,
        totals=_totals(tx, conversation_id, counts.messages),
        steps=tuple(
            _step(tx, message, archived, last.get(message.message_id))
            for message, archived in found[:MOST]
        ),
        attempts=tuple(attempts),
        responses=tuple(responses),
    )


def _totals(tx: Transaction, conversation_id: str, messages: int) -> Totals:
    row = tx.one(TOTALS, {"conversation": conversation_id})
    assert row is not None
    attempts, cost, tokens_in, tokens_out = row
    return Totals(messages, int(attempts), float(cost), int(tokens_in), int(tokens_out))


def _step(tx: Transaction, message: Seen, archived: bool, last: Attempt | None) -> Step:
    if message.status == MessageState.PROCESSING:
        row = tx.one(CLAIMED_AT, {"agent": message.agent})
        return Step(message, archived, None if row is None else row[0], None, None, None)
    if last is not None:
        times = (last.claimed_at, last.started_at, last.finished_at)
        return Step(message, archived, *times, None)
    beside = None
    if message.status == MessageState.COMPLETED and not archived:
        beside = tx.one(
            BESIDE,
            {"at": message.updated_at, "agent": message.agent, "worker": message.claimed_by},
        )
    return Step(message, archived, None, None, None, None if beside is None else beside[0])
