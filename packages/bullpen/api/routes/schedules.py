"""Schedules: what is said to agents at set times, and what became of it."""

from __future__ import annotations

from pydantic import BaseModel, Field

from bullpen.api.context import caller, read, require_reach, write
from bullpen.api.route import ADMIN, PUBLISH, READ, Routes
from bullpen.api.routes.messages import Reason
from bullpen.api.routes.schedule_schemas import (
    ScheduleAnswer,
    ScheduleBody,
    ScheduleList,
    ScheduleRunList,
    new_schedule,
    schedule_answer,
    schedule_change,
)
from bullpen.api.schemas import Answer, CamelAnswer, Done, Page, ShortText, page_end
from bullpen.core.access.keys import OWNER_KEY, KeyKind
from bullpen.core.errors import Conflict, LaneError, NotFound
from bullpen.core.models import SCHEDULE_RUNS
from bullpen.core.schedules.fire import run_schedule_now
from bullpen.core.schedules.history import list_schedule_runs, next_due_times
from bullpen.core.schedules.manage import (
    add_schedule,
    change_schedule,
    pause_schedule,
    remove_schedule,
    resume_schedule,
)
from bullpen.core.schedules.model import (
    KEY_AUTHOR_PREFIX,
    OWNER_AUTHOR,
    Schedule,
    ScheduleFilter,
    ScheduleState,
    get_schedule,
    list_schedules,
    lock_schedule,
)
from bullpen.core.store.transaction import Transaction

routes = Routes("schedules", "What is said to agents at set times, and what became of it.")

BY_HAND = "paused by hand"


class ScheduleQuery(BaseModel):
    """Which schedules."""

    agent: ShortText | None = None
    team: ShortText | None = None
    state: ScheduleState | None = None


class SchedulePath(BaseModel):
    """Which schedule."""

    schedule: str = Field(description="its id or its label")


class NewScheduleBody(ScheduleBody):
    """A schedule that is to be made."""

    message: str = Field(description="what is said each time")


class ScheduleDone(Done):
    """The schedule as it is now."""

    schedule: ScheduleAnswer


class Started(CamelAnswer, Done):
    """Its message is in the queue."""

    message_id: str


class NextQuery(BaseModel):
    """How many."""

    count: int = Field(5, ge=1, le=100)


class NextAnswer(Answer):
    """Due times to come."""

    next: list[int] = Field(description="of one that is paused, when it would be due")
    zone: str


@routes.get("/api/schedules", READ)
def schedules(query: ScheduleQuery) -> ScheduleList:
    """List the schedules that the key reaches, the oldest first."""
    filters = ScheduleFilter(agent=query.agent, team_id=query.team, state=query.state)
    with read() as tx:
        rows, now = list_schedules(tx, filters), tx.now
    mine = (each for each in rows if caller().can_reach(each.agent))
    return ScheduleList.of(schedule_answer(each, now) for each in mine)


@routes.post("/api/schedules", ADMIN, NotFound, Conflict)
def make(body: NewScheduleBody) -> ScheduleDone:
    """Make a schedule for an agent or a team; a team's is for keys that reach all agents.

    One of `cron`, `runAt` and `every_seconds` says when. The answer goes nowhere, unless `to`, or
    `channel` and `address`, say where.
    """
    with write() as tx:
        new = new_schedule(tx, body)
        require_reach(new.agent)
        return _done(tx, add_schedule(tx, new, _author()))


@routes.get("/api/schedules/<schedule>", READ, NotFound)
def schedule(path: SchedulePath) -> ScheduleAnswer:
    """Show one schedule."""
    with read() as tx:
        return schedule_answer(_get_schedule(tx, path), tx.now)


@routes.put("/api/schedules/<schedule>", ADMIN, NotFound, Conflict)
def put(path: SchedulePath, body: ScheduleBody) -> ScheduleDone:
    """Change a schedule that exists, just as PATCH does."""
    return _change(path, body)


