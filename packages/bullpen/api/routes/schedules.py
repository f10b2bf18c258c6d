"""Schedules: messages that are sent to agents at set times, and their runs."""

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

routes = Routes("schedules", "Messages that are sent to agents at set times, and their runs.")

BY_HAND = "paused by hand"


class ScheduleQuery(BaseModel):
    """Filters of schedules."""

    agent: ShortText | None = None
    team: ShortText | None = None
    state: ScheduleState | None = None


class SchedulePath(BaseModel):
    """Selects a schedule."""

    schedule: str = Field(description="The schedule's id or label.")


class NewScheduleBody(ScheduleBody):
    """A new schedule."""

    message: str = Field(description="The message to send each time.")


class ScheduleDone(Done):
    """The schedule after the change."""

    schedule: ScheduleAnswer


class Started(CamelAnswer, Done):
    """The enqueued message."""

    message_id: str


class NextQuery(BaseModel):
    """The number of due times."""

    count: int = Field(5, ge=1, le=100)


class NextAnswer(Answer):
    """The next due times."""

    next: list[int] = Field(description="The due times, as if the schedule were active.")
    zone: str


@routes.get("/api/schedules", READ)
def schedules(query: ScheduleQuery) -> ScheduleList:
    """List the schedules that the key reaches, oldest first."""
    filters = ScheduleFilter(agent=query.agent, team_id=query.team, state=query.state)
    with read() as tx:
        rows, now = list_schedules(tx, filters), tx.now
    mine = (each for each in rows if caller().can_reach(each.agent))
    return ScheduleList.of(schedule_answer(each, now) for each in mine)


@routes.post("/api/schedules", ADMIN, NotFound, Conflict)
def make(body: NewScheduleBody) -> ScheduleDone:
    """Create a schedule for an agent or a team.

    Give one of `cron`, `runAt` and `every_seconds`. The response is delivered only if `to`, or
    `channel` and `address`, give a reply address. A schedule for a team requires a key that reaches
    all agents.
    """
    with write() as tx:
        new = new_schedule(tx, body)
        require_reach(new.agent)
        return _done(tx, add_schedule(tx, new, _author()))


@routes.get("/api/schedules/<schedule>", READ, NotFound)
def schedule(path: SchedulePath) -> ScheduleAnswer:
    """Get a schedule."""
    with read() as tx:
        return schedule_answer(_get_schedule(tx, path), tx.now)


@routes.put("/api/schedules/<schedule>", ADMIN, NotFound, Conflict)
def put(path: SchedulePath, body: ScheduleBody) -> ScheduleDone:
    """Change a schedule, in the same way as PATCH."""
    return _change(path, body)


@routes.patch("/api/schedules/<schedule>", ADMIN, NotFound, Conflict)
def change(path: SchedulePath, body: ScheduleBody) -> ScheduleDone:
    """Change a schedule; omitted fields are unchanged.

    A new `cron`, `runAt` or `every_seconds` replaces the present one. `enabled` pauses or resumes
    the schedule. Fields that only Bullpen sets are ignored.
    """
    return _change(path, body)


@routes.delete("/api/schedules/<schedule>", ADMIN, NotFound)
def remove(path: SchedulePath) -> Done:
    """Remove a schedule; messages that it enqueued are kept."""
    with write() as tx:
        remove_schedule(tx, _lock_schedule(tx, path).id)
    return Done()


@routes.post("/api/schedules/<schedule>/pause", ADMIN, NotFound)
def pause(path: SchedulePath, body: Reason) -> ScheduleDone:
    """Pause a schedule until it is resumed.

    Due times during the pause do not count as missed.
    """
    with write() as tx:
        row = _lock_schedule(tx, path)
        return _done(tx, pause_schedule(tx, row.id, body.reason or BY_HAND))


@routes.post("/api/schedules/<schedule>/resume", ADMIN, NotFound, Conflict)
def resume(path: SchedulePath) -> ScheduleDone:
    """Resume a schedule from now on."""
    with write() as tx:
        return _done(tx, resume_schedule(tx, _lock_schedule(tx, path).id))


@routes.post("/api/schedules/<schedule>/run", PUBLISH, NotFound, Conflict, LaneError, audited=True)
def run(path: SchedulePath) -> Started:
    """Send a schedule's message now, in any state of the schedule.

    Its next due time does not change. The right to send messages to the agent is sufficient.
    """
    with write() as tx:
        # The schedule is not locked here: a lane is always locked before a schedule.
        return Started(message_id=run_schedule_now(tx, _get_schedule(tx, path).id))


@routes.get("/api/schedules/<schedule>/runs", READ, NotFound)
def runs(path: SchedulePath, query: Page) -> ScheduleRunList:
    """List a schedule's runs with outcome, cost and deliveries.

    Newest first; with `since_id`, the later ones, oldest first.
    """
    last = page_end(SCHEDULE_RUNS, query)
    with read() as tx:
        rows = list_schedule_runs(tx, _get_schedule(tx, path).id, query.since_id, query.limit, last)
    return ScheduleRunList.page(rows, query)


@routes.get("/api/schedules/<schedule>/next", READ, NotFound)
def following(path: SchedulePath, query: NextQuery) -> NextAnswer:
    """List the next due times of a schedule."""
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
    """Return the schedule; a team's schedule requires a key that reaches all agents."""
    row = get_schedule(tx, path.schedule)
    require_reach(row.agent)
    return row


def _lock_schedule(tx: Transaction, path: SchedulePath) -> Schedule:
    """Return the schedule, locked until the transaction ends."""
    row = lock_schedule(tx, path.schedule)
    require_reach(row.agent)
    return row


def _done(tx: Transaction, row: Schedule) -> ScheduleDone:
    return ScheduleDone(schedule=schedule_answer(row, tx.now))


def _author() -> str:
    """Return the author: the owner, also in their browser, or a key."""
    key = caller()
    owners_browser = (
        key.kind is KeyKind.BROWSER and key.agents is None and key.scopes == OWNER_KEY.scopes
    )
    return (
        OWNER_AUTHOR
        if owners_browser or key.kind is KeyKind.OWNER
        else f"{KEY_AUTHOR_PREFIX}{key.id}"
    )
