"""The identity of a store: an id that its schema was created with, the same in every backup.

Reports use it to recognise that their files are about another database.
"""

from __future__ import annotations

from sqlalchemy import select

from bullpen.core.errors import StoreMissing
from bullpen.core.models import STORE_IDENTITY
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction

SELECT_IDENTITY: Statement[tuple[str]] = Statement(
    lambda: select(STORE_IDENTITY.c.id).order_by(STORE_IDENTITY.c.created_at)
)


def store_id(tx: Transaction) -> str:
    """The id of this store."""
    row = tx.one(SELECT_IDENTITY, {})
    if row is None:
        raise StoreMissing("the database has lost its identity")
    return row[0]
