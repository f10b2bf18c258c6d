"""One message by its id, locked with its lane; the start of every verb that a person uses."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import bindparam, null, select, update

from bullpen.core.errors import IllegalMove, LaneClosed, UnknownMessage
from bullpen.core.message import Message
from bullpen.core.models import MESSAGES
from bullpen.core.queue.columns import MessageTuple, message_columns
from bullpen.core.queue.lane import lock_lane
from bullpen.core.states import LaneState, MessageState
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import check_text

M = MESSAGES.c

SELECT_AGENT: Statement[tuple[str]] = Statement(
    lambda: select(M.agent).where(M.message_id == bindparam("message_id"))
)

SELECT_STATUS: Statement[tuple[str, str | None]] = Statement(
    lambda: select(M.status, M.claim_token).where(M.message_id == bindparam("message_id"))
)

SELECT_MESSAGE: Statement[MessageTuple] = Statement(
    lambda: select(*message_columns()).where(M.message_id == bindparam("message_id"))
)

SET_MESSAGE_STATE: Statement[None] = Statement(
    lambda: (
        update(MESSAGES)
        .where(M.id == bindparam("message"), M.status == bindparam("source"))
        .values(
            status=bindparam("target"),
            last_error=bindparam("reason"),
            claim_token=null(),
            updated_at=bindparam("now"),
        )
    )
)


def lock_message(
    tx: Transaction,
    message_id: str,
    allowed: Collection[MessageState],
    verb: str,
    *,
    back: bool = False,
) -> tuple[Message, MessageState, str | None]:
    """The message, its state and its claim's token, if it is in one of the allowed states.

    `back`: it is to wait in its lane again, so that the lane must not be archived.
    """
    check_text(message_id, tx.settings.message_bytes, "the message's id")
    owner = tx.one(SELECT_AGENT, {"message_id": message_id})
    if owner is None:
        raise UnknownMessage(f"there is no message {message_id!r}")
    lane = lock_lane(tx, owner[0])
    status = tx.one(SELECT_STATUS, {"message_id": message_id})
    row = tx.one(SELECT_MESSAGE, {"message_id": message_id})
    if status is None or row is None:
        raise UnknownMessage(f"message {message_id!r} was removed just now")
    state = MessageState(status[0])
    if state not in allowed:
        names = ", ".join(sorted(allowed))
        raise IllegalMove(
            f"message {message_id} is {state}: you cannot {verb} it",
            hint=f"That can be done to a message that is {names}.",
        )
    if back and lane.state == LaneState.ARCHIVED:
        raise LaneClosed(f"the lane of {owner[0]} is archived: nothing comes back into it")
    return Message(*row), state, status[1]


def set_message_state(
    tx: Transaction,
    message: Message,
    source: MessageState,
    target: MessageState,
    reason: str | None = None,
) -> None:
    """Move a found message."""
    check_text(reason or "", tx.settings.message_bytes, "the reason")
    update_message(
        tx,
        SET_MESSAGE_STATE,
        message,
        {"source": source.value, "target": target.value, "reason": reason, "now": tx.now},
    )


def update_message(
    tx: Transaction, statement: Statement[None], message: Message, values: dict[str, object]
) -> None:
    """Change a found message, which may have gone to the archive since."""
    if tx.change(statement, {**values, "message": message.id}) == 0:
        raise UnknownMessage(f"message {message.message_id!r} was archived just now")
