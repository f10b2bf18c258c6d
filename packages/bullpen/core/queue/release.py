"""release: the claim is given up, and nobody is to blame: no try is counted."""

from __future__ import annotations

from bullpen.core.events.append import EventType, append_message_event
from bullpen.core.queue.give_back import Disposition, apply_dispositions, claimed_messages
from bullpen.core.queue.lane import lock_claimed_lane, refresh_lane
from bullpen.core.queue.run import AttemptOutcome, end_claim, record_attempt
from bullpen.core.states import MessageState
from bullpen.core.store.transaction import Transaction


def release(tx: Transaction, token: str, reason: str = "released") -> None:
    """Put the claim's messages back where they were."""
    lock_claimed_lane(tx, token)
    run = end_claim(tx, token)
    messages = claimed_messages(tx, run)
    fate = Disposition(status=MessageState.PENDING)
    refresh_lane(
        tx, run.agent, apply_dispositions(tx, run, [(message, fate) for message in messages])
    )
    record_attempt(tx, run, messages, AttemptOutcome.RELEASED)
    append_message_event(
        tx,
        EventType.MESSAGE_RELEASED,
        messages[0],
        messages=[message.message_id for message in messages],
        reason=reason,
    )
