"""What runs have taken since a moment, by agent: the newest attempts, and never all of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sqlalchemy import bindparam, func, select

from bullpen.core.clock import MINUTE
from bullpen.core.models import ATTEMPTS
from bullpen.core.models.base import const
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction

A = ATTEMPTS.c

# From the newest on: so it costs what came since, and not the whole table.
SELECT_LAST_RUN_BEFORE: Statement[tuple[int]] = Statement(
    lambda: (
        select(A.id)
        .where(A.finished_at < bindparam("before"))
        .order_by(A.id.desc())
        .limit(const(1))
    )
)

SUM_SINCE: Statement[tuple[str, int, float, int, int]] = Statement(
    lambda: (
        select(
            A.agent,
            func.count(),
            func.coalesce(func.sum(A.cost), const(0)),
            func.coalesce(func.sum(A.input_tokens), const(0)),
            func.coalesce(func.sum(A.output_tokens), const(0)),
        )
        .where(A.id > bindparam("after"), A.finished_at >= bindparam("since"))
        .group_by(A.agent)
    )
)


@dataclass(frozen=True, slots=True)
class RunTotals:
    """How many runs there were, and what they took."""

    runs: int = 0
    cost: float = 0.0
    input_tokens: int = 0
    output_tokens: int = 0

    @property
    def tokens(self) -> int:
        """Those read and those written."""
        return self.input_tokens + self.output_tokens


def add_totals(parts: Iterable[RunTotals]) -> RunTotals:
    """The sum of these."""
    found = list(parts)
    return RunTotals(
        sum(each.runs for each in found),
        sum(each.cost for each in found),
        sum(each.input_tokens for each in found),
        sum(each.output_tokens for each in found),
    )


def last_run_before(tx: Transaction, moment: int) -> int:
    """The number of the last run that had ended well before this moment; 0 if none had."""
    # One that was under way for a while has a later number than its moment says.
    row = tx.one(SELECT_LAST_RUN_BEFORE, {"before": moment - MINUTE})
    return 0 if row is None else row[0]


def run_totals_since(tx: Transaction, moment: int, after: int) -> dict[str, RunTotals]:
    """What each agent's runs took that ended since; `after` is the number of the last before."""
    rows = tx.all(SUM_SINCE, {"since": moment, "after": after})
    return {
        agent: RunTotals(int(runs), float(cost), int(tokens_in), int(tokens_out))
        for agent, runs, cost, tokens_in, tokens_out in rows
    }
