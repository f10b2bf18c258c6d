"""The audit log: allowed and refused actions over the API, and the keys that were used."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import bindparam, insert

from bullpen.core.access.keys import Key
from bullpen.core.models import AUDIT_LOG
from bullpen.core.store.paging import MAX_ROW_ID, TablePager
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction

A = AUDIT_LOG.c

OUTCOME_DONE = "done"

INSERT: Statement[None] = Statement(
    lambda: insert(AUDIT_LOG).values(
        {column.name: bindparam(column.name) for column in A if column.name != "id"}
    )
)


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One entry of the log."""

    id: int
    key_id: str
    key_name: str
    action: str
    target: str
    outcome: str
    request_id: str
    address: str
    created_at: int


AUDIT_PAGER = TablePager(AUDIT_LOG, AuditEntry)


def record_audit(
    tx: Transaction,
    key: Key,
    action: str,
    target: str,
    *,
    outcome: str = OUTCOME_DONE,
    request_id: str = "",
    address: str = "",
) -> None:
    """Append an entry, in the transaction of the action itself."""
    values: dict[str, object] = {"key_id": key.id, "key_name": key.name, "created_at": tx.now}
    values.update(action=action, target=target, outcome=outcome)
    tx.write(INSERT, {**values, "request_id": request_id, "address": address})


def list_audit_entries(
    tx: Transaction, since: int | None, limit: int, upto: int = MAX_ROW_ID
) -> list[AuditEntry]:
    """The entries after an id, up to another; without one, the newest entries, newest first."""
    return AUDIT_PAGER.page(tx, {}, since, limit, upto)
