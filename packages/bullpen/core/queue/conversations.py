"""A conversation in numbers: its messages by state, and what its runs took."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, bindparam, func, select

from bullpen.core.models import ATTEMPTS
from bullpen.core.models.archive import MESSAGE_TABLES, in_conversation, live_and_archived
from bullpen.core.models.base import const
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction

A = ATTEMPTS.c


@dataclass(frozen=True, slots=True)
class RunTotals:
    """How many runs there were, and what they took."""

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


def run_totals() -> tuple[ColumnElement[Any], ...]:
    """The columns of `RunTotals`, over all attempts that a query selects."""
    sums = (A.cost, A.input_tokens, A.output_tokens)
    return (func.count(), *(func.coalesce(func.sum(each), const(0)) for each in sums))


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
    lambda: select(*run_totals()).where(A.conversation_id == bindparam("conversation")), RunTotals
)


def count_by_state(tx: Transaction, conversation_id: str) -> Counter[str]:
    """How many messages of a conversation are in each state, archived messages included."""
    counts: Counter[str] = Counter()
    for state, count in tx.all(COUNT_CONVERSATION, {"conversation": conversation_id}):
        counts[state] += count
    return counts


def conversation_totals(tx: Transaction, conversation_id: str) -> RunTotals:
    """What the ended runs of a conversation took."""
    return tx.one(SUM_CONVERSATION, {"conversation": conversation_id}) or RunTotals()
