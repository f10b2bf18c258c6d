"""Files that arrive after their message: the message waits for them with a delay.

The message is stored with a note that its files are missing. `attach` replaces the note, and
`release` ends the delay. If neither happens, for example because the process was killed, the delay
ends anyway, and the note says that the files are missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, and_, bindparam, false, select, true, update

from bullpen.core.file_records import record_uses
from bullpen.core.message import INTERNAL_CHANNELS, ROOM, Priority, ReplyTo, reply_place
from bullpen.core.models import AGENT_MESSAGES, CHAT_MESSAGES, MESSAGES
from bullpen.core.models.archive import in_conversation
from bullpen.core.models.base import const, encode_list
from bullpen.core.queue.lanes import lock_lanes, refresh_lane, sort_key
from bullpen.core.states import MessageState
from bullpen.core.store.statement import Statement, columns
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import check_text

M, H, P = MESSAGES.c, AGENT_MESSAGES.c, CHAT_MESSAGES.c


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A message that waits for its files."""

    id: int
    message_id: str
    channel: str
    sender: str
    sender_id: str | None
    message: str
    agent: str
    team_id: str | None
    conversation_id: str
    reply_to: str | None
    priority: int
    deadline: int | None
    due_at: int
    available_at: int
    created_at: int


def _is_waiting() -> ColumnElement[bool]:
    """Whether it is delayed, as it was when it was stored, and not after a failure."""
    return and_(
        M.status.in_((const(MessageState.PENDING.value), const(MessageState.HELD.value))),
        M.ready == false(),
        M.retry_count == const(0),
        M.crash_count == const(0),
    )


SELECT_AGENTS: Statement[tuple[str]] = Statement(
    lambda: select(M.agent).distinct().where(in_conversation(), M.parent_id.is_(None))
)

SELECT_WAITING: Statement[_Waiting] = Statement(
    lambda: (
        select(*columns(_Waiting, MESSAGES))
        .where(in_conversation(), M.parent_id.is_(None), M.from_agent.is_(None), _is_waiting())
        .order_by(M.id)
    ),
    _Waiting,
)

SET_CONTENT: Statement[None] = Statement(
    lambda: (
        update(MESSAGES)
        .where(M.id == bindparam("message"))
        .values(message=bindparam("text"), files=bindparam("names"), updated_at=bindparam("now"))
    )
)

SET_HISTORY: Statement[None] = Statement(
    lambda: (
        update(AGENT_MESSAGES)
        .where(
            # Read backwards by the index on the agent: the row is one of the newest.
            H.id
            == select(H.id)
            .where(
                H.agent_id == bindparam("agent"),
                H.message_id == bindparam("message_id"),
                H.role == const("user"),
            )
            .order_by(H.id.desc())
            .limit(const(1))
            .scalar_subquery()
        )
        .values(content=bindparam("text"))
    )
)

SET_POST: Statement[None] = Statement(
    lambda: (
        update(CHAT_MESSAGES)
        .where(
            # Read backwards by the index on the team: the post is one of the newest.
            P.id
            == select(P.id)
            .where(P.team_id == bindparam("team"), P.message == bindparam("old"))
            .order_by(P.id.desc())
            .limit(const(1))
            .scalar_subquery()
        )
        .values(message=bindparam("text"))
    )
)

END_DELAY: Statement[None] = Statement(
    lambda: (
        update(MESSAGES)
        .where(M.id == bindparam("message"))
        .values(
            ready=true(),
            due_at=bindparam("due"),
            sort_key=bindparam("key"),
            available_at=bindparam("now"),
            updated_at=bindparam("now"),
        )
    )
)


def attach(
    tx: Transaction, conversation_id: str, missing: str, note: str, files: Sequence[str]
) -> bool:
    """Add files to the waiting messages of a conversation; `note` replaces the note `missing`.

    Returns whether a message still waited. The text of an edit in the meantime is kept.
    """
    waiting = _lock_waiting(tx, [conversation_id])
    for old, team in {(each.message, each.team_id) for each in waiting if each.channel == ROOM}:
        assert team is not None
        change_post(tx, team, old, _replace_note(old, missing, note, has_files=bool(files)))
    for each in waiting:
        text = _replace_note(each.message, missing, note, has_files=bool(files))
        check_text(text, tx.settings.message_bytes)
        names = encode_list(files) if files else None
        tx.write(SET_CONTENT, {"message": each.id, "text": text, "names": names, "now": tx.now})
        history = {"agent": each.agent, "message_id": each.message_id, "text": text}
        tx.write(SET_HISTORY, history)
        record_uses(tx, files, each.conversation_id, each.agent, _place(each))
    return bool(waiting)


def change_post(tx: Transaction, team: str, old: str, text: str) -> None:
    """Change the newest post of a room with this text."""
    tx.write(SET_POST, {"team": team, "old": old, "text": text})


def waits(tx: Transaction, conversation_id: str) -> bool:
    """Whether a message of this conversation waits."""
    return tx.one(SELECT_WAITING, {"conversation": conversation_id}) is not None


def release(tx: Transaction, conversation_ids: Sequence[str]) -> int:
    """End the delay of the waiting messages of these conversations; returns their number.

    They return to the places in their lanes that they would have had without the delay.
    """
    waiting = _lock_waiting(tx, conversation_ids)
    lanes = lock_lanes(tx, [each.agent for each in waiting]) if waiting else {}
    for each in waiting:
        due = each.due_at - max(0, each.available_at - each.created_at)
        ordering = lanes[each.agent].ordering
        key = sort_key(ordering, due, Priority(each.priority).weight, each.deadline)
        tx.write(END_DELAY, {"message": each.id, "due": due, "key": key, "now": tx.now})
    for agent in lanes:
        refresh_lane(tx, agent, 0)
    return len(waiting)


def _lock_waiting(tx: Transaction, conversation_ids: Sequence[str]) -> list[_Waiting]:
    """The waiting messages of these conversations, with their lanes locked."""
    values = [{"conversation": each} for each in dict.fromkeys(conversation_ids)]
    agents = {agent for each in values for (agent,) in tx.all(SELECT_AGENTS, each)}
    if not agents:
        return []
    lock_lanes(tx, agents)
    return [row for each in values for row in tx.all(SELECT_WAITING, each)]


def _replace_note(text: str, missing: str, note: str, *, has_files: bool) -> str:
    if missing in text:
        changed = text.replace(missing, note)
    elif note in text:
        changed = text  # attached before, by a process that was killed
    else:
        changed = f"{text}\n\n{note}"
    changed = changed.strip()
    # Only a message with files may be empty.
    return changed if changed or has_files else text


def _place(waiting: _Waiting) -> str | None:
    if waiting.channel in INTERNAL_CHANNELS:
        return None
    reply_to = None if waiting.reply_to is None else ReplyTo.parse(waiting.reply_to)
    return reply_place(waiting.channel, waiting.sender, waiting.sender_id, reply_to)
