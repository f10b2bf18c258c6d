"""Dead letters by cause: counted each minute, listed at once; the owner is notified."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

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
    find_failure_group,
    list_failure_groups,
    mark_owner_notified,
)
from bullpen.core.queue.manage import SELECT_MESSAGE
from bullpen.core.states import NEEDS_PERSON_STATES, NO_REASON, MessageState
from bullpen.core.store.base import Store
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import format_count

log = logging.getLogger(__name__)

JOB_NAME = "dead_letters"
BATCH = 500
MAX_BATCHES = 100
SETTLE_TIME = 5 * SECOND
"""How old a row must be: on PostgreSQL an earlier transaction may commit later."""
NOTICE_INTERVAL = DAY
"""Between two notices of one failure group; an older dead letter is not announced at all."""
MAX_ERROR_CHARS = 500
MAX_UNCOUNTED = 5000
"""The most dead letters that `list_causes` counts itself."""

DeadLetterRow = tuple[str, str, str | None, str | None, int]
"""Message, agent, kind of error, error and time."""

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

UNCOUNTED_DEAD_LETTERS: Statement[DeadLetterRow] = Statement(
    lambda: (
        select(M.message_id, M.agent, M.error_kind, M.last_error, M.updated_at)
        .where(_dead(), M.updated_at > bindparam("after"))
        .order_by(M.updated_at, M.id)
        .limit(const(MAX_UNCOUNTED))
    )
)

# All dead letters of one millisecond belong to one batch, which may then be larger.
NEW_DEAD_LETTERS: Statement[DeadLetterRow] = Statement(
    lambda: (
        select(M.message_id, M.agent, M.error_kind, M.last_error, M.updated_at)
        .where(_dead(), M.updated_at > bindparam("after"), M.updated_at <= bindparam("upto"))
        .order_by(M.updated_at, M.id)
    )
)

COUNT_DEAD: Statement[tuple[int]] = Statement(lambda: select(func.count()).where(_dead()))


def watch_dead_letters(store: Store) -> str:
    """Report the messages that became dead letters since the last run."""
    new, fingerprints = 0, set[str]()
    for _ in range(MAX_BATCHES):
        with store.write(durable=False) as tx:
            groups = _report_batch(tx)
        if not groups:
            break
        for group, deaths in groups:
            log.warning(
                "%s with the same cause (%s): %s. Next: bullpen queue dead",
                *(_format_new(group, len(deaths), "dead letter"), group.kind, group.error),
            )
            new += len(deaths)
            fingerprints.add(group.fingerprint)
    with store.read() as tx:
        row = tx.one(COUNT_DEAD, {})
    dead = 0 if row is None else row[0]
    causes = f" ({format_count(len(fingerprints), 'cause')})" if fingerprints else ""
    return f"{format_count(dead, 'dead letter')}, {new} new{causes}"


def list_causes(tx: Transaction, limit: int) -> list[FailureGroup]:
    """The causes of dead letters, the latest first; those that are not counted yet included."""
    groups = {each.fingerprint: each for each in list_failure_groups(tx, limit)}
    for key, deaths in _group(tx.all(UNCOUNTED_DEAD_LETTERS, {"after": _cursor(tx)})).items():
        groups[key] = _with_deaths(groups.get(key) or find_failure_group(tx, key), key, deaths)
    newest = sorted(groups.values(), key=lambda each: (-each.last_at, each.fingerprint))
    return newest[:limit]


def _with_deaths(group: FailureGroup | None, key: str, deaths: list[DeadMessage]) -> FailureGroup:
    first, last = deaths[0], deaths[-1]
    if group is None:
        return FailureGroup(key, last.kind, last.error, len(deaths), first.at, last.at, None)
    total = group.deaths + len(deaths)
    return replace(group, kind=last.kind, error=last.error, deaths=total, last_at=last.at)


def _cursor(tx: Transaction) -> int:
    """Up to when dead letters are counted."""
    row = tx.one(FIND_CURSOR, {})
    return 0 if row is None else row[0]


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
    cursor = _cursor(tx)
    if cursor > tx.now:  # the clock was set back
        tx.write(ADVANCE_CURSOR, {"seen": cursor, "upto": tx.now - SETTLE_TIME})
        cursor = tx.now - SETTLE_TIME
    last = tx.one(NEXT_CURSOR, {"after": cursor, "settled": tx.now - SETTLE_TIME})
    if last is None or last[0] is None:
        return {}
    # A process that lost the job's lease meanwhile comes second, and counts nothing.
    if tx.change(ADVANCE_CURSOR, {"seen": cursor, "upto": last[0]}) == 0:
        return {}
    return _group(tx.all(NEW_DEAD_LETTERS, {"after": cursor, "upto": last[0]}))


def _group(rows: Sequence[DeadLetterRow]) -> dict[str, list[DeadMessage]]:
    """Dead messages by fingerprint, the oldest first."""
    batch: dict[str, list[DeadMessage]] = defaultdict(list)
    for message_id, agent, kind, error, at in rows:
        text = error or NO_REASON
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
    counted = _format_new(group, len(deaths), f"message to {whom}", f"messages to {whom}")
    are = "is" if len(deaths) == 1 else "are"
    notify_owner(
        tx,
        message,
        f"{counted} {are} dead. Cause ({group.kind}): {group.error}\n"
        "List dead messages: bullpen queue dead\n"
        "Retry one: bullpen queue retry ID",
    )
    mark_owner_notified(tx, group.fingerprint)


def _format_new(group: FailureGroup, new: int, noun: str, plural: str = "") -> str:
    """The number of new ones; if there were others before them, with the total."""
    if new == group.deaths:
        return format_count(new, noun, plural)
    more = format_count(new, f"more {noun}", f"more {plural}" if plural else "")
    return f"{more} ({group.deaths} in total)"
