"""begin: the run of a claim is on its way; told, so that people see who works on what."""

from __future__ import annotations

from bullpen.core.events.append import EventType, append_message_event
from bullpen.core.ids import Ids
from bullpen.core.message import ROOM, Claim
from bullpen.core.store.transaction import Transaction


def record_start(tx: Transaction, claim: Claim, provider: str) -> None:
    """Say that this provider begins to answer the claim's messages."""
    append_message_event(
        tx,
        EventType.CHAIN_STEP_START,
        claim.primary,
        provider=provider,
        messages=[message.message_id for message in claim.messages],
        batch=_batch_id(claim, tx.ids),
    )


def _batch_id(claim: Claim, ids: Ids) -> str | None:
    """The id of several room posts that one run answers."""
    posts = [message for message in claim.messages if message.channel == ROOM]
    return ids.new("chatroom_batch") if len(posts) > 1 else None
