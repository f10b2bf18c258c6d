"""let go: what a restored store holds back goes its way again, when its owner says so.

It may end in the middle and be begun again: until the last transaction all of it is held.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from sqlalchemy import bindparam, func, select

from bullpen.core.heartbeats import run as heartbeats
from bullpen.core.models import HEARTBEATS, SCHEDULES
from bullpen.core.models.base import const
from bullpen.core.outbox.hold import Hold, end_hold, find_hold
from bullpen.core.outbox.manage import ChannelBacklog, drop_old, extend_expiry, list_backlog
from bullpen.core.schedules import fire as schedules
from bullpen.core.store.base import Store
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction

TOO_OLD_REASON = "set aside: it was too old when it was let go"

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
    """What is held, as it is looked at before it is let go."""

    hold: Hold
    responses: tuple[ChannelBacklog, ...]
    """By channel, of those that a client sends; what lies where people read it is not held."""
    schedules: int
    """So many are due; what they missed is written down and not made up for."""
    heartbeats: int

    @property
    def count(self) -> int:
        """How many responses wait."""
        return sum(each.count for each in self.responses)

    @property
    def old(self) -> int:
        """How many of them are older than was asked for."""
        return sum(each.old for each in self.responses)


def find_held(tx: Transaction, before: int = 0) -> HeldWork | None:
    """What is held, if anything is; `before` is the moment that divides old from new."""
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
    """Let it all go, without what was made before this moment; gives what it was.

    What passed while it was held does not count: a response is worth delivering as if it came now,
    and schedules and hearts go on from now, without what they missed.
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
        for each in found.responses:
            tx.wake(f"responses:{each.channel}")
    return found


def _repeat_until_none(store: Store, step: Callable[[Transaction], int]) -> None:
    """Until there is no more: this ends, for what is made meanwhile is new."""
    while True:
        with store.write() as tx:
            if step(tx) == 0:
                return


def _count(tx: Transaction, statement: Statement[tuple[int]]) -> int:
    row = tx.one(statement, {"now": tx.now})
    return 0 if row is None else row[0]
