"""Heartbeats: read, list, change and remove them."""

from __future__ import annotations

from dataclasses import replace
from typing import TypedDict, Unpack

from sqlalchemy import bindparam, delete, insert, select, update

from bullpen.core.clock import DAY, MINUTE, SECOND
from bullpen.core.errors import BadHeartbeat, UnknownAgent
from bullpen.core.events.append import append_event
from bullpen.core.events.schedule import HeartbeatChanged
from bullpen.core.heartbeats.model import (
    ActiveHours,
    H,
    Heartbeat,
    HeartbeatState,
    heartbeat_from_row,
    heartbeat_values,
)
from bullpen.core.models import AGENTS, HEARTBEATS
from bullpen.core.outbox.addresses import DeliveryAddress
from bullpen.core.queue.lanes import lock_lane
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction

MIN_INTERVAL_MS, MAX_INTERVAL_MS = MINUTE, 366 * DAY
MAX_RUNS_PER_DAY = DAY // MINUTE
MAX_SILENT_LIMIT = 1_000_000

SELECT_HEARTBEAT: Statement[Heartbeat] = Statement(
    lambda: select(*H).where(H.agent == bindparam("name")), heartbeat_from_row
)
SELECT_HEARTBEATS: Statement[Heartbeat] = Statement(
    lambda: select(*H).order_by(H.agent), heartbeat_from_row
)
INSERT_HEARTBEAT: Statement[None] = Statement(
    lambda: insert(HEARTBEATS).values({each.name: bindparam(each.name) for each in H})
)
_IMMUTABLE_COLUMNS = ("agent", "created_at")
UPDATE_HEARTBEAT: Statement[None] = Statement(
    lambda: (
        update(HEARTBEATS)
        .where(H.agent == bindparam("name"))
        .values(
            {each.name: bindparam(each.name) for each in H if each.name not in _IMMUTABLE_COLUMNS}
        )
    )
)
DELETE_HEARTBEAT: Statement[None] = Statement(
    lambda: delete(HEARTBEATS).where(H.agent == bindparam("name"))
)

SELECT_AGENT: Statement[tuple[str]] = Statement(
    lambda: select(AGENTS.c.id).where(AGENTS.c.id == bindparam("name"))
)


class HeartbeatChange(TypedDict, total=False):
    """The fields of a heartbeat to change."""

    on: bool
    every: int
    hours: ActiveHours | None
    budget: int
    max_silent: int
    place: DeliveryAddress | None


def get_heartbeat(tx: Transaction, agent: str) -> Heartbeat:
    """The heartbeat of an agent; off by default."""
    row = tx.one(SELECT_HEARTBEAT, {"name": agent})
    return Heartbeat(agent=agent) if row is None else row


def list_heartbeats(tx: Transaction) -> list[Heartbeat]:
    """All heartbeats that were turned on or changed, by agent."""
    return tx.all(SELECT_HEARTBEATS, {})


def change_heartbeat(tx: Transaction, agent: str, **change: Unpack[HeartbeatChange]) -> Heartbeat:
    """Change the given fields; turning it on resets its counts."""
    lock_lane(tx, agent)
    if tx.one(SELECT_AGENT, {"name": agent}) is None:  # the lane of a removed agent is kept
        raise UnknownAgent.of(agent)
    before = get_heartbeat(tx, agent)
    on = change.get("on", before.state is HeartbeatState.ON)
    changed = replace(
        before,
        every=change.get("every", before.every),
        hours=change.get("hours", before.hours),
        budget=change.get("budget", before.budget),
        max_silent=change.get("max_silent", before.max_silent),
        place=change.get("place", before.place),
    )
    _check(changed)
    if on and before.state is not HeartbeatState.ON:
        # The interval since the last heartbeat is kept, even if it is turned off and on.
        last = max(tx.now, changed.last_at or 0)
        changed = replace(changed, silent=0, errors=0, reason=None, due_at=last + changed.every)
        changed = replace(changed, state=HeartbeatState.ON)
    elif on and changed.every != before.every:
        last = tx.now if changed.last_at is None else changed.last_at
        changed = replace(changed, due_at=max(tx.now, last + changed.every))
    elif not on and change.get("on") is False:
        changed = replace(changed, state=HeartbeatState.OFF, reason=None, due_at=None)
    write_heartbeat(tx, changed)
    state = changed.state.value
    append_event(tx, HeartbeatChanged(agent=agent, state=state, changed=sorted(change)))
    tx.wake("heartbeats")
    return changed


def write_heartbeat(tx: Transaction, heartbeat: Heartbeat) -> None:
    """Write the heartbeat; the agent's lane is locked."""
    values = {**heartbeat_values(heartbeat), "updated_at": tx.now}
    if tx.change(UPDATE_HEARTBEAT, {**values, "name": heartbeat.agent}) == 0:
        tx.write(INSERT_HEARTBEAT, {**values, "created_at": tx.now})


def remove_heartbeat(tx: Transaction, agent: str) -> None:
    """Delete the heartbeat of a removed agent."""
    tx.write(DELETE_HEARTBEAT, {"name": agent})


def _check(heartbeat: Heartbeat) -> None:
    if not MIN_INTERVAL_MS <= heartbeat.every <= MAX_INTERVAL_MS:
        raise BadHeartbeat(
            f"interval of {heartbeat.every // SECOND} s is out of range",
            hint="Use one minute to one year, for example `30m`.",
        )
    if not 1 <= heartbeat.budget <= MAX_RUNS_PER_DAY:
        raise BadHeartbeat(
            f"budget must be between 1 and {MAX_RUNS_PER_DAY}",
            hint="The budget is the most heartbeats a day.",
        )
    if not 0 <= heartbeat.max_silent <= MAX_SILENT_LIMIT:
        raise BadHeartbeat(
            f"max silent must be between 0 and {MAX_SILENT_LIMIT}",
            hint="Use 0 to never pause a silent heartbeat.",
        )
