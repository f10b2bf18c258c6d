"""All messages of a conversation: cancel, resume and count them, and sum their runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from sqlalchemy import bindparam, func, select

from bullpen.core.errors import LaneClosed
from bullpen.core.models import ATTEMPTS, MESSAGES
from bullpen.core.models.archive import MESSAGE_TABLES, in_conversation, live_and_archived
from bullpen.core.models.base import const
from bullpen.core.queue.attempts import RunTotals, run_totals_columns
from bullpen.core.queue.lanes import lock_lanes
from bullpen.core.queue.manage import cancel, resume
from bullpen.core.states import MessageState, source_states
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import check_text

A = ATTEMPTS.c
M = MESSAGES.c

COUNT_CONVERSATION: Statement[tuple[str, int]] = Statement(
    lambda: live_and_archived(
        MESSAGE_TABLES,
        lambda table: (
            select(table.c.status, func.count())
            .where(in_conversation(table))
            .group_by(table.c.status)
        ),
    )
)

SUM_CONVERSATION: Statement[RunTotals] = Statement(
    lambda: select(*run_totals_columns()).where(A.conversation_id == bindparam("conversation")),
    RunTotals,
)


def _select_in_states(states: Iterable[MessageState]) -> Statement[tuple[str, str]]:
    return Statement(
        lambda: (
            select(M.message_id, M.agent)
            .where(
                in_conversation(),
                M.status.in_([const(state.value) for state in states]),
            )
            .order_by(M.agent, M.id)
        )
    )


SELECT_CANCELLABLE = _select_in_states(source_states(MessageState.CANCELLED))

SELECT_HELD = _select_in_states((MessageState.HELD,))


def cancel_conversation(tx: Transaction, conversation_id: str, reason: str = "cancelled") -> int:
    """Cancel every unfinished message of this conversation; returns their number."""
    check_text(conversation_id, tx.settings.message_bytes, "the conversation's id")
    conversation = {"conversation": conversation_id}
    lock_lanes(tx, [agent for _, agent in tx.all(SELECT_CANCELLABLE, conversation)])
    messages = tx.all(SELECT_CANCELLABLE, conversation)
    for message_id, _ in messages:
        cancel(tx, message_id, reason)
    return len(messages)


def resume_conversation(tx: Transaction, conversation_id: str) -> int:
    """Resume every held message of a conversation; returns their number.

    Messages for removed agents stay held, and do not stop the others.
    """
    check_text(conversation_id, tx.settings.message_bytes, "the conversation's id")
    conversation = {"conversation": conversation_id}
    lanes = lock_lanes(tx, [agent for _, agent in tx.all(SELECT_HELD, conversation)])
    resumed = 0
    closed: LaneClosed | None = None
    for message_id, agent in tx.all(SELECT_HELD, conversation):
        if agent not in lanes:
            continue  # held after the lanes were locked, so its own lane is not locked
        try:
            resume(tx, message_id)
            resumed += 1
        except LaneClosed as error:
            closed = error
    if closed is not None and resumed == 0:
        raise closed
    return resumed


def count_by_state(tx: Transaction, conversation_id: str) -> Counter[str]:
    """The number of messages of a conversation by state, including archived ones."""
    counts: Counter[str] = Counter()
    for state, count in tx.all(COUNT_CONVERSATION, {"conversation": conversation_id}):
        counts[state] += count
    return counts


def conversation_totals(tx: Transaction, conversation_id: str) -> RunTotals:
    """The totals of the finished runs of a conversation."""
    return tx.one(SUM_CONVERSATION, {"conversation": conversation_id}) or RunTotals()
