"""Write the history of agents and rooms, in the transaction of the message or post itself."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import bindparam, insert

from bullpen.core.events.append import append_event
from bullpen.core.events.company import RoomPosted
from bullpen.core.ids import SYSTEM_AUTHOR
from bullpen.core.message import INTERNAL, NewMessage
from bullpen.core.models import AGENT_MESSAGES, CHAT_MESSAGES
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction

INSERT_HISTORY: Statement[None] = Statement(
    lambda: insert(AGENT_MESSAGES).values(
        agent_id=bindparam("agent"),
        role=bindparam("role"),
        channel=bindparam("channel"),
        sender=bindparam("sender"),
        message_id=bindparam("message_id"),
        content=bindparam("content"),
        created_at=bindparam("now"),
    )
)

INSERT_POST: Statement[tuple[int]] = Statement(
    lambda: (
        insert(CHAT_MESSAGES)
        .values(
            team_id=bindparam("team"),
            from_agent=bindparam("agent"),
            message=bindparam("message"),
            created_at=bindparam("now"),
        )
        .returning(CHAT_MESSAGES.c.id)
    )
)


def record_messages(tx: Transaction, stored: Iterable[tuple[NewMessage, str]]) -> None:
    """Write new messages with their ids into the history of their agents.

    This is the only row of role `user` for a message, whatever happens to it later.
    """
    rows = [
        {
            "agent": new.agent,
            "role": "user",
            "channel": new.channel,
            "sender": new.from_agent or new.sender,
            "message_id": message_id,
            "content": new.message,
            "now": tx.now,
        }
        for new, message_id in stored
    ]
    tx.write_each(INSERT_HISTORY, rows)


def record_notice(tx: Transaction, agent: str, channel: str, message_id: str, text: str) -> None:
    """Write a notice that a person got about their message."""
    _record_own_text(tx, agent, "assistant", channel, message_id, text)


def record_note(tx: Transaction, agent: str, message_id: str, text: str) -> None:
    """Write a note about the agent's last answer for its next run."""
    _record_own_text(tx, agent, "note", INTERNAL, message_id, text)


def _record_own_text(
    tx: Transaction, agent: str, role: str, channel: str, message_id: str, text: str
) -> None:
    values = {"agent": agent, "role": role, "channel": channel, "message_id": message_id}
    tx.write(INSERT_HISTORY, {**values, "sender": SYSTEM_AUTHOR, "content": text, "now": tx.now})


def insert_post(tx: Transaction, team: str, author: str, text: str) -> int:
    """Write a post into the room's history; returns its id."""
    row = tx.one(INSERT_POST, {"team": team, "agent": author, "message": text, "now": tx.now})
    assert row is not None
    append_event(tx, RoomPosted(team=team, post=row[0], author=author))
    return row[0]
