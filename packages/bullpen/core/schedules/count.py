"""How many schedules there are in each state."""

from __future__ import annotations

from sqlalchemy import func, select

from bullpen.core.schedules.columns import S
from bullpen.core.schedules.schedule import ScheduleState
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction

COUNT_BY_STATE: Statement[tuple[str, int]] = Statement(
    lambda: select(S.state, func.count()).group_by(S.state)
)


def count_schedules(tx: Transaction) -> dict[str, int]:
    """The number in each state, states without any included."""
    found = dict(tx.all(COUNT_BY_STATE, {}))
    return {state.value: found.get(state.value, 0) for state in ScheduleState}
