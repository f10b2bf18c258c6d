"""The audit log: who did what over the API, and what was refused to whom."""

from __future__ import annotations

from dataclasses import dataclass, fields

from sqlalchemy import bindparam, insert

from bullpen.core.access.key import Key
from bullpen.core.models import AUDIT_LOG
from bullpen.core.store.listing import EVERY, Listing
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction

A = AUDIT_LOG.c

DONE = "done"

INSERT: Statement[None] = Statement(
    lambda: insert(AUDIT_LOG).values(
        {column.name: bindparam(column.name) for column in A if column.name != "id"}
    )
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


LISTING = Listing(AUDIT_LOG, [each.name for each in fields(Deed)])


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


def browse_audit(tx: Transaction, since: int | None, limit: int, upto: int = EVERY) -> list[Deed]:
    """The next lines after this one, up to another; without one the newest, the newest first."""
    rows = LISTING.page(tx, {}, since, limit, upto)
    return [Deed(*row) for row in rows]  # type: ignore[arg-type]