@routes.patch("/api/schedules/<schedule>", ADMIN, NotFound, Conflict)
def change(path: SchedulePath, body: ScheduleBody) -> ScheduleDone:
    """Change a schedule; what is not sent stays, and so does what only Bullpen says of it.

    A new `cron`, `runAt` or `every_seconds` takes the place of the one before. `enabled` pauses and
    resumes.
    """
    return _change(path, body)


@routes.delete("/api/schedules/<schedule>", ADMIN, NotFound)
def remove(path: SchedulePath) -> Done:
    """Remove a schedule; what it has put into a queue stays there."""
    with write() as tx:
        remove_schedule(tx, _lock_schedule(tx, path).id)
    return Done()


@routes.post("/api/schedules/<schedule>/pause", ADMIN, NotFound)
def pause(path: SchedulePath, body: Reason) -> ScheduleDone:
    """Let it fire no more until it is resumed; what comes due meanwhile is not missed."""
    with write() as tx:
        row = _lock_schedule(tx, path)
        return _done(tx, pause_schedule(tx, row.id, body.reason or BY_HAND))


@routes.post("/api/schedules/<schedule>/resume", ADMIN, NotFound, Conflict)
def resume(path: SchedulePath) -> ScheduleDone:
    """Let it fire again, from now on."""
    with write() as tx:
        return _done(tx, resume_schedule(tx, _lock_schedule(tx, path).id))


@routes.post("/api/schedules/<schedule>/run", PUBLISH, NotFound, Conflict, LaneError, audited=True)
def run(path: SchedulePath) -> Started:
    """Say its message now, whatever its state; when it is due next does not change.

    Who may send any message to an agent may send this one.
    """
    with write() as tx:
        # The schedule is not locked here: a lane is always locked before a schedule.
        return Started(message_id=run_schedule_now(tx, _get_schedule(tx, path).id))


@routes.get("/api/schedules/<schedule>/runs", READ, NotFound)
def runs(path: SchedulePath, query: Page) -> ScheduleRunList:
    """List what became of its due times: each run with its cost, and whether the answer arrived.

    The newest first; with `since_id` what came after it, the oldest first.
    """
    last = page_end(SCHEDULE_RUNS, query)
    with read() as tx:
        rows = list_schedule_runs(tx, _get_schedule(tx, path).id, query.since_id, query.limit, last)
    return ScheduleRunList.page(rows, query)


@routes.get("/api/schedules/<schedule>/next", READ, NotFound)
def following(path: SchedulePath, query: NextQuery) -> NextAnswer:
    """Say when it is due next."""
    with read() as tx:
        row = _get_schedule(tx, path)
        return NextAnswer(next=next_due_times(row, tx.now, query.count), zone=row.timing.zone)


def _change(path: SchedulePath, body: ScheduleBody) -> ScheduleDone:
    with write() as tx:
        row = _lock_schedule(tx, path)
        change = schedule_change(tx, body, row)
        require_reach(change.get("agent", row.agent))
        if change:
            row = change_schedule(tx, row.id, **change)
        active = row.state is ScheduleState.ACTIVE
        if body.enabled is True and not active:
            row = resume_schedule(tx, row.id)
        elif body.enabled is False and active:
            row = pause_schedule(tx, row.id, BY_HAND)
        return _done(tx, row)


def _get_schedule(tx: Transaction, path: SchedulePath) -> Schedule:
    """The schedule; a team's is only for keys that reach all agents."""
    row = get_schedule(tx, path.schedule)
    require_reach(row.agent)
    return row


def _lock_schedule(tx: Transaction, path: SchedulePath) -> Schedule:
    """The same, locked until the transaction ends."""
    row = lock_schedule(tx, path.schedule)
    require_reach(row.agent)
    return row


def _done(tx: Transaction, row: Schedule) -> ScheduleDone:
    return ScheduleDone(schedule=schedule_answer(row, tx.now))


def _author() -> str:
    """The owner, in their browser as well, or a key."""
    key = caller()
    owners_browser = (
        key.kind is KeyKind.BROWSER and key.agents is None and key.scopes == OWNER_KEY.scopes
    )
    return (
        OWNER_AUTHOR
        if owners_browser or key.kind is KeyKind.OWNER
        else f"{KEY_AUTHOR_PREFIX}{key.id}"
    )
