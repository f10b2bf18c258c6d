"""Schedules: create, change, pause, resume and remove them; their targets and permissions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypedDict, Unpack

from sqlalchemy import bindparam, select

from bullpen.core.clock import DAY, HOUR
from bullpen.core.errors import BadSchedule, BadText, IllegalMove, NameTaken, OutOfReach, TooMany
from bullpen.core.events.schedule import (
    ScheduleAdded,
    ScheduleChanged,
    SchedulePaused,
    ScheduleRemoved,
    ScheduleResumed,
)
from bullpen.core.message import INTERNAL_CHANNELS, ReplyTo
from bullpen.core.models import AGENTS, LANES, MESSAGES
from bullpen.core.models.base import decode_numbers
from bullpen.core.outbox.addresses import NOWHERE, DeliveryAddress, owner_address
from bullpen.core.outbox.write import send_to_owner
from bullpen.core.roster.agents import Scheduling, check_display_name, get_agent
from bullpen.core.roster.teams import find_team, get_team, teams_of
from bullpen.core.schedules.model import (
    AGENT_AUTHOR_PREFIX,
    DEFAULT_SENDER,
    OWNER_AUTHOR,
    NewSchedule,
    OverlapPolicy,
    S,
    Schedule,
    ScheduleFilter,
    ScheduleState,
    append_schedule_event,
    delete_schedule,
    event_values,
    insert_schedule,
    list_schedules,
    lock_schedule,
    update_schedule,
)
from bullpen.core.schedules.timing import MissedPolicy, Timing
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import check_text, format_count

M = MESSAGES.c

MAX_JITTER_MS = DAY

SELECT_BY_LABEL: Statement[tuple[str]] = Statement(
    lambda: select(S.id).where((S.label == bindparam("label")) | (S.id == bindparam("label")))
)

SELECT_BATCH: Statement[tuple[str | None]] = Statement(
    lambda: select(LANES.c.batch).where(
        LANES.c.agent == bindparam("agent"), LANES.c.claim_token.is_not(None)
    )
)

SELECT_REPLY_ADDRESS: Statement[tuple[str, str, str | None, str | None]] = Statement(
    lambda: select(M.channel, M.sender, M.sender_id, M.reply_to).where(M.id == bindparam("message"))
)

SELECT_AGENT: Statement[tuple[str]] = Statement(
    lambda: select(AGENTS.c.id).where(AGENTS.c.id == bindparam("agent"))
)


class ScheduleChange(TypedDict, total=False):
    """The fields of a schedule to change."""

    label: str | None
    agent: str | None
    team_id: str | None
    message: str
    timing: Timing
    place: DeliveryAddress
    sender: str
    missed: MissedPolicy
    overlap: OverlapPolicy
    jitter: int


@dataclass(frozen=True, slots=True)
class ScheduleTarget:
    """The agent that gets a schedule's message: of a team, its leader."""

    agent: str
    team_id: str | None


def add_schedule(tx: Transaction, new: NewSchedule, author: str = OWNER_AUTHOR) -> Schedule:
    """Create a schedule, active or paused."""
    check_reach(tx, author, new.agent, new.team_id)
    check_schedule_limit(tx, author)
    values = {name: getattr(new, name) for name in NewSchedule.__dataclass_fields__}
    schedule = Schedule(
        **values,
        id=tx.ids.new("schedule"),
        state=ScheduleState.PAUSED if new.paused else ScheduleState.ACTIVE,
        reason="created as paused" if new.paused else None,
        due_at=None if new.paused else new.timing.after(tx.now),
        made_by=author,
        created_at=tx.now,
        updated_at=tx.now,
    )
    _check_texts(tx, schedule)
    _check_recipient(tx, schedule)
    insert_schedule(tx, schedule)
    append_schedule_event(tx, ScheduleAdded(made_by=author, **event_values(schedule)))
    return schedule


