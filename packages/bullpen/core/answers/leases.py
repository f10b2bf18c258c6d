"""Leases of claims: detect expired leases and end their claims.

A lease has expired when a process that checks it regularly has seen it unchanged for its whole
length. Clocks are never compared, so a clock that is set, or that differs on another host, neither
ends nor prolongs a lease. Between two checks at most half of the lease counts, so that after a
sleep of the machine the holder can extend it before the next check. A processor extends its leases
three times within their length.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy import Select, bindparam, select

from bullpen.core.answers.complete import fail
from bullpen.core.clock import SECOND, format_interval
from bullpen.core.message import Claim, ErrorKind, Failure
from bullpen.core.models import LANES
from bullpen.core.queue.claim import claim
from bullpen.core.queue.lanes import unknown_agent
from bullpen.core.queue.timers import anything_due
from bullpen.core.store.base import Store
from bullpen.core.store.statement import Statement, columns
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import check_line

L = LANES.c


@dataclass(frozen=True, slots=True)
class Lease:
    """The lease of a claim."""

    agent: str
    claim_token: str
    claimed_by: str
    lease_expires_at: int
    lease_ms: int | None
    """None if an earlier version of Bullpen made the claim."""


HasEnded = Callable[[Lease], bool]
"""Decides whether a lease has expired."""


def _leases() -> Select[tuple[object, ...]]:
    return select(*columns(Lease, LANES)).where(L.claim_token.is_not(None))


# Reads all lanes, one for each agent: an index would cost every claim a page.
SELECT_LEASES: Statement[Lease] = Statement(lambda: _leases().order_by(L.agent), Lease)

SELECT_LEASE_OF_AGENT: Statement[Lease] = Statement(
    lambda: _leases().where(L.agent == bindparam("agent")), Lease
)

LOCK_LEASE: Statement[tuple[str]] = Statement(
    lambda: (
        select(L.agent)
        .where(
            L.agent == bindparam("agent"),
            L.claim_token == bindparam("token"),
            L.lease_expires_at == bindparam("expires"),
        )
        .with_for_update(skip_locked=True)
    )
)

SELECT_HAS_WORK: Statement[tuple[bool, bool, str, str | None, str, int, int | None]] = Statement(
    lambda: select(L.head_key.is_not(None), anything_due(), *columns(Lease, LANES)).where(
        L.agent == bindparam("agent")
    )
)


def by_clock(now: int, after_ms: int = 0) -> HasEnded:
    """By this process's clock and a margin, for processes that cannot check regularly."""
    return lambda lease: lease.lease_expires_at + after_ms <= now


def by_observation(store: Store) -> HasEnded:
    """By the observations of this process: each call is a check."""

    def has_ended(lease: Lease) -> bool:
        lasts = lease.lease_ms or store.settings.lease_seconds * SECOND
        value = (lease.claim_token, lease.lease_expires_at)
        most = -(-lasts // 2)
        return store.leases.look(lease.agent, value, store.clock.monotonic(), most) >= lasts

    return has_ended


def watch_leases(store: Store) -> list[Lease]:
    """Check every lease; returns the expired ones."""
    has_ended = by_observation(store)
    with store.read() as tx:
        return [lease for lease in tx.all(SELECT_LEASES, {}) if has_ended(lease)]


def end_expired_claims(store: Store) -> int:
    """End the claims with expired leases; returns their number."""
    count = 0
    for lease in watch_leases(store):
        with store.write(durable=False) as tx:
            if _expire(tx, lease):
                count += 1
            else:
                # Another transaction holds the lane, so the holder could not extend the lease.
                store.leases.forget(lease.agent)
    return count


def expire_leases(
    tx: Transaction, agent: str | None = None, has_ended: HasEnded | None = None
) -> int:
    """End the claims with expired leases, of this agent or of all; returns their number."""
    has_ended = has_ended or by_clock(tx.now)
    statement = SELECT_LEASES if agent is None else SELECT_LEASE_OF_AGENT
    leases = tx.all(statement, {} if agent is None else {"agent": agent})
    return sum(_expire(tx, lease) for lease in leases if has_ended(lease))


def has_work(tx: Transaction, agent: str, has_ended: HasEnded | None = None) -> bool:
    """Whether `claim_for_worker` may find messages; reads only, without a write lock."""
    check_line(agent, tx.settings.message_bytes, "the agent id")
    row = tx.one(SELECT_HAS_WORK, {"agent": agent, "now": tx.now})
    if row is None:
        raise unknown_agent(tx, agent)
    has_head, is_due, name, token, worker, expires_at, lease_ms = row
    if has_head or is_due:
        return True
    if token is None:
        return False
    return (has_ended or by_clock(tx.now))(Lease(name, token, worker, expires_at, lease_ms))


def claim_for_worker(
    tx: Transaction,
    worker: str,
    agent: str,
    *,
    limit: int | None = None,
    lease: int | None = None,
    has_ended: HasEnded | None = None,
) -> Claim | None:
    """Claim this agent's messages, including those of a claim whose lease has expired.

    Expired leases are thus taken back even if only external workers run, and no scheduler.
    """
    check_line(worker, tx.settings.message_bytes, "the worker name")
    expire_leases(tx, agent, has_ended)
    return claim(tx, worker, agent=agent, limit=limit, lease=lease)


def _expire(tx: Transaction, lease: Lease) -> bool:
    """End a claim as crashed; False if it was extended, has ended, or its lane is locked."""
    values = {
        "agent": lease.agent,
        "token": lease.claim_token,
        "expires": lease.lease_expires_at,
    }
    if tx.one(LOCK_LEASE, values) is None:
        return False
    length = "" if lease.lease_ms is None else f" of {format_interval(max(SECOND, lease.lease_ms))}"
    error = f"{lease.claimed_by} stopped responding: it did not extend its lease{length}"
    fail(tx, lease.claim_token, Failure(kind=ErrorKind.CRASH, error=error))
    return True
