"""kill: a person ends what runs; that message and no other, whatever happens meanwhile."""

from __future__ import annotations

from dataclasses import dataclass

from bullpen.core.queue.browse import get_message_by_number
from bullpen.core.queue.cancel import cancel
from bullpen.core.queue.lane import lock_lane
from bullpen.core.states import MessageState
from bullpen.core.store.transaction import Transaction


@dataclass(frozen=True, slots=True)
class Killed:
    """What was ended."""

    agent: str
    ran: bool
    """False if it only waited."""


def kill(tx: Transaction, number: str, reason: str = "killed") -> Killed:
    """Cancel the message of this number or id."""
    # Locked before it is looked at: a run that begins or ends just now is waited for.
    lock_lane(tx, get_message_by_number(tx, number).agent)
    found = get_message_by_number(tx, number)
    cancel(tx, found.message_id, reason)
    return Killed(found.agent, found.status == MessageState.PROCESSING)
