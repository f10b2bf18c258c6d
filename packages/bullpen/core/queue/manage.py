"""What an operator does with a message: cancel, retry, drop, hold and resume."""

from __future__ import annotations

import json
from collections.abc import Collection

from sqlalchemy import bindparam, delete, null, select, true, update

from bullpen.core.clock import SECOND
from bullpen.core.errors import IllegalMove, LaneClosed, UnknownMessage
from bullpen.core.events.append import append_event
from bullpen.core.events.message import (
    MessageCancelled,
    MessageDropped,
    MessageHeld,
    MessageLetGo,
    MessageReleased,
    MessageRetried,
)
from bullpen.core.message import Claim, Message
from bullpen.core.models import LANES, MESSAGES
from bullpen.core.models.archive import in_conversation
from bullpen.core.models.base import const
from bullpen.core.queue.attempts import (
    AttemptOutcome,
    claimed_messages,
    end_claim,
    record_attempt,
)
from bullpen.core.queue.disposition import RELEASED, Disposition, apply_dispositions
from bullpen.core.queue.lanes import delay_lane, lock_lane, refresh_lane
from bullpen.core.states import TERMINAL_STATES, LaneState, MessageState, source_states
from bullpen.core.store.statement import Statement, columns
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import check_text

M = MESSAGES.c

SELECT_AGENT: Statement[tuple[str]] = Statement(
    lambda: select(M.agent).where(M.message_id == bindparam("message_id"))
)

SELECT_STATUS: Statement[tuple[str, str | None]] = Statement(
    lambda: select(M.status, M.claim_token).where(M.message_id == bindparam("message_id"))
)