def change_schedule(
    tx: Transaction, name: str, author: str = OWNER_AUTHOR, **change: Unpack[ScheduleChange]
) -> Schedule:
    """Change the given fields; returns the changed schedule."""
    before = lock_schedule(tx, name)
    changed = replace(before, **change)
    check_reach(tx, author, changed.agent, changed.team_id)
    _check_texts(tx, changed)
    if (changed.agent, changed.team_id) != (before.agent, before.team_id):
        _check_recipient(tx, changed)
    if changed.timing != before.timing:
        due = changed.timing.after(tx.now)
        if changed.state is ScheduleState.DONE and due is not None:
            changed = replace(changed, state=ScheduleState.ACTIVE, reason=None)
        changed = replace(changed, due_at=due if changed.state is ScheduleState.ACTIVE else None)
    changed = update_schedule(tx, changed)
    append_schedule_event(tx, ScheduleChanged(changed=sorted(change), **event_values(changed)))
    return changed


def pause_schedule(tx: Transaction, name: str, reason: str = "paused by hand") -> Schedule:
    """Pause a schedule until it is resumed; due times in between do not count as missed."""
    check_text(reason, tx.settings.message_bytes, "the reason")
    schedule = lock_schedule(tx, name)
    return (
        pause_locked(tx, schedule, reason) if schedule.state is ScheduleState.ACTIVE else schedule
    )


def resume_schedule(tx: Transaction, name: str) -> Schedule:
    """Resume a schedule; due times in the past are not caught up."""
    schedule = lock_schedule(tx, name)
    if schedule.state is ScheduleState.ACTIVE:
        return schedule
    _check_recipient(tx, schedule)
    due = schedule.timing.after(tx.now)
    if due is None:
        raise IllegalMove(
            f"schedule {schedule.id} has no due times left",
            hint=f"Set a new time: bullpen schedule set {schedule.id} --at TIME",
        )
    active = replace(schedule, state=ScheduleState.ACTIVE, reason=None, due_at=due)
    active = update_schedule(tx, active)
    append_schedule_event(tx, ScheduleResumed(**event_values(active)))
    return active


def remove_schedule(tx: Transaction, name: str) -> Schedule:
    """Remove a schedule; its messages and its history stay."""
    schedule = lock_schedule(tx, name)
    delete_schedule(tx, schedule)
    append_schedule_event(tx, ScheduleRemoved(**event_values(schedule)))
    return schedule


def pause_locked(tx: Transaction, schedule: Schedule, reason: str) -> Schedule:
    """Pause an active schedule that is locked."""
    paused = replace(schedule, state=ScheduleState.PAUSED, reason=reason, due_at=None)
    paused = update_schedule(tx, paused)
    append_schedule_event(tx, SchedulePaused(reason=reason, **event_values(paused)))
    return paused


def pause_and_notify(tx: Transaction, schedule: Schedule, reason: str) -> None:
    """Pause an active schedule that is locked, and notify the owner."""
    pause_locked(tx, schedule, reason)
    send_to_owner(
        tx,
        f"Schedule {schedule.label or schedule.id} is paused: {reason}.\n"
        f"Choose another agent: bullpen schedule set {schedule.id} --agent AGENT\n"
        f"Resume it: bullpen schedule resume {schedule.id}",
    )


def pause_orphans(
    tx: Transaction, reason: str, *, agent: str | None = None, team_id: str | None = None
) -> None:
    """Pause every schedule of an agent or a team that is being removed."""
    filter_ = ScheduleFilter(agent=agent, team_id=team_id, state=ScheduleState.ACTIVE)
    for each in list_schedules(tx, filter_):
        current = lock_schedule(tx, each.id)
        if filter_.matches(current):
            pause_and_notify(tx, current, reason)


def find_target(tx: Transaction, schedule: Schedule) -> ScheduleTarget | None:
    """The agent that gets the message; None if the agent or team was removed."""
    if schedule.team_id is not None:
        team = find_team(tx, schedule.team_id)
        return None if team is None else ScheduleTarget(team.leader, team.id)
    row = tx.one(SELECT_AGENT, {"agent": schedule.agent})
    return None if row is None else ScheduleTarget(row[0], None)


