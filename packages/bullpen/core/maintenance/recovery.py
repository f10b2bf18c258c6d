"""Recovery jobs: expired leases, deadlines, deliveries, aggregates and dead workers."""

from __future__ import annotations

import logging
from functools import partial

from sqlalchemy import bindparam, select

from bullpen.core.answers.aggregate import (
    is_at_rest,
    list_due_aggregates,
    lock_conversation,
    send_aggregate,
)
from bullpen.core.answers.leases import end_expired_claims
from bullpen.core.background import count_live_workers, delete_lost_workers
from bullpen.core.events.append import append_event
from bullpen.core.events.conversation import TeamChainEnd
from bullpen.core.events.system import WorkerLost
from bullpen.core.maintenance.retention import BATCH_ROWS, in_batches
from bullpen.core.message import PULL_CHANNELS
from bullpen.core.models import RESPONSES
from bullpen.core.models.base import const
from bullpen.core.outbox.hold import find_hold
from bullpen.core.outbox.recovery import tell_overdue
from bullpen.core.outbox.transitions import (
    expire_response,
    mark_response_unknown,
    move_response,
    pending,
)
from bullpen.core.queue.claim import has_claimable
from bullpen.core.queue.timers import run_timers
from bullpen.core.states import ResponseState
from bullpen.core.store.base import Store
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import format_count

log = logging.getLogger(__name__)

PROCESSOR_KIND = "processor"

R = RESPONSES.c

NEXT_CHANNEL: Statement[tuple[str]] = Statement(
    lambda: (
        select(R.channel)
        .where(pending(), R.channel > bindparam("after"))
        .order_by(R.channel)
        .limit(const(1))
    )
)

# Reads the pending responses of one channel from their index, which has every column in question.
EXPIRED_RESPONSES: Statement[tuple[int]] = Statement(
    lambda: (
        select(R.id)
        .where(
            R.channel == bindparam("channel"),
            pending(),
            R.available_at <= bindparam("now"),
            R.expires_at <= bindparam("now"),
        )
        .limit(const(BATCH_ROWS))
    )
)

ABANDONED_RESPONSES: Statement[tuple[int]] = Statement(
    lambda: (
        select(R.id)
        .where(
            R.channel == bindparam("channel"),
            pending(),
            R.available_at <= bindparam("now"),
            R.sending,
        )
        .limit(const(BATCH_ROWS))
        .with_for_update(skip_locked=True)
    )
)


def recover_expired_claims(store: Store) -> str:
    """Release the messages of claims whose lease has expired."""
    return f"{format_count(end_expired_claims(store), 'expired claim')} released"


def run_all_timers(store: Store) -> str:
    """Make delayed messages ready, expire those past their deadline, and resume waiting lanes."""
    return f"{format_count(in_batches(store, run_timers), 'timer')} fired"


def end_stale_deliveries(store: Store) -> str:
    """End responses that expired or whose channel process stopped; none while the store is held."""
    with store.read() as tx:
        if find_hold(tx) is not None:
            return "on hold: no response expires"
    total = 0
    told = in_batches(store, partial(tell_overdue, limit=BATCH_ROWS))
    channel = _next_channel(store, "")
    while channel is not None:
        total += in_batches(store, partial(_end_batch, channel=channel))
        channel = _next_channel(store, channel)
    unknown = f", {told} unknown" if told else ""
    return f"{format_count(total, 'response')} ended{unknown}"


def _next_channel(store: Store, after: str) -> str | None:
    with store.read() as tx:
        row = tx.one(NEXT_CHANNEL, {"after": after})
    return None if row is None else row[0]


def _end_batch(tx: Transaction, channel: str) -> int:
    values = {"channel": channel, "now": tx.now}
    lost = tx.all(ABANDONED_RESPONSES, values)
    for (response,) in lost:
        mark_response_unknown(tx, response, "the channel process stopped while it sent a part")
    over = tx.all(EXPIRED_RESPONSES, values)
    for (response,) in over:
        if channel in PULL_CHANNELS:
            move_response(tx, response, ResponseState.PENDING, ResponseState.ACKED)
        else:
            expire_response(tx, response)
    return len(lost) + len(over)


def send_due_aggregates(store: Store) -> str:
    """Send aggregates that are due and were not sent by a run."""
    with store.read() as tx:
        due = list_due_aggregates(tx)
    sent = 0
    for conversation in due:
        with store.write() as tx:
            lock_conversation(tx, conversation)
            aggregate = send_aggregate(tx, conversation)
            if aggregate is None:
                continue
            sent += 1
            if is_at_rest(tx, conversation):
                team, answers = aggregate.to.team_id, aggregate.answers
                append_event(tx, TeamChainEnd(aggregate.to, team=team, answers=answers))
    return f"{format_count(sent, 'answer')} sent"


def check_workers(store: Store) -> str:
    """Remove workers that stopped responding; warn if messages are pending without a processor."""
    with store.write(durable=False) as tx:
        alive = count_live_workers(tx)
        if not alive:
            # This process is registered as well: all are late because the machine slept.
            return "no worker seen, not even this one: checking again"
        lost = delete_lost_workers(tx)
        for each in lost:
            lost_worker = WorkerLost(
                kind=each.kind, host=each.host, pid=each.pid, silent_seconds=each.silent_seconds
            )
            append_event(tx, lost_worker)
        waiting = has_claimable(tx)
    for each in lost:
        log.warning(
            "lost a %s: process %d on %s not seen for %d s",
            *(each.kind, each.pid, each.host, each.silent_seconds),
        )
    if waiting and PROCESSOR_KIND not in alive:
        log.warning("messages are pending but no processor is running. Next: bullpen up")
    counts = ", ".join(f"{count} {kind}" for kind, count in alive.items())
    return f"{counts}; {len(lost)} lost"
