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
from bullpen.core.queue.walk import Found
from bullpen.core.store.transaction import Transaction

MOVED = (IllegalMove, UnknownMessage, UnknownResponse)
"""What is said of something that somebody else was quicker with."""


@dataclass(frozen=True, slots=True)
class Refused:
    """Something to which it was not done, and why."""

    id: str
    error: BullpenError


@dataclass(frozen=True, slots=True)
class Batch:
    """What came of a batch."""

    done: int
    refused: tuple[Refused, ...]


def each_of(
    tx: Transaction, verb: Callable[[Transaction, str], None], found: Sequence[Found]
) -> Batch:
    """Do it to each of these messages."""
    for agent in sorted({each.agent for each in found}):
        lock_lane(tx, agent)
    refused = []
    for each in found:
        try:
            verb(tx, each.message_id)
        except (*MOVED, LaneClosed) as error:
            refused.append(Refused(each.message_id, error))
    return Batch(len(found) - len(refused), tuple(refused))
