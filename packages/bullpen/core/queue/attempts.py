"""Attempts as they are looked at: one row for each run that has ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache

from sqlalchemy import bindparam, select

from bullpen.core.models import ATTEMPTS
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import check_text

A = ATTEMPTS.c


@dataclass(frozen=True, slots=True)
class Attempt:
    """A run that has ended. The fields are in the order of their columns."""

    id: int
    message_id: str
    messages: int
    agent: str
    worker: str
    outcome: str
    error_kind: str | None
    error: str | None
    fingerprint: str | None
    retry_count: int
    provider: str | None
    model: str | None
    input_tokens: int
    output_tokens: int
    cost: float
    conversation_id: str
    hop: int
    team_id: str | None
    channel: str
    enqueued_at: int
    claimed_at: int
    started_at: int
    finished_at: int


FILTERS = ("agent", "outcome", "error_kind", "message_id", "conversation_id")

_COLUMNS = tuple(A[each.name] for each in fields(Attempt))


@cache
def _page(names: frozenset[str], *, since: bool) -> Statement[tuple[object, ...]]:
    which = [A[name] == bindparam(name) for name in sorted(names)]
    order = A.id.desc()
    if since:
        which.append(A.id > bindparam("since"))
        order = A.id.asc()
    return Statement(select(*_COLUMNS).where(*which).order_by(order).limit(bindparam("limit")))


def browse_attempts(
    tx: Transaction, wanted: Mapping[str, str | None], since: int | None, limit: int
) -> list[Attempt]:
    """The next ones after this number; without one the newest, the newest first.

    `wanted` has what they have in common, of FILTERS; None is anything.
    """
    given = {name: wanted[name] for name in FILTERS if wanted.get(name) is not None}
    for value in given.values():
        check_text(str(value), tx.settings.message_bytes, "what is looked for")
    values: dict[str, object] = {**given, "limit": limit}
    if since is not None:
        values["since"] = since
    rows = tx.all(_page(frozenset(given), since=since is not None), values)
    return [attempt(row) for row in rows]


def attempt(row: tuple[object, ...]) -> Attempt:
    """A row, in the order of the fields."""
    return Attempt(*row)  # type: ignore[arg-type]
