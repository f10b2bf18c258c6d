"""Release a restored home: responses, schedules and heartbeats resume.

An interrupted release can be repeated, because the hold ends with its last transaction.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from sqlalchemy import bindparam, func, select

from bullpen.core.channels.health import list_health
from bullpen.core.heartbeats import run as heartbeats
from bullpen.core.models import HEARTBEATS, SCHEDULES
from bullpen.core.models.base import const
from bullpen.core.outbox.hold import Hold, end_hold, find_hold
from bullpen.core.outbox.manage import ChannelBacklog, drop_old, extend_expiry, list_backlog
from bullpen.core.schedules import fire as schedules
from bullpen.core.store.base import Store
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction

TOO_OLD_REASON = "too old when the restored home was released"

SCHEDULES_DUE: Statement[tuple[int]] = Statement(
    lambda: select(func.count()).where(
        SCHEDULES.c.state == const("active"), SCHEDULES.c.due_at <= bindparam("now")
    )
)
HEARTBEATS_DUE: Statement[tuple[int]] = Statement(
    lambda: select(func.count()).where(
        HEARTBEATS.c.state == const("on"), HEARTBEATS.c.due_at <= bindparam("now")
    )
)


@dataclass(frozen=True, slots=True)
class HeldWork:
    """The work that a hold keeps back."""

    hold: Hold
    responses: tuple[ChannelBacklog, ...]
    """By channel, for channels with a client. Responses that people fetch are not held."""
    schedules: int
    """Schedules that are due. Their missed runs are recorded and skipped."""
    heartbeats: int

    @property
    def count(self) -> int:
        """The number of held responses."""
        return sum(each.count for each in self.responses)

    @property
    def old(self) -> int:
        """The number of held responses that are older than the given time."""
        return sum(each.old for each in self.responses)


def find_held(tx: Transaction, before: int = 0) -> HeldWork | None:
    """Find the held work; None without a hold. Responses from before `before` count as old."""
    hold = find_hold(tx)
    if hold is None:
        return None
    return HeldWork(
        hold,
        tuple(each for each in list_backlog(tx, before) if each.sent),
        _count(tx, SCHEDULES_DUE),
        _count(tx, HEARTBEATS_DUE),
    )


def release_hold(store: Store, before: int = 0) -> HeldWork | None:
    """End the hold and drop responses from before this time; return the work that was held.

    The time on hold does not count: responses get their full time for delivery, and schedules and
    heartbeats resume from now, without their missed runs.
    """
    with store.read() as tx:
        found, channels, now = find_held(tx, before), list_backlog(tx), tx.now
    if found is None:
        return None
    for each in found.responses:
        _repeat_until_none(
            store, partial(drop_old, channel=each.channel, before=before, reason=TOO_OLD_REASON)
        )
    for channel in channels:
        _repeat_until_none(store, partial(extend_expiry, channel=channel.channel, now=now))
    schedules.skip_missed(store)
    with store.write() as tx:
        heartbeats.skip_missed(tx)
        end_hold(tx)
        for topic in ("schedules", "heartbeats"):
            tx.wake(topic)
        served = {each.channel for each in list_health(tx)}
        for name in served | {each.channel for each in found.responses}:
            tx.wake(f"responses:{name}")
    return found


def _repeat_until_none(store: Store, step: Callable[[Transaction], int]) -> None:
    """Repeat a step until it finds no rows. It ends, because new rows do not match."""
    while True:
        with store.write() as tx:
            if step(tx) == 0:
                return


def _count(tx: Transaction, statement: Statement[tuple[int]]) -> int:
    row = tx.one(statement, {"now": tx.now})
    return 0 if row is None else row[0]
