"""release: the claim is given up, and nobody is to blame: no try is counted."""

from __future__ import annotations

from bullpen.core.events.append import EventType, tell
from bullpen.core.queue.give_back import Fate, claimed_messages, give_back
from bullpen.core.queue.lane import lock_claimed, settle_lane
from bullpen.core.queue.run import RunOutcome, end_run, record_attempt
from bullpen.core.states import MessageState
from bullpen.core.store.transaction import Transaction


def release(tx: Transaction, token: str, reason: str = "released") -> None:
    """Put the claim's messages back where they were."""
    lock_claimed(tx, token)
    run = end_run(tx, token)
    messages = claimed_messages(tx, run)
    fate = Fate(status=MessageState.PENDING)
    settle_lane(tx, run.agent, give_back(tx, run, [(message, fate) for message in messages]))
    record_attempt(tx, run, messages, RunOutcome.RELEASED)
    tell(
        tx,
        EventType.MESSAGE_RELEASED,
        messages[0],
        messages=[message.message_id for message in messages],
        reason=reason,
    )