def current_reply_address(tx: Transaction, agent: str) -> tuple[DeliveryAddress, str]:
    """The reply address of the agent's running message, and the name of the person there.

    The owner's address if no person wrote it; nowhere if the agent is idle.
    """
    running = tx.one(SELECT_BATCH, {"agent": agent})
    if running is None or running[0] is None:
        return NOWHERE, DEFAULT_SENDER
    message = tx.one(SELECT_REPLY_ADDRESS, {"message": decode_numbers(running[0])[0]})
    if message is None or message[0] in INTERNAL_CHANNELS:
        return owner_address(tx.settings), DEFAULT_SENDER
    channel, sender, sender_id, reply_to = message
    return DeliveryAddress(
        channel, sender_id, None if reply_to is None else ReplyTo.parse(reply_to)
    ), sender


def agent_of_author(author: str) -> str | None:
    """The agent behind this author; None for a person or a key."""
    return (
        author.removeprefix(AGENT_AUTHOR_PREFIX) if author.startswith(AGENT_AUTHOR_PREFIX) else None
    )


def check_reach(tx: Transaction, author: str, agent: str | None, team_id: str | None) -> None:
    """Refuse an author without the permission to create schedules for this agent or team."""
    maker = agent_of_author(author)
    if maker is None:
        return
    may = get_agent(tx, maker).scheduling
    if may is Scheduling.NONE:
        raise OutOfReach(
            f"@{maker} may not create schedules",
            hint=f"Allow it: bullpen agent set {maker} --scheduling self",
        )
    if agent == maker:
        return
    if may is not Scheduling.TEAM:
        raise OutOfReach(
            f"@{maker} may create schedules only for itself",
            hint=f"Allow it: bullpen agent set {maker} --scheduling team",
        )
    teams = teams_of(tx, maker)
    if team_id is None and not any(agent in team.members for team in teams):
        raise OutOfReach(f"@{agent} is not a teammate of @{maker}")
    if team_id is not None and team_id not in {team.id for team in teams}:
        raise OutOfReach(f"@{maker} is not a member of team {team_id}")


def check_schedule_limit(tx: Transaction, author: str) -> None:
    """Refuse an agent that created too many schedules, recently finished ones included."""
    maker = agent_of_author(author)
    if maker is None:
        return
    schedules = list_schedules(tx, ScheduleFilter(made_by=author))
    counted = sum(
        each.state is not ScheduleState.DONE or each.created_at > tx.now - HOUR
        for each in schedules
    )
    if counted >= tx.settings.agent_schedules:
        raise TooMany(
            f"@{maker} has created {format_count(counted, 'schedule')}; the limit is"
            f" {tx.settings.agent_schedules}"
        )


def check_author(author: str, schedule: Schedule) -> None:
    """Refuse an agent that did not create this schedule."""
    maker = agent_of_author(author)
    if maker is not None and schedule.made_by != author:
        raise OutOfReach(
            f"schedule {schedule.id} was not created by @{maker}",
            hint="An agent may change only schedules that it created.",
        )


def _check_texts(tx: Transaction, schedule: Schedule) -> None:
    limit = tx.settings.message_bytes
    check_text(schedule.message, limit)
    if not schedule.message.strip():
        raise BadText("the text is empty", hint="Give the text that the agent receives.")
    check_display_name(schedule.sender, limit)
    if not 0 <= schedule.jitter <= MAX_JITTER_MS:
        raise BadSchedule("jitter must be between 0 and 1 day", hint="Use a duration such as `5m`.")
    if schedule.label is not None:
        _check_label(tx, schedule, schedule.label)


def _check_recipient(tx: Transaction, schedule: Schedule) -> None:
    if (schedule.agent is None) is (schedule.team_id is None):
        raise BadSchedule(
            "a schedule needs exactly one agent or team", hint="Give one of them, not both."
        )
    if schedule.agent is not None:
        get_agent(tx, schedule.agent)
    if schedule.team_id is not None:
        get_team(tx, schedule.team_id)


def _check_label(tx: Transaction, schedule: Schedule, label: str) -> None:
    check_display_name(label, tx.settings.message_bytes)
    if not label.strip():
        raise BadText("the label is empty", hint="Leave it out, or give a text.")
    if any(id_ != schedule.id for (id_,) in tx.all(SELECT_BY_LABEL, {"label": label})):
        raise NameTaken(f"label {label[:60]!r} is already used by another schedule")
