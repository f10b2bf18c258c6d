"""Request and response models of schedules."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated

from pydantic import Field, WithJsonSchema

from bullpen.api.schemas import (
    MAX_JSON_INT,
    Answer,
    LenientBody,
    LongText,
    Number,
    Rows,
    ShortText,
    only_changes,
)
from bullpen.core.clock import SECOND, get_zone, owner_zone_name, parse_time
from bullpen.core.errors import BadPlace, BadSchedule, BadText
from bullpen.core.outbox.addresses import NOWHERE, DeliveryAddress, make_address, parse_address
from bullpen.core.schedules.history import next_due_times
from bullpen.core.schedules.manage import ScheduleChange
from bullpen.core.schedules.model import (
    DEFAULT_SENDER,
    NewSchedule,
    OverlapPolicy,
    Schedule,
    ScheduleState,
)
from bullpen.core.schedules.timing import (
    MissedPolicy,
    Timing,
    TimingKind,
    cron_timing,
    describe_timing,
    every_timing,
    once_timing,
)
from bullpen.core.store.transaction import Transaction

WHEN = "Give one of `cron`, `runAt` and `every_seconds`."

Moment = Annotated[int, Field(ge=0, le=MAX_JSON_INT, strict=True)]
Text = Annotated[str, Field(max_length=500)]

# Inline, because another type has its name in the description.
WhenKind = Annotated[
    TimingKind, WithJsonSchema({"type": "string", "enum": [kind.value for kind in TimingKind]})
]


class ScheduleAnswer(Answer):
    """A schedule."""

    id: str
    label: str = Field(description="Its label; its id if it has none.")
    agent_id: str | None = Field(
        validation_alias="agent",
        serialization_alias="agentId",
        description="The recipient; null for a team's schedule.",
    )
    team: str | None = Field(
        validation_alias="team_id",
        description="The team whose leader is the recipient; null for an agent's schedule.",
    )
    message: str
    kind: WhenKind = Field(description="Which of the next three fields has the time.")
    cron: str = Field(description="Cron expression; empty if it has none.")
    run_at: str | None = Field(serialization_alias="runAt", description="ISO 8601, UTC.")
    every_seconds: int | None
    at: int | None = Field(description="`runAt` in milliseconds.")
    zone: str = Field(description="Time zone of the cron expression.")
    meaning: str = Field(description="When it is due, in words.")
    channel: str = Field(description="Channel of the reply address; `schedule`: no response.")
    to: str = Field(description="The reply address, or `nowhere`.")
    sender: str
    missed: MissedPolicy = Field(
        description="What happens with due times that passed while no scheduler ran."
    )
    overlap: OverlapPolicy = Field(
        description="What happens if the previous run's message is not finished."
    )
    jitter_seconds: int = Field(description="Maximum random delay in seconds.")
    enabled: bool = Field(description="Whether it is active.")
    state: ScheduleState
    reason: str | None = Field(description="Why it is not active.")
    due_at: int | None
    next: list[int] = Field(description="The next due times, as if it were active.")
    made_by: str = Field(description="`owner`, `key:<id>` or `agent:<id>`.")
    created_at: int = Field(serialization_alias="createdAt")
    updated_at: int


class ScheduleList(Rows[ScheduleAnswer]):
    """Schedules."""


class ScheduleBody(LenientBody):
    """A new schedule, or the fields of a schedule to change."""

    message: str | None = Field(None, description="The message to send each time.")
    agent_id: ShortText | None = Field(
        None, alias="agentId", description="The agent that gets the message."
    )
    agent: ShortText | None = Field(None, description="The same as `agentId`.")
    team: ShortText | None = Field(
        None, description="Instead of an agent: the team whose leader gets the message."
    )
    cron: Text | None = Field(
        None, description="Cron expression, such as `0 9 * * 1-5` or `@daily`."
    )
    run_at: Text | Moment | None = Field(
        None, alias="runAt", description="One time, in ISO 8601 or in milliseconds."
    )
    every_seconds: Number | None = Field(None, description="Interval in seconds; at least 60.")
    label: ShortText | None = Field(None, description="A unique name; empty: none.")
    channel: ShortText | None = Field(
        None, description="Channel of the reply address; `schedule`: no response."
    )
    address: LongText | None = Field(None, description="Recipient of the response on the channel.")
    to: LongText | None = Field(
        None, description="The reply address as `channel:address`, or `owner` or `nowhere`."
    )
    sender: ShortText | None = Field(
        None, description="Sender of the message; by default `Scheduler`."
    )
    enabled: bool | None = None
    zone: ShortText | None = Field(
        None, description="Time zone, such as `Europe/Berlin`; by default the owner's."
    )
    missed: MissedPolicy | None = Field(
        None, description="Missed due times: `skip`, run `one`, or run `all`; by default `one`."
    )
    overlap: OverlapPolicy | None = Field(
        None,
        description="If the previous run is not finished: `skip` or `queue`; by default `skip`.",
    )
    jitter_seconds: Number | None = Field(None, description="Maximum random delay in seconds.")


class RunDelivery(Answer):
    """The delivery of a response."""

    response: int
    channel: str
    status: str = Field(description="State of the response; `acked`: delivered.")
    receipts: list[str] = Field(description="The platform's answer for each part.")
    acked_at: int | None
    error: str | None


class ScheduleRunAnswer(Answer):
    """A due time of a schedule, or several missed ones, and the outcome."""

    id: int
    due_at: int | None = Field(description="Null for a run that was started by hand.")
    until: int | None = Field(
        description="The last of several missed due times; `due_at` is the first."
    )
    fired_at: int
    outcome: str = Field(description="`fired`, `skipped` or `missed`.")
    times: int = Field(description="Number of due times.")
    message_id: str | None
    reason: str | None
    state: str | None = Field(
        description="State of its message; null if there is none, or it was deleted."
    )
    error: str | None
    cost: float = Field(description="Cost of the whole conversation, in dollars.")
    tokens: int
    deliveries: list[RunDelivery]


class ScheduleRunList(Rows[ScheduleRunAnswer]):
    """Runs of a schedule."""


def schedule_answer(schedule: Schedule, now: int) -> ScheduleAnswer:
    """Return a schedule as an answer."""
    timing, address = schedule.timing, schedule.place
    return ScheduleAnswer.from_row(
        schedule,
        # TinyAGI's clients read both as strings.
        label=_label(schedule),
        kind=timing.kind,
        cron=timing.cron or "",
        run_at=None if timing.at is None else _iso(timing.at),
        every_seconds=None if timing.every is None else timing.every // SECOND,
        at=timing.at,
        zone=timing.zone,
        meaning=describe_timing(timing),
        channel=address.channel,
        to=str(address),
        jitter_seconds=schedule.jitter // SECOND,
        enabled=schedule.state is ScheduleState.ACTIVE,
        next=next_due_times(schedule, now),
    )


def _label(schedule: Schedule) -> str:
    return schedule.label or schedule.id


def _iso(at: int) -> str:
    moment = datetime.fromtimestamp(at // SECOND, UTC).replace(microsecond=at % SECOND * 1000)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def new_schedule(tx: Transaction, body: ScheduleBody) -> NewSchedule:
    """Return the schedule that the body describes."""
    if body.message is None:
        raise BadText("missing message", hint="Give the text as `message`.")
    agent, team = _target(body, None, None)
    timing = _timing(tx, body, None)
    if timing is None:
        raise BadSchedule("missing time", hint=WHEN)
    return NewSchedule(
        message=body.message,
        timing=timing,
        agent=agent,
        team_id=team,
        label=body.label or None,
        place=_reply_address(tx, body, NOWHERE),
        sender=DEFAULT_SENDER if body.sender is None else body.sender,
        missed=body.missed or MissedPolicy.ONE,
        overlap=body.overlap or OverlapPolicy.SKIP,
        jitter=(body.jitter_seconds or 0) * SECOND,
        paused=body.enabled is False,
    )


def schedule_change(tx: Transaction, body: ScheduleBody, before: Schedule) -> ScheduleChange:
    """Return the fields of the schedule that the body changes.

    A client may send an answer back with one field changed. So, of fields that exclude each other,
    those that equal the schedule's present value are ignored.
    """
    change = ScheduleChange(place=_reply_address(tx, body, before.place))
    change["agent"], change["team_id"] = _target(body, before.agent, before.team_id)
    timing = _timing(tx, body, before.timing)
    if timing is not None:
        change["timing"] = timing
    if "label" in body.model_fields_set and body.label != _label(before):
        change["label"] = body.label or None
    if body.message is not None:
        change["message"] = body.message
    if body.sender is not None:
        change["sender"] = body.sender
    if body.missed is not None:
        change["missed"] = body.missed
    if body.overlap is not None:
        change["overlap"] = body.overlap
    # An answer has whole seconds. A client that sends it back must not drop the fraction.
    if body.jitter_seconds not in (None, before.jitter // SECOND):
        change["jitter"] = (body.jitter_seconds or 0) * SECOND
    return only_changes(change, before)


def _target(
    body: ScheduleBody, agent: str | None, team: str | None
) -> tuple[str | None, str | None]:
    agents = {each for each in (body.agent_id, body.agent) if each is not None} - {agent}
    teams = {each for each in (body.team,) if each is not None} - {team}
    if len(agents) + len(teams) > 1:
        raise BadSchedule(
            "a schedule is for one agent or one team", hint="Give `agentId` or `team`, not both."
        )
    for new_agent in agents:
        return new_agent, None
    for new_team in teams:
        return None, new_team
    if agent is None and team is None:
        raise BadSchedule("missing agent or team", hint="Give `agentId` or `team`.")
    return agent, team


def _reply_address(tx: Transaction, body: ScheduleBody, before: DeliveryAddress) -> DeliveryAddress:
    addresses = []
    if body.to not in (None, str(before)):
        addresses.append(parse_address(body.to or "", tx.settings))
    channel = before.channel if body.channel is None else body.channel
    if body.address is not None:
        addresses.append(make_address(channel, body.address))
    elif channel != before.channel:
        addresses.append(NOWHERE if channel == NOWHERE.channel else make_address(channel, ""))
    if len(set(addresses)) > 1:
        raise BadPlace(
            "`to` contradicts `channel` and `address`",
            hint="Give `to`, or `channel` and `address`.",
        )
    return addresses[0] if addresses else before


def _timing(tx: Transaction, body: ScheduleBody, before: Timing | None) -> Timing | None:
    """Return when it is due; None if the body does not change that."""
    zone = body.zone or (owner_zone_name(tx.settings) if before is None else before.zone)
    timings = [each for each in _timings(tx, body, zone, before) if each is not None]
    if len(timings) > 1:
        raise BadSchedule("more than one time", hint=WHEN)
    if timings or before is None or zone == before.zone:
        return timings[0] if timings else None
    if before.kind is TimingKind.CRON:
        return cron_timing(before.cron or "", zone, tx.now)
    return replace(before, zone=get_zone(zone).key)


def _timings(
    tx: Transaction, body: ScheduleBody, zone: str, before: Timing | None
) -> list[Timing | None]:
    cron = every = at = None
    if before is not None:
        cron, every, at = before.cron, before.every, before.at
    seconds = None if every is None else every // SECOND
    run_at = parse_time(body.run_at, zone) if isinstance(body.run_at, str) else body.run_at
    return [
        None if body.cron in (None, cron or "") else cron_timing(body.cron or "", zone, tx.now),
        None if run_at in (None, at) else once_timing(run_at or 0, zone, tx.now),
        None
        if body.every_seconds in (None, seconds)
        else every_timing((body.every_seconds or 0) * SECOND, zone, tx.now),
    ]
