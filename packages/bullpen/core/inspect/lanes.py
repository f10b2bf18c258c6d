"""Read the lanes of agents; a separate module, so that `agent list` imports little."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import bindparam, select

from bullpen.core.errors import UnknownAgent
from bullpen.core.models import LANES
from bullpen.core.states import LaneState
from bullpen.core.store.statement import Statement, columns
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import check_text

L = LANES.c


@dataclass(frozen=True, slots=True)
class LaneRecord:
    """One agent's lane."""

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
        """The number of messages that its run answers; the row keeps the last run's batch."""
        if self.lease_expires_at is None or self.batch is None:
            return 0
        return self.batch.count(",") + 1


SELECT_LANES: Statement[LaneRecord] = Statement(
    lambda: select(*columns(LaneRecord, LANES)).order_by(L.agent), LaneRecord
)

SELECT_LANE: Statement[LaneRecord] = Statement(
    lambda: select(*columns(LaneRecord, LANES)).where(L.agent == bindparam("agent")), LaneRecord
)


def list_lanes(tx: Transaction) -> list[LaneRecord]:
    """Return every lane, including those of removed agents, ordered by agent id."""
    return tx.all(SELECT_LANES, {})


def get_lane(tx: Transaction, agent: str) -> LaneRecord:
    """Return one agent's lane."""
    check_text(agent, tx.settings.message_bytes, "the agent id")
    lane = tx.one(SELECT_LANE, {"agent": agent})
    if lane is None:
        raise UnknownAgent.of(
            agent, [each.agent for each in list_lanes(tx) if each.state != LaneState.ARCHIVED]
        )
    return lane