SELECT_MESSAGE: Statement[Message] = Statement(
    lambda: select(*columns(Message, MESSAGES)).where(M.message_id == bindparam("message_id")),
    Message,
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
    message = tx.one(SELECT_MESSAGE, {"message_id": message_id})
    if status is None or message is None:
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
    return message, state, status[1]


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


L = LANES.c


CANCEL_WAIT_MS = 2 * SECOND
"""The lane waits so long for word that the run is over, so that no second one begins beside it."""

CLEAR_CANCEL_WAIT: Statement[None] = Statement(
    lambda: (
        update(LANES)
        .where(
            L.agent == bindparam("agent"),
            L.batch == bindparam("ids"),
            L.claim_token.is_(None),
            L.not_before <= bindparam("until"),
        )
        .values(not_before=null())
    )
)

SELECT_CANCELLABLE: Statement[tuple[str, str]] = Statement(
    lambda: (
        select(M.message_id, M.agent)
        .where(
            in_conversation(),
            M.status.in_([const(state.value) for state in source_states(MessageState.CANCELLED)]),
        )
        .order_by(M.agent, M.id)
    )
)


def cancel(tx: Transaction, message_id: str, reason: str = "cancelled") -> None:
    """End this message. If it is running, its run is over: the token is void."""
    check_text(reason, tx.settings.message_bytes, "the reason")
    message, state, token = lock_message(
        tx, message_id, source_states(MessageState.CANCELLED), "cancel"
    )
    if state is MessageState.PROCESSING and token is not None:
        _stop_run(tx, token, message.id, reason)
    else:
        set_message_state(tx, message, state, MessageState.CANCELLED, reason)
        refresh_lane(tx, message.agent, -int(state is MessageState.PENDING))
    append_event(tx, MessageCancelled(message, reason=reason))


def cancel_conversation(tx: Transaction, conversation_id: str, reason: str = "cancelled") -> int:
    """End everything of this conversation that is not over; gives how many messages it was."""
    check_text(conversation_id, tx.settings.message_bytes, "the conversation's id")
    found = tx.all(SELECT_CANCELLABLE, {"conversation": conversation_id})
    for agent in sorted({agent for _, agent in found}):
        lock_lane(tx, agent)
    found = tx.all(SELECT_CANCELLABLE, {"conversation": conversation_id})
    for message_id, _ in found:
        cancel(tx, message_id, reason)
    return len(found)


def confirm_run_ended(tx: Transaction, claim: Claim) -> None:
    """A worker's word that the run which was taken from it is over: the lane waits no longer."""
    lock_lane(tx, claim.agent)
    ids = json.dumps([message.id for message in claim.messages])
    tx.write(
        CLEAR_CANCEL_WAIT, {"agent": claim.agent, "ids": ids, "until": tx.now + CANCEL_WAIT_MS}
    )
    refresh_lane(tx, claim.agent, 0)


def _stop_run(tx: Transaction, token: str, message: int, reason: str) -> None:
    ended = end_claim(tx, token)
    messages = claimed_messages(tx, ended)
    cancelled = Disposition(state=MessageState.CANCELLED, error=reason)
    pending = apply_dispositions(
        tx, ended, [(each, cancelled if each.id == message else RELEASED) for each in messages]
    )
    delay_lane(tx, ended.agent, tx.now + CANCEL_WAIT_MS)
    refresh_lane(tx, ended.agent, pending)
    record_attempt(tx, ended, messages, AttemptOutcome.CANCELLED)
    tx.wake("runs")
    others = [each for each in messages if each.id != message]
    if others:
        released = MessageReleased(
            others[0],
            messages=[each.message_id for each in others],
            reason="another message of the run was cancelled",
        )
        append_event(tx, released)


DELETE_MESSAGE: Statement[None] = Statement(
    lambda: delete(MESSAGES).where(
        MESSAGES.c.id == bindparam("message"), MESSAGES.c.status == bindparam("source")
    )
)


def drop(tx: Transaction, message_id: str) -> None:
    """Delete it; the events and attempts that tell of it stay."""
    allowed = TERMINAL_STATES - {MessageState.COMPLETED}
    message, state, _ = lock_message(tx, message_id, allowed, "drop")
    update_message(tx, DELETE_MESSAGE, message, {"source": state.value})
    append_event(tx, MessageDropped(message))


SELECT_HELD: Statement[tuple[str, str]] = Statement(
    lambda: (
        select(M.message_id, M.agent)
        .where(
            in_conversation(),
            M.status == const(MessageState.HELD.value),
        )
        .order_by(M.agent, M.id)
    )
)


def hold(tx: Transaction, message_id: str, reason: str) -> None:
    """Keep a waiting message from being claimed until somebody lets it go."""
    check_text(reason, tx.settings.message_bytes, "the reason")
    message, state, _ = lock_message(tx, message_id, (MessageState.PENDING,), "hold")
    set_message_state(tx, message, state, MessageState.HELD, reason)
    refresh_lane(tx, message.agent, -1)
    append_event(tx, MessageHeld(message, reason=reason))


def resume(tx: Transaction, message_id: str) -> None:
    """Let a held message take its old place in the lane."""
    message, state, _ = lock_message(tx, message_id, (MessageState.HELD,), "let go", back=True)
    set_message_state(tx, message, state, MessageState.PENDING)
    refresh_lane(tx, message.agent, 1)
    append_event(tx, MessageLetGo(message))


def resume_conversation(tx: Transaction, conversation_id: str) -> int:
    """Let everything go that is held of a conversation; gives how many messages it was.

    What is for an agent that was removed stays held, and keeps nobody else from going on.
    """
    check_text(conversation_id, tx.settings.message_bytes, "the conversation's id")
    found = tx.all(SELECT_HELD, {"conversation": conversation_id})
    agents = {agent for _, agent in found}
    for agent in sorted(agents):
        lock_lane(tx, agent)
    gone = 0
    closed: LaneClosed | None = None
    for message_id, agent in tx.all(SELECT_HELD, {"conversation": conversation_id}):
        if agent not in agents:
            continue  # held since its lane was to be locked
        try:
            resume(tx, message_id)
            gone += 1
        except LaneClosed as error:
            closed = error
    if closed is not None and gone == 0:
        raise closed
    return gone


RETRY_MESSAGE: Statement[None] = Statement(
    lambda: (
        update(MESSAGES)
        .where(MESSAGES.c.id == bindparam("message"), MESSAGES.c.status == bindparam("source"))
        .values(
            status=const(MessageState.PENDING.value),
            retry_count=const(0),
            crash_count=const(0),
            ready=true(),
            available_at=bindparam("now"),
            deadline=null(),
            updated_at=bindparam("now"),
        )
    )
)


def retry(tx: Transaction, message_id: str) -> None:
    """Put it back into its old place, its tries forgotten and its deadline lifted."""
    allowed = TERMINAL_STATES - {MessageState.COMPLETED}
    message, state, _ = lock_message(tx, message_id, allowed, "retry", back=True)
    update_message(tx, RETRY_MESSAGE, message, {"source": state.value, "now": tx.now})
    refresh_lane(tx, message.agent, 1)
    append_event(tx, MessageRetried(message))
