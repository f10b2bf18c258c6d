"""Writes the history of agents and rooms, in the transaction of the message or post itself."""

from __future__ import annotations

from sqlalchemy import bindparam, insert

from bullpen.core.events.append import append_event
from bullpen.core.events.company import RoomPosted
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


def insert_post(tx: Transaction, team: str, author: str, text: str) -> int:
    """Write a post into the room's history; returns its id."""
    row = tx.one(INSERT_POST, {"team": team, "agent": author, "message": text, "now": tx.now})
    assert row is not None
    append_event(tx, RoomPosted(team=team, post=row[0], author=author))
    return row[0]
