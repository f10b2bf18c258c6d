"""finish: store a run's answers, handoffs, posts and history in one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlalchemy import Update, bindparam, null, update

from bullpen.core.errors import LaneError, StaleToken
from bullpen.core.events.append import append_event
from bullpen.core.events.conversation import ChainHandoff, ChainStepDone
from bullpen.core.history import INSERT_HISTORY, insert_post
from bullpen.core.message import (
    INTERNAL,
    INTERNAL_CHANNELS,
    ROOM,
    Claim,
    Message,
    NewMessage,
    Outcome,
    ReplyTo,
    RoomPost,
)
from bullpen.core.models import MESSAGES
from bullpen.core.models.base import const
from bullpen.core.outbox.write import add_response
from bullpen.core.queue.attempts import (
    AttemptOutcome,
    end_claim,
    is_claimed,
    read_ended_claim,
    record_attempt,
    send_end_claim,
)
from bullpen.core.queue.enqueue import check_message
from bullpen.core.queue.insert import insert_checked
from bullpen.core.queue.lanes import LOCK_LANE, agent_of_token, lock_lane
from bullpen.core.states import MessageState
from bullpen.core.store.statement import Statement, columns
from bullpen.core.store.transaction import DeferredRow, Transaction
from bullpen.core.strict_json import check_json_column
from bullpen.core.text import check_text


def _complete_message() -> Update:
    return (
        update(MESSAGES)
        .where(*is_claimed())
        .values(
            status=const(MessageState.COMPLETED.value),
            claim_token=null(),
            updated_at=bindparam("now"),
        )
    )


COMPLETE_PRIMARY: Statement[Message] = Statement(
    lambda: _complete_message().returning(*columns(Message, MESSAGES)), Message
)

COMPLETE_OTHER: Statement[tuple[str]] = Statement(
    lambda: _complete_message().returning(MESSAGES.c.message_id)
)
"""A run answers its primary message; of the others, it needs only the ids."""


def finish(tx: Transaction, claim: Claim | str, outcome: Outcome) -> list[str]:
    """Complete the claim's messages and write the answers, handoffs, posts and history.

    Returns the ids of the messages, the primary first. The claim instead of its token saves one
    round trip to PostgreSQL.
    """
    _check_outcome(tx, outcome)
    token = claim if isinstance(claim, str) else claim.token
    lock_target_lanes(tx, token, outcome)
    if isinstance(claim, str):
        ended = end_claim(tx, token)
        first, others = _complete(tx, token, ended.ids)
    else:
        freed = send_end_claim(tx, token)
        first, others = _complete(tx, token, [message.id for message in claim.messages])
        ended = read_ended_claim(token, freed)
    primary = first()
    if primary is None:
        raise StaleToken(f"claim {token} has ended")
    completed = [primary.message_id, *(row[0] for row in (each() for each in others) if row)]
    _write_history(tx, ended.agent, primary, outcome)
    _hand_off(tx, primary, outcome)
    record_attempt(
        tx, ended, primary, AttemptOutcome.COMPLETED, outcome.usage, messages=len(completed)
    )
    append_event(tx, ChainStepDone(primary, messages=completed, responses=len(outcome.answers)))
    # After the event: TinyAGI's clients close a message with its response.
    for seq, answer in enumerate(outcome.answers):
        add_response(tx, primary, answer, seq)
    return completed


def lock_target_lanes(tx: Transaction, token: str, outcome: Outcome) -> None:
    """Lock every lane that the outcome writes to, in the order of their names.

    The claim's own lane is locked by a separate statement, so that the next statement sees the
    messages that arrived while it waited for the lock.
    """
    own = agent_of_token(token)
    targets = {new.agent for new in outcome.handoffs}
    targets.update(agent for post in outcome.room_posts for agent in post.to)
    for agent in sorted({*targets, own}):
        if agent == own:
            tx.one_deferred(LOCK_LANE, {"agent": own})
        else:
            lock_lane(tx, agent)


def _check_outcome(tx: Transaction, outcome: Outcome) -> None:
    limit = tx.settings.message_bytes
    for answer in outcome.answers:
        check_text(answer.message, limit, "the answer")
        if answer.metadata is not None:
            check_text(answer.metadata, limit, "the answer's metadata")
            check_json_column(answer.metadata, "the answer's metadata")
        for file in answer.files:
            check_text(file, limit, "a file's name")
    for new in outcome.handoffs:
        check_message(tx, new)
    for post in outcome.room_posts:
        check_text(post.team_id, limit, "the team's id")
        check_text(post.message, limit, "the post")


def _complete(
    tx: Transaction, token: str, ids: Sequence[int]
) -> tuple[DeferredRow[Message], list[DeferredRow[tuple[str]]]]:
    """Send the statements that complete the primary message and the others."""
    primary, *others = [{"token": token, "now": tx.now, "message": each} for each in ids]
    return (
        tx.one_deferred(COMPLETE_PRIMARY, primary),
        [tx.one_deferred(COMPLETE_OTHER, each) for each in others],
    )


def _hand_off(tx: Transaction, primary: Message, outcome: Outcome) -> None:
    for new in outcome.handoffs:
        _enqueue_or_hold(tx, _handoff_message(primary, new))
        append_event(tx, ChainHandoff(primary, to=new.agent))
    for post in outcome.room_posts:
        insert_post(tx, post.team_id, primary.agent, post.message)
        for agent in post.to:
            _enqueue_or_hold(tx, _room_message(primary, post, agent))


def _enqueue_or_hold(tx: Transaction, new: NewMessage) -> None:
    """Enqueue a message; if its lane accepts none, hold it instead of losing the whole run."""
    try:
        insert_checked(tx, [new])
    except LaneError as error:
        insert_checked(tx, [replace(new, hold_reason=str(error))])


def _handoff_message(primary: Message, new: NewMessage) -> NewMessage:
    return replace(
        new,
        channel=INTERNAL if primary.channel in INTERNAL_CHANNELS else primary.channel,
        sender=primary.sender,
        sender_id=primary.sender_id,
        from_agent=primary.agent,
        conversation_id=primary.conversation_id,
        conversation_at=primary.began_at,
        parent_id=primary.message_id,
        hop=primary.hop + 1,
        reply_to=None if primary.reply_to is None else ReplyTo.parse(primary.reply_to),
    )


def _room_message(primary: Message, post: RoomPost, agent: str) -> NewMessage:
    return NewMessage(
        agent=agent,
        message=post.message,
        channel=ROOM,
        sender=primary.agent,
        from_agent=primary.agent,
        conversation_id=primary.conversation_id,
        conversation_at=primary.began_at,
        parent_id=primary.message_id,
        hop=primary.hop + 1,
        team_id=post.team_id,
        hold_reason=post.hold_reason,
    )


def _write_history(tx: Transaction, agent: str, primary: Message, outcome: Outcome) -> None:
    """Write the agent's texts into the history; those of others are there since they arrived."""
    texts = (
        [(primary.channel, outcome.transcript)]
        if outcome.transcript is not None
        else _written_texts(primary, outcome)
    )
    written: list[dict[str, object]] = [
        {
            "agent": agent,
            "role": "assistant",
            "channel": channel,
            "sender": agent,
            "message_id": primary.message_id,
            "content": text,
            "now": tx.now,
        }
        for channel, text in texts
    ]
    tx.write_each(INSERT_HISTORY, written)


def _written_texts(primary: Message, outcome: Outcome) -> list[tuple[str, str]]:
    return [
        *((primary.channel, answer.message) for answer in outcome.answers),
        *((INTERNAL, f"@{new.agent}: {new.message}") for new in outcome.handoffs),
        *((ROOM, post.message) for post in outcome.room_posts),
    ]
