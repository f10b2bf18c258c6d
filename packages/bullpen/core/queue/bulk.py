"""bulk: one verb for many messages; what has moved meanwhile, or may not, keeps no other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bullpen.core.errors import (
    BullpenError,
    IllegalMove,
    LaneClosed,
    UnknownMessage,
    UnknownResponse,
)
from bullpen.core.queue.lane import lock_lane
from bullpen.core.queue.walk import RowRef
from bullpen.core.store.transaction import Transaction

CHANGED_MEANWHILE = (IllegalMove, UnknownMessage, UnknownResponse)
"""What is said of something that somebody else was quicker with."""


@dataclass(frozen=True, slots=True)
class BulkFailure:
    """Something to which it was not done, and why."""

    id: str
    error: BullpenError


@dataclass(frozen=True, slots=True)
class BulkResult:
    """What came of a batch."""

    done: int
    refused: tuple[BulkFailure, ...]


def apply_to_messages(
    tx: Transaction, verb: Callable[[Transaction, str], None], found: Sequence[RowRef]
) -> BulkResult:
    """Do it to each of these messages."""
    for agent in sorted({each.agent for each in found}):
        lock_lane(tx, agent)
    refused = []
    for each in found:
        try:
            verb(tx, each.message_id)
        except (*CHANGED_MEANWHILE, LaneClosed) as error:
            refused.append(BulkFailure(each.message_id, error))
    return BulkResult(len(found) - len(refused), tuple(refused))
