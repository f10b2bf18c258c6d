"""Attempts as they are looked at: one row for each run that has ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from bullpen.core.models import ATTEMPTS
from bullpen.core.store.listing import MAX_ROW_ID, TablePager
from bullpen.core.store.transaction import Transaction


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


ATTEMPT_LISTING = TablePager(ATTEMPTS, [each.name for each in fields(Attempt)])


def list_attempts(
    tx: Transaction,
    wanted: Mapping[str, object],
    since: int | None,
    limit: int,
    *,
    upto: int = MAX_ROW_ID,
) -> list[Attempt]:
    """The next ones after this number, up to another; without one the newest first.

    `wanted` has what they have in common, by the names of columns; None is anything.
    """
    return [attempt_from_row(row) for row in ATTEMPT_LISTING.page(tx, wanted, since, limit, upto)]


def attempt_from_row(row: tuple[object, ...]) -> Attempt:
    """A row, in the order of the fields."""
    return Attempt(*row)  # type: ignore[arg-type]
