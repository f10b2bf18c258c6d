"""Where the answer goes that an agent is giving just now: what it schedules goes there as well."""

from __future__ import annotations

import json

from sqlalchemy import bindparam, select

from bullpen.core.message import INTERNAL_CHANNELS, ReplyTo
from bullpen.core.models import LANES, MESSAGES
from bullpen.core.outbox.place import NOWHERE, DeliveryAddress, owner_address
from bullpen.core.schedules.schedule import DEFAULT_SENDER
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction

M = MESSAGES.c

SELECT_BATCH: Statement[tuple[str | None]] = Statement(
    lambda: select(LANES.c.batch).where(
        LANES.c.agent == bindparam("agent"), LANES.c.claim_token.is_not(None)
    )
)
SELECT_REPLY_ADDRESS: Statement[tuple[str, str, str | None, str | None]] = Statement(
    lambda: select(M.channel, M.sender, M.sender_id, M.reply_to).where(M.id == bindparam("message"))
)


def current_reply_address(tx: Transaction, agent: str) -> tuple[DeliveryAddress, str]:
    """The place, and the name of the person there; the owner's for what nobody asked."""
    running = tx.one(SELECT_BATCH, {"agent": agent})
    if running is None or running[0] is None:
        return NOWHERE, DEFAULT_SENDER
    asked = tx.one(SELECT_REPLY_ADDRESS, {"message": json.loads(running[0])[0]})
    if asked is None or asked[0] in INTERNAL_CHANNELS:
        return owner_address(tx.settings), DEFAULT_SENDER
    channel, sender, sender_id, reply_to = asked
    return DeliveryAddress(
        channel, sender_id, None if reply_to is None else ReplyTo.parse(reply_to)
    ), sender
