"""claim: the best free lane, its oldest message, and what may be answered along with it."""

from __future__ import annotations

import json

from sqlalchemy import bindparam, null, select, update

from bullpen.core.events.append import EventType, append_event
from bullpen.core.message import ROOM, Claim, Message
from bullpen.core.models import LANES, MESSAGES
from bullpen.core.models.base import const
from bullpen.core.queue.columns import MESSAGE_COLUMNS, MessageTuple
from bullpen.core.queue.due import DUE, make_due
from bullpen.core.queue.lane import READY, Batching
from bullpen.core.states import MessageState
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction

L, M = LANES.c, MESSAGES.c

WINDOW = 256
"""How far back in its lane a message is looked for that the same run may answer."""

_CLAIMABLE = select(L.agent, L.batching, DUE).where(L.head_key.is_not(None))

BEST: Statement[tuple[str, str, bool]] = Statement(
    _CLAIMABLE.order_by(L.head_key).limit(const(1)).with_for_update(skip_locked=True, of=LANES)
)

OF_AGENT: Statement[tuple[str, str, bool]] = Statement(
    _CLAIMABLE.where(L.agent == bindparam("agent")).with_for_update(skip_locked=True, of=LANES)
)

ANY_DUE: Statement[tuple[bool]] = Statement(select(DUE))

HEAD: Statement[tuple[int, str | None]] = Statement(
    select(M.id, M.batch_key)
    .where(M.agent == bindparam("agent"), READY)
    .order_by(M.sort_key, M.id)
    .limit(bindparam("window"))
)

TAKE: Statement[MessageTuple] = Statement(
    update(MESSAGES)
    .where(M.id == bindparam("message"), READY)
    .values(
        status=const(MessageState.PROCESSING.value),
        claimed_by=bindparam("worker"),
        claim_token=bindparam("token"),
        updated_at=bindparam("now"),
    )
    .returning(*MESSAGE_COLUMNS)
)

TAKE_LANE: Statement[None] = Statement(
    update(LANES)
    .where(L.agent == bindparam("lane"))
    .values(
        claim_token=bindparam("token"),
        claimed_by=bindparam("worker"),
        claimed_at=bindparam("now"),
        lease_expires_at=bindparam("expires"),
        batch=bindparam("ids"),
        pending=L.pending - bindparam("count"),
        head_key=null(),
    )
)


def claim(
    tx: Transaction,
    worker: str,
    *,
    agent: str | None = None,
    limit: int | None = None,
    lease: int | None = None,
) -> Claim | None:
    """Take the messages of one free lane, or of this agent's; None when there is nothing."""
    lane = _free_lane(tx, agent)
    if lane is None:
        return None
    name, batching = lane
    most = tx.settings.claim_limit if limit is None else limit
    ids = _batch(tx, name, 1 if batching == Batching.ONE else most)
    token = tx.ids.token(name)
    expires = tx.now + (tx.settings.lease_seconds * 1000 if lease is None else lease)
    values: dict[str, object] = {"worker": worker, "token": token, "now": tx.now}
    rows = tx.one_each(TAKE, [{**values, "message": each} for each in ids])
    messages = tuple(Message(*row) for row in rows if row is not None)
    taken = json.dumps(ids)
    values.update(lane=name, expires=expires, ids=taken, count=len(ids))
    tx.write(TAKE_LANE, values)
    append_event(
        tx,
        EventType.MESSAGE_RECEIVED,
        agent=name,
        conversation_id=messages[0].conversation_id,
        message_id=messages[0].message_id,
        messages=len(messages),
        worker=worker,
    )
    return Claim(token, name, expires, messages)


def _free_lane(tx: Transaction, agent: str | None) -> tuple[str, str] | None:
    find = BEST if agent is None else OF_AGENT
    values = {"agent": agent, "now": tx.now}
    row = tx.one(find, values)
    if row is not None and not row[2]:
        return row[0], row[1]
    if row is None:
        due = tx.one(ANY_DUE, {"now": tx.now})
        if due is None or not due[0]:
            return None
    make_due(tx)
    row = tx.one(find, values)
    return None if row is None else (row[0], row[1])


def _batch(tx: Transaction, agent: str, limit: int) -> list[int]:
    window = 1 if limit == 1 else max(WINDOW, limit)
    rows = tx.all(HEAD, {"agent": agent, "window": window})
    first, key = rows[0]
    if key is None:
        along = [each for each, other in rows[1:] if other == ROOM]
    else:
        along = [each for each, other in rows[1:] if other in (key, ROOM)]
    return [first, *along[: limit - 1]]
