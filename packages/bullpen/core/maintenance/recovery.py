"""Recovery jobs: expired leases, deadlines, deliveries, aggregates and dead workers."""

from __future__ import annotations

import logging
from functools import partial

from sqlalchemy import ColumnElement, bindparam, select

from bullpen.core.answers.aggregate import (
    is_at_rest,
    list_due_aggregates,
    lock_conversation,
    send_aggregate,
)
from bullpen.core.answers.fail import expire_leases
from bullpen.core.background import count_live_workers, delete_lost_workers
from bullpen.core.events.append import append_event
from bullpen.core.events.conversation import TeamChainEnd
from bullpen.core.events.system import WorkerLost
from bullpen.core.maintenance.retention import in_batches
from bullpen.core.message import PULL_CHANNELS
from bullpen.core.models import RESPONSES
from bullpen.core.models.base import const
from bullpen.core.outbox.delivery import expire_response, mark_response_unknown, move_response
from bullpen.core.outbox.hold import find_hold
from bullpen.core.queue.claim import has_claimable
from bullpen.core.queue.timers import run_timers
from bullpen.core.states import ResponseState
from bullpen.core.store.base import Store
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction


def run_all_timers(store: Store) -> str:
    """Make ready, expire, and let lanes go on."""
    return f"{in_batches(store, run_timers)} moved"


R = RESPONSES.c

BATCH = 500


def _pending() -> ColumnElement[bool]:
    return R.status == const(ResponseState.PENDING.value)


NEXT_CHANNEL: Statement[tuple[str]] = Statement(
    lambda: (
        select(R.channel)
        .where(_pending(), R.channel > bindparam("after"))
        .order_by(R.channel)
        .limit(const(1))
    )
)

# Walks the waiting responses of one channel in their index, which has all that is asked for.
EXPIRED_RESPONSES: Statement[tuple[int]] = Statement(
    lambda: (
        select(R.id)
        .where(
            R.channel == bindparam("channel"),
            _pending(),
            R.available_at <= bindparam("now"),
            R.expires_at <= bindparam("now"),
        )
        .limit(const(BATCH))
    )
)

ABANDONED_RESPONSES: Statement[tuple[int]] = Statement(
    lambda: (
        select(R.id)
        .where(
            R.channel == bindparam("channel"),
            _pending(),
            R.available_at <= bindparam("now"),
            R.sending,
        )
        .limit(const(BATCH))
        .with_for_update(skip_locked=True)
    )
)


def end_stale_deliveries(store: Store) -> str:
    """Look at every channel that has something waiting; nothing runs out while it is held."""
    with store.read() as tx:
        if find_hold(tx) is not None:
            return "held: nothing ends before it is let go"
    total = 0
    channel = _next_channel(store, "")
    while channel is not None:
        total += in_batches(store, partial(_end_batch, channel=channel))
        channel = _next_channel(store, channel)
    return f"{total} ended"


def _next_channel(store: Store, after: str) -> str | None:
    with store.read() as tx:
        row = tx.one(NEXT_CHANNEL, {"after": after})
    return None if row is None else row[0]


def _end_batch(tx: Transaction, channel: str) -> int:
    values = {"channel": channel, "now": tx.now}
    lost = tx.all(ABANDONED_RESPONSES, values)
    for (response,) in lost:
        mark_response_unknown(tx, response, "its sender died while a part was on its way")
    over = tx.all(EXPIRED_RESPONSES, values)
    for (response,) in over:
        if channel in PULL_CHANNELS:
            move_response(tx, response, ResponseState.PENDING, ResponseState.ACKED)
        else:
            expire_response(tx, response)
    return len(lost) + len(over)


def send_due_aggregates(store: Store) -> str:
    """Send what is due; a finished run sends its own team's at once, this is for all others."""
    with store.read() as tx:
        due = list_due_aggregates(tx)
    sent = 0
    for conversation in due:
        with store.write() as tx:
            lock_conversation(tx, conversation)
            found = send_aggregate(tx, conversation)
            if found is None:
                continue
            sent += 1
            if is_at_rest(tx, conversation):
                team, answers = found.to.team_id, found.answers
                append_event(tx, TeamChainEnd(found.to, team=team, answers=answers))
    return f"{sent} answers sent"


def recover_expired_claims(store: Store) -> str:
    """Reap the expired leases."""
    with store.write(durable=False) as tx:
        return f"{expire_leases(tx)} claims taken back"


log = logging.getLogger(__name__)

PROCESSOR_KIND = "processor"


def check_workers(store: Store) -> str:
    """Forget the silent, and warn if messages wait for nobody."""
    with store.write(durable=False) as tx:
        alive = count_live_workers(tx)
        if not alive:
            # Whoever runs this is in the register: all were silent, for the machine slept.
            return "nobody was heard of: they are asked once more"
        lost = delete_lost_workers(tx)
        for each in lost:
            lost_worker = WorkerLost(
                kind=each.kind, host=each.host, pid=each.pid, silent_seconds=each.silent_seconds
            )
            append_event(tx, lost_worker)
        waiting = has_claimable(tx)
    for each in lost:
        log.warning(
            "a %s is lost: process %d on %s was not heard of for %d s",
            *(each.kind, each.pid, each.host, each.silent_seconds),
        )
    if waiting and PROCESSOR_KIND not in alive:
        log.warning("messages wait, and no processor is alive: bullpen up, or bullpen status")
    found = ", ".join(f"{count} {kind}" for kind, count in alive.items())
    return f"{found}; {len(lost)} lost"
