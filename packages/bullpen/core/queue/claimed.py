"""claimed: the claim that a token stands for, for who has kept nothing else of it."""

from __future__ import annotations

import json

from sqlalchemy import bindparam, select

from bullpen.core.errors import StaleToken
from bullpen.core.message import Claim, Message
from bullpen.core.models import LANES
from bullpen.core.queue.give_back import SELECT_CLAIMED
from bullpen.core.queue.lane import agent_of_token
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction

L = LANES.c

# Not locked: whoever ends the claim locks this lane among others, in the order of their names.
SELECT_CLAIM: Statement[tuple[str, int]] = Statement(
    lambda: select(L.batch, L.lease_expires_at).where(
        L.agent == bindparam("agent"), L.claim_token == bindparam("token")
    )
)


def get_claim(tx: Transaction, token: str) -> Claim:
    """The claim, if it is still good; it may be over before it is ended, which that then tells."""
    agent = agent_of_token(token)
    row = tx.one(SELECT_CLAIM, {"agent": agent, "token": token})
    if row is None:
        raise StaleToken(f"the claim {token} is over")
    ids = [{"message": each, "token": token} for each in json.loads(row[0])]
    messages = tuple(
        Message(*found) for found in tx.one_each(SELECT_CLAIMED, ids) if found is not None
    )
    if not messages:
        raise StaleToken(f"the claim {token} is over")
    return Claim(token, agent, row[1], messages)
