"""Claims: claim messages, record the start of the run, extend the lease, find a claim."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from sqlalchemy import ScalarSelect, Select, bindparam, exists, null, or_, select, update

from bullpen.core.clock import SECOND
from bullpen.core.errors import BadClaim, StaleToken
from bullpen.core.events.append import append_event
from bullpen.core.events.conversation import ChainStepStart, MessageReceived
from bullpen.core.ids import Ids
from bullpen.core.message import ALONE, HEARTBEAT, ROOM, Claim, Message
from bullpen.core.models import LANES, MESSAGES
from bullpen.core.models.base import const, decode_numbers, encode_list
from bullpen.core.queue.attempts import SELECT_CLAIMED
from bullpen.core.queue.lanes import (
    LOCK_LANE,
    Batching,
    agent_of_token,
    ready,
    refresh_lane,
    unknown_agent,
)
from bullpen.core.queue.timers import SWEEP_MESSAGES, anything_due, run_timers
from bullpen.core.states import MessageState
from bullpen.core.store.statement import Statement, columns
from bullpen.core.store.transaction import Transaction

L = LANES.c

M = MESSAGES.c

_OWN_LANE = LANES.alias("of").c

MAX_SWEEPS = 20
"""The most often that a claim runs the timers before it claims the ready messages."""

BATCH_WINDOW_MESSAGES = 256
"""The number of messages that are searched for those that one run may answer together."""


class Candidate(NamedTuple):
    """A message that can be claimed."""

    id: int
    batch_key: str | None
    agent: str
    batching: str
    any_due: bool
    """Whether timers must run first."""


def _claimable_lanes() -> Select[str]:
    return select(L.agent).where(L.head_key.is_not(None))


def _next_lane() -> Select[str]:
    return _claimable_lanes().where(~L.outside).order_by(L.claimed_at, L.head_key).limit(const(1))


def _batching() -> ScalarSelect[str]:
    return (
        select(_OWN_LANE.batching)
        .where(_OWN_LANE.agent == M.agent)
        .correlate(MESSAGES)
        .scalar_subquery()
    )


def _candidates(lane: Callable[[], Select[str]]) -> Statement[Candidate]:
    return Statement(
        lambda: (
            select(M.id, M.batch_key, M.agent, _batching(), anything_due())
            .where(
                M.agent == lane().with_for_update(skip_locked=True).scalar_subquery(),
                ready(),
            )
            .order_by(M.sort_key, M.id)
            .limit(bindparam("window"))
        ),
        Candidate,
    )


SELECT_CANDIDATES = _candidates(_next_lane)
"""The first messages of the free lane that was claimed from longest ago."""

SELECT_CANDIDATES_OF_AGENT = _candidates(
    lambda: _claimable_lanes().where(L.agent == bindparam("agent"))
)
"""The first messages of one agent's lane."""

SELECT_BATCH_WINDOW: Statement[tuple[int, str | None]] = Statement(
    lambda: (
        select(M.id, M.batch_key)
        .where(M.agent == bindparam("agent"), ready())
        .order_by(M.sort_key, M.id)
        .limit(const(BATCH_WINDOW_MESSAGES))
    )
)

SELECT_ANY_DUE: Statement[tuple[bool]] = Statement(lambda: select(anything_due()))

SELECT_HAS_CLAIMABLE: Statement[tuple[bool]] = Statement(
    lambda: select(or_(exists().where(L.head_key.is_not(None), ~L.outside), anything_due()))
)

CLAIM_MESSAGE: Statement[Message] = Statement(
    lambda: (
        update(MESSAGES)
        .where(
            M.id == bindparam("message"),
            ready(),
            or_(M.deadline.is_(None), M.deadline > bindparam("now")),
        )
        .values(
            status=const(MessageState.PROCESSING.value),
            claimed_by=bindparam("worker"),
            claim_token=bindparam("token"),
            runs=M.runs + const(1),
            updated_at=bindparam("now"),
        )
        .returning(*columns(Message, MESSAGES))
    ),
    Message,
)

CLAIM_LANE: Statement[None] = Statement(
    lambda: (
        update(LANES)
        .where(L.agent == bindparam("lane"))
        .values(
            claim_token=bindparam("token"),
            claimed_by=bindparam("worker"),
            claimed_at=bindparam("now"),
            lease_expires_at=bindparam("expires"),
            lease_ms=bindparam("lease"),
            batch=bindparam("ids"),
            pending=L.pending - bindparam("count"),
            head_key=null(),
        )
    )
)

CORRECT_CLAIM: Statement[None] = Statement(
    lambda: (
        update(LANES)
        .where(L.agent == bindparam("lane"))
        .values(batch=bindparam("ids"), pending=L.pending + bindparam("gone"))
    )
)

CLEAR_CLAIM: Statement[None] = Statement(
    lambda: (
        update(LANES)
        .where(L.agent == bindparam("lane"))
        .values(claim_token=null(), lease_expires_at=null(), lease_ms=null())
    )
)

# Not locked: the end of the claim locks this lane together with others, in the order of names.
SELECT_CLAIM: Statement[tuple[str, int]] = Statement(
    lambda: select(L.batch, L.lease_expires_at).where(
        L.agent == bindparam("agent"), L.claim_token == bindparam("token")
    )
)

EXTEND_LEASE: Statement[None] = Statement(
    lambda: (
        update(LANES)
        .where(LANES.c.agent == bindparam("lane"), LANES.c.claim_token == bindparam("token"))
        .values(lease_expires_at=bindparam("expires"), lease_ms=bindparam("lease"))
    ),
    waits_for="lane",
)


