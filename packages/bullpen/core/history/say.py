"""Writes down what was said to an agent, by it, or about its answers."""

from __future__ import annotations

from sqlalchemy import bindparam, insert

from bullpen.core.models import AGENT_MESSAGES
from bullpen.core.store.statement import Statement

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
