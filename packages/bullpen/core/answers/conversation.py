"""A conversation: locked while it is decided whether it may go on, or has come to rest."""

from __future__ import annotations

from sqlalchemy import bindparam, func, literal_column, select

from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction

# It has no row of its own: that of its first message may be archived, and a room post has none.
LOCK_CONVERSATION: Statement[tuple[str]] = Statement(
    lambda: select(
        func.pg_advisory_xact_lock(
            func.hashtextextended(bindparam("conversation"), literal_column("0"))
        )
    )
)


def lock_conversation(tx: Transaction, conversation_id: str) -> None:
    """Let nobody else decide until the transaction ends. It comes after all locks of lanes.

    On SQLite the write lock is held from the start.
    """
    if tx.dialect == "postgresql":
        tx.one(LOCK_CONVERSATION, {"conversation": conversation_id})
