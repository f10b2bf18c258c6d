"""Posts in a team's room."""

from __future__ import annotations

from sqlalchemy import bindparam, insert

from bullpen.core.events.append import EventType, append_event
from bullpen.core.models import CHAT_MESSAGES
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction

POST: Statement[tuple[int]] = Statement(
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


def keep_post(tx: Transaction, team: str, author: str, text: str) -> int:
    """Write a post into the room's history; gives its number."""
    row = tx.one(POST, {"team": team, "agent": author, "message": text, "now": tx.now})
    assert row is not None
    append_event(tx, EventType.ROOM_POSTED, team=team, post=row[0], author=author)
    return row[0]
