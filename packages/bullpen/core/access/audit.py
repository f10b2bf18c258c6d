"""The audit log: who did what over the API, and what was refused to whom."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import bindparam, insert, select

from bullpen.core.access.key import Key
from bullpen.core.models import AUDIT_LOG
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction

A = AUDIT_LOG.c

DONE = "done"

INSERT: Statement[None] = Statement(
    insert(AUDIT_LOG).values(
        {column.name: bindparam(column.name) for column in A if column.name != "id"}
    )
)

_COLUMNS = (
    *(A.id, A.key_id, A.key_name, A.action, A.target, A.outcome, A.request_id, A.address),
    A.created_at,
)
AuditTuple = tuple[int, str, str, str, str, str, str, str, int]

PAGE: Statement[AuditTuple] = Statement(
    select(*_COLUMNS)
    .where(A.id < bindparam("before"))
    .order_by(A.id.desc())
    .limit(bindparam("limit"))
)

SINCE: Statement[AuditTuple] = Statement(
    select(*_COLUMNS).where(A.id > bindparam("since")).order_by(A.id).limit(bindparam("limit"))
)


@dataclass(frozen=True, slots=True)
class Deed:
    """One line of the log."""

    id: int
    key_id: str
    key_name: str
    action: str
    target: str
    outcome: str
    request_id: str
    address: str
    created_at: int


def record(
    tx: Transaction,
    key: Key,
    action: str,
    target: str,
    *,
    outcome: str = DONE,
    request_id: str = "",
    address: str = "",
) -> None:
    """Write it down, in the transaction of what was done."""
    values: dict[str, object] = {"key_id": key.id, "key_name": key.name, "created_at": tx.now}
    values.update(action=action, target=target, outcome=outcome)
    tx.write(INSERT, {**values, "request_id": request_id, "address": address})


def audit_page(tx: Transaction, before: int, limit: int) -> list[Deed]:
    """The newest lines before this one, the newest first."""
    return [Deed(*row) for row in tx.all(PAGE, {"before": before, "limit": limit})]


def audit_since(tx: Transaction, since: int, limit: int) -> list[Deed]:
    """The next lines after this one, the oldest first."""
    return [Deed(*row) for row in tx.all(SINCE, {"since": since, "limit": limit})]
