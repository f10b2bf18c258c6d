"""Apply one action to many messages or responses; a refused one does not stop the others."""

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
from bullpen.core.inspect.messages import (
    MessageRecord,
    get_message_by_number,
    list_dead_or_held,
)
from bullpen.core.queue.lanes import lock_lane
from bullpen.core.queue.manage import cancel, retry
from bullpen.core.states import MessageState
from bullpen.core.store.scan import RowRef
from bullpen.core.store.transaction import Transaction

CHANGED_MEANWHILE = (IllegalMove, UnknownMessage, UnknownResponse)
"""The errors of a row that changed after it was selected."""


@dataclass(frozen=True, slots=True)
class BulkFailure:
    """A row that was refused, and the error."""

    id: str
    error: BullpenError


@dataclass(frozen=True, slots=True)
class BulkResult:
    """The result of a batch."""

    done: int
    refused: tuple[BulkFailure, ...]


def apply_to_messages(
    tx: Transaction, verb: Callable[[Transaction, str], None], found: Sequence[RowRef]
) -> BulkResult:
    """Apply an action to each of these messages."""
    for agent in sorted({each.agent for each in found}):
        lock_lane(tx, agent)
    refused = []
    for each in found:
        try:
            verb(tx, each.message_id)
        except (*CHANGED_MEANWHILE, LaneClosed) as error:
            refused.append(BulkFailure(each.message_id, error))
    return BulkResult(len(found) - len(refused), tuple(refused))


def apply_to_responses(
    tx: Transaction, verb: Callable[[Transaction, int], None], found: Sequence[RowRef]
) -> BulkResult:
    """Apply an action to each of these responses in the order of ids, which prevents deadlocks."""
    refused = []
    for number in sorted(each.id for each in found):
        try:
            verb(tx, number)
        except CHANGED_MEANWHILE as error:
            refused.append(BulkFailure(str(number), error))
    return BulkResult(len(found) - len(refused), tuple(refused))


@dataclass(frozen=True, slots=True)
class Killed:
    """A message that was cancelled."""

    agent: str
    ran: bool
    """False if it was not running."""


def kill(tx: Transaction, number: str, reason: str = "killed") -> Killed:
    """Cancel the message of this row id or `message_id`."""
    # The lane is locked first, to wait for a claim or the end of a run at this moment.
    lock_lane(tx, get_message_by_number(tx, number).agent)
    found = get_message_by_number(tx, number)
    cancel(tx, found.message_id, reason)
    return Killed(found.agent, found.status == MessageState.PROCESSING)


def lock_message_in_state(tx: Transaction, number: str, state: MessageState) -> MessageRecord:
    """The message of this row id or `message_id` in this state, with a locked lane."""
    found = get_message_by_number(tx, number)
    if found.status == state:
        lock_lane(tx, found.agent)
        found = get_message_by_number(tx, number)
    if found.status != state:
        raise UnknownMessage(
            f"message {number[:60]!r} is not {state}", hint=f"Its state is {found.status}."
        )
    return found


def retry_all_dead(tx: Transaction, agent: str | None, kind: str | None, limit: int) -> int:
    """Retry dead messages, oldest first; returns their number.

    Messages of a removed agent stay dead, and do not stop the others.
    """
    found = list_dead_or_held(tx, MessageState.DEAD, agent=agent, kind=kind, since=0, limit=limit)
    for each in sorted({each.agent for each in found}):
        lock_lane(tx, each)
    tried = 0
    closed: LaneClosed | None = None
    for message in found:
        try:
            retry(tx, message.message_id)
            tried += 1
        except LaneClosed as error:
            closed = error
        except (IllegalMove, UnknownMessage):
            continue  # it changed after it was selected
    if closed is not None and tried == 0:
        raise closed
    return tried
