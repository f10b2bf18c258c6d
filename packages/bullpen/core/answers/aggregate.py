"""Aggregates: the answers of a team with one common answer, kept until the conversation ends."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlalchemy import bindparam, delete, func, insert, literal_column, select

from bullpen.core.answers.attachments import shorten_to_file
from bullpen.core.clock import MINUTE
from bullpen.core.message import Answer, Message
from bullpen.core.models import GATHERED, MESSAGES
from bullpen.core.models.archive import in_conversation
from bullpen.core.models.base import const, decode_texts, encode_list
from bullpen.core.outbox.notices import find_person_message
from bullpen.core.outbox.write import add_response
from bullpen.core.states import ACTIVE_STATES
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction

G = GATHERED.c

M = MESSAGES.c


@dataclass(frozen=True, slots=True)
class SentAggregate:
    """A sent aggregate: the answered message and the number of parts."""

    to: Message
    answers: int


# A conversation has no row to lock: its first message may be archived, or a post without a row.
LOCK_CONVERSATION: Statement[tuple[str]] = Statement(
    lambda: select(
        func.pg_advisory_xact_lock(
            func.hashtextextended(bindparam("conversation"), literal_column("0"))
        )
    )
)

INSERT_PART: Statement[None] = Statement(
    lambda: insert(GATHERED).values(
        conversation_id=bindparam("conversation"),
        message_id=bindparam("message_id"),
        agent=bindparam("agent"),
        message=bindparam("message"),
        files=bindparam("files"),
        created_at=bindparam("now"),
    )
)

# The transaction that deletes the parts also sends them.
TAKE_PARTS: Statement[tuple[int, str, str, str, str | None]] = Statement(
    lambda: (
        delete(GATHERED)
        .where(G.conversation_id == bindparam("conversation"))
        .returning(G.id, G.message_id, G.agent, G.message, G.files)
    )
)

SELECT_ACTIVE: Statement[tuple[int]] = Statement(
    lambda: (
        select(M.id)
        .where(
            in_conversation(),
            M.status.in_([const(state.value) for state in ACTIVE_STATES]),
        )
        .limit(const(1))
    )
)

SELECT_GATHERING: Statement[tuple[str, int]] = Statement(
    lambda: select(G.conversation_id, func.min(G.created_at)).group_by(G.conversation_id)
)

SELECT_LAST_PART: Statement[tuple[str]] = Statement(
    lambda: (
        select(G.message_id)
        .where(G.conversation_id == bindparam("conversation"))
        .order_by(G.id.desc())
        .limit(const(1))
    )
)


def lock_conversation(tx: Transaction, conversation_id: str) -> None:
    """Lock a conversation until the transaction ends; every transaction does so after its lanes.

    On SQLite the write lock is already held.
    """
    if tx.dialect == "postgresql":
        tx.one(LOCK_CONVERSATION, {"conversation": conversation_id})


def add_part(tx: Transaction, primary: Message, answer: Answer) -> None:
    """Store this answer as a part of the conversation's aggregate."""
    tx.write(
        INSERT_PART,
        {
            "conversation": primary.conversation_id,
            "message_id": primary.message_id,
            "agent": primary.agent,
            "message": answer.message,
            "files": encode_list(answer.files) if answer.files else None,
            "now": tx.now,
        },
    )


def is_at_rest(tx: Transaction, conversation_id: str) -> bool:
    """Whether no message of this conversation is pending or processing."""
    return tx.one(SELECT_ACTIVE, {"conversation": conversation_id}) is None


def send_aggregate(tx: Transaction, conversation_id: str) -> SentAggregate | None:
    """Send the stored parts as one answer; None if there are none."""
    last = tx.one(SELECT_LAST_PART, {"conversation": conversation_id})
    if last is None:
        return None
    to = find_person_message(tx, conversation_id) or find_person_message(tx, last[0])
    if to is None:
        return None  # the parts are kept if there is no address
    parts = sorted(tx.all(TAKE_PARTS, {"conversation": conversation_id}))
    if not parts:
        return None
    agents = {agent for _, _, agent, _, _ in parts}
    texts = [(agent, message) for _, _, agent, message, _ in parts if message]
    named = len(parts) > 1
    text = "\n\n".join(f"@{agent}: {message}" if named else message for agent, message in texts)
    name = f"answer_{conversation_id}"
    text, whole = shorten_to_file(text, tx.settings.answer_characters, tx.settings.files, name)
    files = dict.fromkeys(file for *_, names in parts for file in decode_texts(names))
    if len(agents) == 1:
        to = replace(to, agent=agents.pop())
    add_response(tx, to, Answer(message=text, files=(*files, *whole)))
    return SentAggregate(to, len(parts))


def list_due_aggregates(tx: Transaction) -> list[str]:
    """The finished conversations, and those whose first part has waited too long."""
    oldest = tx.now - tx.settings.aggregate_minutes * MINUTE
    waiting = tx.all(SELECT_GATHERING, {})
    return [name for name, since in waiting if since <= oldest or is_at_rest(tx, name)]
