"""Lanes as they are looked at: how each behaves, what it is at, and what waits in it."""

from __future__ import annotations

from dataclasses import dataclass, fields

from sqlalchemy import Column, bindparam, select

from bullpen.core.errors import UnknownAgent
from bullpen.core.models import LANES
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import check_text

L = LANES.c


@dataclass(frozen=True, slots=True)
class LaneRecord:
    """One agent's lane. The fields are in the order of their columns."""

    agent: str
    outside: bool
    state: str
    reason: str | None
    ordering: str
    batching: str
    max_depth: int | None
    overflow: str
    max_attempts: int
    pending: int
    not_before: int | None
    claimed_by: str | None
    claimed_at: int
    lease_expires_at: int | None
    batch: str | None
    created_at: int
    updated_at: int

    @property
    def processing(self) -> int:
        """How many messages its run answers; what it answered last stays in the row."""
        if self.lease_expires_at is None or self.batch is None:
            return 0
        return self.batch.count(",") + 1


def _columns() -> tuple[Column[object], ...]:
    return tuple(L[each.name] for each in fields(LaneRecord))


SELECT_LANES: Statement[tuple[object, ...]] = Statement(
    lambda: select(*_columns()).order_by(L.agent)
)

SELECT_LANE: Statement[tuple[object, ...]] = Statement(
    lambda: select(*_columns()).where(L.agent == bindparam("agent"))
)


def list_lanes(tx: Transaction) -> list[LaneRecord]:
    """Every lane, those of removed agents included, by the agent's id."""
    return [_lane_record(row) for row in tx.all(SELECT_LANES, {})]


def get_lane(tx: Transaction, agent: str) -> LaneRecord:
    """One agent's lane."""
    check_text(agent, tx.settings.message_bytes, "the agent's id")
    row = tx.one(SELECT_LANE, {"agent": agent})
    if row is None:
        raise UnknownAgent(f"there is no agent {agent[:40]!r}")
    return _lane_record(row)


def _lane_record(row: tuple[object, ...]) -> LaneRecord:
    agent, outside, *rest = row
    # SQLite has no booleans.
    return LaneRecord(agent, bool(outside), *rest)  # type: ignore[arg-type]
