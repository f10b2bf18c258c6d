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
    label: str = Field(description="its id, if it was given none")
    agent_id: str | None = Field(
        validation_alias="agent",
        serialization_alias="agentId",
        description="whom it asks; null of a team's",
    )
    team: str | None = Field(
        validation_alias="team_id", description="the team whose leader it asks; null of an agent's"
    )
    message: str
    kind: WhenKind = Field(description="which of the next three says when")
    cron: str = Field(description="empty if it has none")
    run_at: str | None = Field(serialization_alias="runAt", description="ISO 8601, UTC")
    every_seconds: int | None
    at: int | None = Field(description="`runAt` in milliseconds")
    zone: str = Field(description="whose clock a cron expression is read by")
    meaning: str = Field(description="when it is due, in words")
    channel: str = Field(description="where the answer goes; `schedule` is nowhere")
    to: str = Field(description="the same with its address, or `nowhere`")
    sender: str
    missed: MissedPolicy = Field(description="what becomes of due times at which nobody was there")
    overlap: OverlapPolicy = Field(
        description="what happens while the last run still waits or works"
    )
    jitter_seconds: int = Field(description="up to so much later, by chance")
    enabled: bool = Field(description="whether it is active")
    state: ScheduleState
    reason: str | None = Field(description="why it is not active")
    due_at: int | None
    next: list[int] = Field(description="the next due times; of one that is paused, if it were not")
    made_by: str = Field(description="`owner`, `key:<id>` or `agent:<id>`")
    created_at: int = Field(serialization_alias="createdAt")
    updated_at: int


class ScheduleList(Rows[ScheduleAnswer]):
    """Schedules."""


class ScheduleBody(LenientBody):
    """A schedule, or what of it is to be changed."""

    message: str | None = Field(None, description="what is said each time")
    agent_id: ShortText | None = Field(None, alias="agentId", description="whom it asks")
    agent: ShortText | None = Field(None, description="the same")
    team: ShortText | None = Field(None, description="instead: the team whose leader it asks")
    cron: Text | None = Field(None, description="as `0 9 * * 1-5`, or `@daily`")
    run_at: Text | Moment | None = Field(
        None, alias="runAt", description="once, at a time in ISO 8601 or in milliseconds"
    )
    every_seconds: Number | None = Field(None, description="again and again; 60 at least")
    label: ShortText | None = Field(None, description="a name that no other has; empty is none")
    channel: ShortText | None = Field(
        None, description="where the answer goes; `schedule` is nowhere"
    )
    address: LongText | None = Field(None, description="to whom on that channel")
    to: LongText | None = Field(
        None, description="both in one: `channel:address`, or a word for it"
    )
    sender: ShortText | None = Field(None, description="who says it; else `Scheduler`")
    enabled: bool | None = None
    zone: ShortText | None = Field(None, description="as Europe/Berlin; else the owner's")
    missed: MissedPolicy | None = Field(None, description="skip, one, or all of them; else one")
    overlap: OverlapPolicy | None = Field(None, description="skip, or queue; else skip")
    jitter_seconds: Number | None = Field(None, description="up to so much later, by chance")


class RunDelivery(Answer):
    """An answer on its way."""

    response: int
    channel: str
    status: str = Field(description="`acked` is there")
    receipts: list[str] = Field(description="what the platform said of each part")
    acked_at: int | None
    error: str | None


class ScheduleRunAnswer(Answer):
    """What became of a due time, or of several that were missed."""

    id: int
    due_at: int | None = Field(description="null of a run that somebody asked for")
    until: int | None = Field(description="the last that was missed; `due_at` is then the first")
    fired_at: int
    outcome: str = Field(description="`fired`, `skipped` or `missed`")
    times: int = Field(description="how many due times this stands for")
    message_id: str | None
    reason: str | None
    state: str | None = Field(description="of its message; null if there is none, or no more")
    error: str | None
    cost: float = Field(description="dollars, for all that it set off")
    tokens: int
    deliveries: list[RunDelivery]


class ScheduleRunList(Rows[ScheduleRunAnswer]):
    """Runs."""


def schedule_answer(schedule: Schedule, now: int) -> ScheduleAnswer:
    """A schedule as it is at this moment."""
    timing, address = schedule.timing, schedule.place
    return ScheduleAnswer.from_row(
        schedule,
        # The reference's clients read both as strings.
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
    """The schedule that the body describes."""
    if body.message is None:
        raise BadText("there is nothing to say", hint="Give what is said each time as `message`.")
    agent, team = _target(body, None, None)
    timing = _timing(tx, body, None)
    if timing is None:
        raise BadSchedule("nothing says when it is due", hint=WHEN)
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
    """The fields of the schedule that the body changes.

    An answer may be sent back with one field changed. So of fields that exclude each other, those
    that equal the schedule's present value count as not sent.
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
    # Answers have whole seconds: sending one back must not drop the fraction that an agent chose.
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
        raise BadSchedule("nobody is named who is asked", hint="Give `agentId`, or `team`.")
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
            "`to` says another place than `channel` and `address`", hint="Give one of the two."
        )
    return addresses[0] if addresses else before


def _timing(tx: Transaction, body: ScheduleBody, before: Timing | None) -> Timing | None:
    """When it is due; None if the body does not change that."""
    zone = body.zone or (owner_zone_name(tx.settings) if before is None else before.zone)
    timings = [each for each in _timings(tx, body, zone, before) if each is not None]
    if len(timings) > 1:
        raise BadSchedule("more than one thing says when it is due", hint=WHEN)
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
