"""Watches for new dead letters: groups them by failure, records an event, notifies the owner."""

from __future__ import annotations

import logging
from collections import defaultdict

from sqlalchemy import ColumnElement, Subquery, and_, bindparam, func, select, update

from bullpen.core.clock import DAY, SECOND
from bullpen.core.events.append import append_event
from bullpen.core.events.system import DeadLettersGrew
from bullpen.core.models import MESSAGES, SYSTEM_AGENTS
from bullpen.core.models.base import const
from bullpen.core.outbox.notices import notify_owner
from bullpen.core.queue.attempts import fingerprint
from bullpen.core.queue.dead_letters import (
    DeadMessage,
    FailureGroup,
    add_to_failure_group,
    mark_owner_notified,
)
from bullpen.core.queue.manage import SELECT_MESSAGE
from bullpen.core.states import NEEDS_PERSON_STATES, MessageState
from bullpen.core.store.base import Store
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction

log = logging.getLogger(__name__)

JOB_NAME = "dead_letters"
BATCH = 500
MAX_BATCHES = 100
SETTLE_TIME = 5 * SECOND
"""How old a row must be: on PostgreSQL an earlier transaction may commit later."""
NOTICE_INTERVAL = DAY
"""Between two notices of one failure group; an older dead letter is not announced at all."""
MAX_ERROR_CHARS = 500

A = SYSTEM_AGENTS.c
M = MESSAGES.c

FIND_CURSOR: Statement[tuple[int]] = Statement(
    lambda: select(A.cursor).where(A.name == const(JOB_NAME))
)

ADVANCE_CURSOR: Statement[None] = Statement(
    lambda: (
        update(SYSTEM_AGENTS)
        .where(A.name == const(JOB_NAME), A.cursor == bindparam("seen"))
        .values(cursor=bindparam("upto"))
    )
)

# The first condition is that of the partial index, without which SQLite does not use it.


def _dead() -> ColumnElement[bool]:
    return and_(
        M.status.in_([const(state.value) for state in NEEDS_PERSON_STATES]),
        M.status == const(MessageState.DEAD.value),
    )


def _next_dead() -> Subquery:
    return (
        select(M.updated_at)
        .where(_dead(), M.updated_at > bindparam("after"), M.updated_at <= bindparam("settled"))
        .order_by(M.updated_at, M.id)
        .limit(const(BATCH))
        .subquery()
    )


NEXT_CURSOR: Statement[tuple[int | None]] = Statement(
    lambda: select(func.max(_next_dead().c.updated_at))
)

# All dead letters of one millisecond belong to one batch, which may then be larger.
NEW_DEAD_LETTERS: Statement[tuple[str, str, str | None, str | None, int]] = Statement(
    lambda: (
        select(M.message_id, M.agent, M.error_kind, M.last_error, M.updated_at)
        .where(_dead(), M.updated_at > bindparam("after"), M.updated_at <= bindparam("upto"))
        .order_by(M.updated_at, M.id)
    )
)

COUNT_DEAD: Statement[tuple[int]] = Statement(lambda: select(func.count()).where(_dead()))


def watch_dead_letters(store: Store) -> str:
    """Report the messages that died since the last run."""
    new, fingerprints = 0, set[str]()
    for _ in range(MAX_BATCHES):
        with store.write(durable=False) as tx:
            groups = _report_batch(tx)
        if not groups:
            break
        for group, deaths in groups:
            log.warning(
                "%d more dead letters of one cause, %d in all: %s: bullpen queue dead",
                *(len(deaths), group.deaths, group.error),
            )
            new += len(deaths)
            fingerprints.add(group.fingerprint)
    with store.read() as tx:
        row = tx.one(COUNT_DEAD, {})
    dead = 0 if row is None else row[0]
    causes = f", of {len(fingerprints)} causes" if fingerprints else ""
    return f"{dead} dead, {new} of them new{causes}"


def _report_batch(tx: Transaction) -> list[tuple[FailureGroup, list[DeadMessage]]]:
    """Count and announce the next batch, by failure group; empty if there is none."""
    reported = []
    for key, deaths in _take_batch(tx).items():
        group = add_to_failure_group(tx, key, deaths)
        _announce(tx, group, deaths)
        reported.append((group, deaths))
    return reported


def _take_batch(tx: Transaction) -> dict[str, list[DeadMessage]]:
    """The next dead messages by fingerprint; the cursor moves past them."""
    row = tx.one(FIND_CURSOR, {})
    cursor = 0 if row is None else row[0]
    if cursor > tx.now:  # the clock was set back
        tx.write(ADVANCE_CURSOR, {"seen": cursor, "upto": tx.now - SETTLE_TIME})
        cursor = tx.now - SETTLE_TIME
    last = tx.one(NEXT_CURSOR, {"after": cursor, "settled": tx.now - SETTLE_TIME})
    if last is None or last[0] is None:
        return {}
    # A process that lost the job's lease meanwhile comes second, and counts nothing.
    if tx.change(ADVANCE_CURSOR, {"seen": cursor, "upto": last[0]}) == 0:
        return {}
    batch: dict[str, list[DeadMessage]] = defaultdict(list)
    for message_id, agent, kind, error, at in tx.all(
        NEW_DEAD_LETTERS, {"after": cursor, "upto": last[0]}
    ):
        text = error or "nobody said why"
        death = DeadMessage(message_id, agent, kind or "unknown", text[:MAX_ERROR_CHARS], at)
        batch[fingerprint(text)].append(death)
    return batch


def _announce(tx: Transaction, group: FailureGroup, deaths: list[DeadMessage]) -> None:
    agents = sorted({each.agent for each in deaths})
    grew = DeadLettersGrew(
        fingerprint=group.fingerprint,
        kind=group.kind,
        error=group.error,
        deaths=group.deaths,
        new=len(deaths),
        agents=agents,
    )
    append_event(tx, grew)
    silent_since = tx.now - NOTICE_INTERVAL
    if group.last_at <= silent_since or (group.told_at or 0) > silent_since:
        return
    message = tx.one(SELECT_MESSAGE, {"message_id": deaths[-1].message_id})
    if message is None:
        return
    whom = ", ".join(f"@{agent}" for agent in agents)
    notify_owner(
        tx,
        message,
        f"{len(deaths)} more messages to {whom} could not be answered, {group.deaths} in all, "
        f"and the reason is the same ({group.kind}): {group.error}\n"
        "bullpen queue dead lists them, bullpen queue retry ID tries one again.",
    )
    mark_owner_notified(tx, group.fingerprint)