def claim(
    tx: Transaction,
    worker: str,
    *,
    agent: str | None = None,
    limit: int | None = None,
    lease: int | None = None,
) -> Claim | None:
    """Claim the messages of one free lane, or of this agent; None if there are none."""
    max_messages = tx.settings.claim_limit if limit is None else limit
    if max_messages < 1 or (lease is not None and lease < 1):
        raise BadClaim(f"cannot claim {max_messages} messages with a lease of {lease} ms")
    rows = _find_candidates(tx, {"agent": agent, "window": max_messages, "now": tx.now})
    if not rows:
        if agent is not None and tx.one(LOCK_LANE, {"agent": agent}) is None:
            raise unknown_agent(tx, agent)
        return None
    first = rows[0]
    name = first.agent
    ids = (
        [first.id]
        if first.batching == Batching.ONE or max_messages == 1
        else _choose_batch(tx, rows, max_messages)
    )
    token = tx.ids.token(name)
    lease_ms = _lease_ms(tx, lease)
    expires = tx.now + lease_ms
    values: dict[str, object] = {"worker": worker, "token": token, "now": tx.now}
    claimed_rows = [tx.one_deferred(CLAIM_MESSAGE, {**values, "message": each}) for each in ids]
    values.update(lane=name, expires=expires, lease=lease_ms, ids=encode_list(ids), count=len(ids))
    tx.write(CLAIM_LANE, values)
    messages = tuple(row for row in (row_of() for row_of in claimed_rows) if row is not None)
    if len(messages) < len(ids):
        _correct_claim(tx, name, [message.id for message in messages], len(ids) - len(messages))
    if not messages:
        return None
    claimed = [message.message_id for message in messages]
    append_event(tx, MessageReceived(messages[0], messages=claimed, worker=worker))
    return Claim(token, name, expires, messages)


def has_claimable(tx: Transaction) -> bool:
    """Whether a claim may find messages; reads only, without a write lock."""
    row = tx.one(SELECT_HAS_CLAIMABLE, {"now": tx.now})
    return row is not None and bool(row[0])


def get_claim(tx: Transaction, token: str) -> Claim:
    """The claim of this token, if it is valid; not locked, so its end checks the token again."""
    agent = agent_of_token(token)
    row = tx.one(SELECT_CLAIM, {"agent": agent, "token": token})
    if row is None:
        raise StaleToken(f"claim {token} has ended")
    ids = [{"message": each, "token": token} for each in decode_numbers(row[0])]
    messages = tuple(message for message in tx.one_each(SELECT_CLAIMED, ids) if message is not None)
    if not messages:
        raise StaleToken(f"claim {token} has ended")
    return Claim(token, agent, row[1], messages)


def extend(tx: Transaction, token: str, lease: int | None = None) -> int:
    """Renew the lease of this claim; returns the new expiry."""
    lease_ms = _lease_ms(tx, lease)
    expires = tx.now + lease_ms
    values = {"lane": agent_of_token(token), "token": token, "expires": expires, "lease": lease_ms}
    if tx.change(EXTEND_LEASE, values) == 0:
        raise StaleToken(f"claim {token} has ended")
    return expires


def record_start(tx: Transaction, claim: Claim, provider: str) -> None:
    """Record that this provider started to answer the messages of the claim."""
    started = ChainStepStart(
        claim.primary,
        provider=provider,
        messages=[message.message_id for message in claim.messages],
        batch=_batch_id(claim, tx.ids),
    )
    append_event(tx, started)


def _lease_ms(tx: Transaction, lease: int | None) -> int:
    """The length of a lease in milliseconds; None means the setting."""
    return tx.settings.lease_seconds * SECOND if lease is None else lease


def _find_candidates(tx: Transaction, values: dict[str, object]) -> list[Candidate]:
    statement = SELECT_CANDIDATES if values["agent"] is None else SELECT_CANDIDATES_OF_AGENT
    rows = tx.all(statement, values)
    if rows:
        due = rows[0].any_due
    else:
        any_due = tx.one(SELECT_ANY_DUE, {"now": tx.now})
        due = any_due is not None and any_due[0]
    if not due:
        return rows
    for _ in range(MAX_SWEEPS):
        if run_timers(tx) < SWEEP_MESSAGES:
            break
    return tx.all(statement, values)


def _choose_batch(tx: Transaction, rows: list[Candidate], limit: int) -> list[int]:
    """The first message and those that its run answers too: same batch key, and room posts."""
    first = rows[0]
    # The run of a heartbeat keeps no session, and that of a post needs one.
    if first.batch_key in (HEARTBEAT, ALONE):
        return [first.id]
    keys = {ROOM} if first.batch_key is None else {first.batch_key, ROOM}
    ids = [row.id for row in rows[1:] if row.batch_key in keys]
    if len(rows) == limit and len(ids) + 1 < limit:
        window = tx.all(SELECT_BATCH_WINDOW, {"agent": first.agent})
        ids = [id_ for id_, key in window[1:] if key in keys]
    return [first.id, *ids[: limit - 1]]


def _correct_claim(tx: Transaction, agent: str, ids: list[int], gone: int) -> None:
    """Correct a claim whose messages had changed before its lane was locked.

    On PostgreSQL a statement sees the messages as they were at its start, but the lane as it is.
    """
    tx.write(CORRECT_CLAIM, {"lane": agent, "ids": encode_list(ids), "gone": gone})
    if not ids:
        tx.write(CLEAR_CLAIM, {"lane": agent})
        refresh_lane(tx, agent, 0)


def _batch_id(claim: Claim, ids: Ids) -> str | None:
    """The id of a batch of several room posts."""
    posts = [message for message in claim.messages if message.channel == ROOM]
    return ids.new("chatroom_batch") if len(posts) > 1 else None
