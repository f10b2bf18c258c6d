"""Where the answer goes that an agent is giving just now: what it schedules goes there as well."""

from __future__ import annotations

import json

from sqlalchemy import bindparam, select

from bullpen.core.message import UNHEARD, ReplyTo
from bullpen.core.models import LANES, MESSAGES
from bullpen.core.outbox.place import NOWHERE, Place, owner_place
from bullpen.core.schedules.schedule import SENDER
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction

M = MESSAGES.c

BATCH: Statement[tuple[str | None]] = Statement(
    lambda: select(LANES.c.batch).where(
        LANES.c.agent == bindparam("agent"), LANES.c.claim_token.is_not(None)
    )
)
ASKED: Statement[tuple[str, str, str | None, str | None]] = Statement(
    lambda: select(M.channel, M.sender, M.sender_id, M.reply_to).where(M.id == bindparam("message"))
)


def place_here(tx: Transaction, agent: str) -> tuple[Place, str]:
    """The place, and the name of the person there; the owner's for what nobody asked."""
    running = tx.one(BATCH, {"agent": agent})
    if running is None or running[0] is None:
        return NOWHERE, SENDER
    asked = tx.one(ASKED, {"message": json.loads(running[0])[0]})
    if asked is None or asked[0] in UNHEARD:
        return owner_place(tx.settings), SENDER
    channel, sender, sender_id, reply_to = asked
    return Place(channel, sender_id, None if reply_to is None else ReplyTo.parse(reply_to)), sender
