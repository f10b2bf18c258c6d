"""What an outside worker does with one agent's lane: look for work, and take it."""

from __future__ import annotations

from sqlalchemy import bindparam, select

from bullpen.core.errors import UnknownAgent
from bullpen.core.message import Claim
from bullpen.core.models import LANES
from bullpen.core.queue.claim import claim
from bullpen.core.queue.due import anything_due
from bullpen.core.queue.reap import expire_leases
from bullpen.core.roster.agent import HTTP
from bullpen.core.roster.find import find_agent
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import check_text

L = LANES.c

SELECT_HAS_WORK: Statement[tuple[bool, bool | None, bool]] = Statement(
    lambda: select(
        L.head_key.is_not(None),
        L.lease_expires_at <= bindparam("now"),
        anything_due(),
    ).where(L.agent == bindparam("agent"))
)


def has_work(tx: Transaction, agent: str) -> bool:
    """Whether `claim_for_worker` might find something: asked in a read, it spares the write lock."""
    check_text(agent, tx.settings.message_bytes, "the agent's id")
    row = tx.one(SELECT_HAS_WORK, {"agent": agent, "now": tx.now})
    if row is None:
        raise UnknownAgent(f"there is no agent {agent[:40]!r}")
    return any(row)


def claim_for_worker(
    tx: Transaction, worker: str, agent: str, *, limit: int | None = None, lease: int | None = None
) -> Claim | None:
    """Claim what waits for this agent; what a worker left behind whose lease is over as well.

    Outside workers need not wait for the upkeep of a processor: there may be none.
    """
    check_text(worker, tx.settings.message_bytes, "the worker's name")
    expire_leases(tx, agent)
    return claim(tx, worker, agent=agent, limit=limit, lease=lease)


def get_provider_name(tx: Transaction, agent: str) -> str:
    """What answers for this agent, if it is still there."""
    found = find_agent(tx, agent)
    return HTTP if found is None else found.provider
