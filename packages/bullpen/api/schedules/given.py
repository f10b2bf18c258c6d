"""What a body says of a schedule, as core knows it.

What was shown may be sent back with one field changed. So of the fields that exclude each other,
those that say what is so already say nothing, and one that says something new wins.
"""

from __future__ import annotations

from dataclasses import replace

from bullpen.api.schedules.body import ScheduleBody
from bullpen.core.clock import SECOND
from bullpen.core.errors import BadPlace, BadSchedule, BadText
from bullpen.core.outbox.place import NOWHERE, DeliveryAddress, make_address, parse_address
from bullpen.core.schedules.plan import MissedPolicy
from bullpen.core.schedules.schedule import DEFAULT_SENDER, NewSchedule, OverlapPolicy, Schedule
from bullpen.core.schedules.schedules import ScheduleChange
from bullpen.core.schedules.timing import Timing, TimingKind, cron_timing, every_timing, once_timing
from bullpen.core.schedules.when import parse_time
from bullpen.core.store.transaction import Transaction
from bullpen.core.time_zone import get_zone, owner_zone_name

WHEN = "Give one of `cron`, `runAt` and `every_seconds`."


def new(tx: Transaction, body: ScheduleBody) -> NewSchedule:
    """The schedule that is asked for."""
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
        place=_place(tx, body, NOWHERE),
        sender=DEFAULT_SENDER if body.sender is None else body.sender,
        missed=body.missed or MissedPolicy.ONE,
        overlap=body.overlap or OverlapPolicy.SKIP,
        jitter=(body.jitter_seconds or 0) * SECOND,
        paused=body.enabled is False,
    )


def changed(tx: Transaction, body: ScheduleBody, before: Schedule) -> ScheduleChange:
    """What of it is to be another than it is."""
    change = ScheduleChange(place=_place(tx, body, before.place))
    change["agent"], change["team_id"] = _target(body, before.agent, before.team_id)
    timing = _timing(tx, body, before.timing)
    if timing is not None:
        change["timing"] = timing
    if "label" in body.model_fields_set:
        change["label"] = body.label or None
    if body.message is not None:
        change["message"] = body.message
    if body.sender is not None:
        change["sender"] = body.sender
    if body.missed is not None:
        change["missed"] = body.missed
    if body.overlap is not None:
        change["overlap"] = body.overlap
    # Shown are whole seconds; a part of one that an agent gave is not lost by sending it back.
    if body.jitter_seconds not in (None, before.jitter // SECOND):
        change["jitter"] = (body.jitter_seconds or 0) * SECOND
    for name in [name for name, value in change.items() if getattr(before, name) == value]:
        del change[name]  # type: ignore[misc]
    return change


def _target(
    body: ScheduleBody, agent: str | None, team: str | None
) -> tuple[str | None, str | None]:
    agents = {each for each in (body.agentId, body.agent) if each is not None} - {agent}
    teams = {each for each in (body.team,) if each is not None} - {team}
    if len(agents) + len(teams) > 1:
        raise BadSchedule(
            "a schedule is for one agent or one team", hint="Give `agentId` or `team`, not both."
        )
    for found in agents:
        return found, None
    for found in teams:
        return None, found
    if agent is None and team is None:
        raise BadSchedule("nobody is named who is asked", hint="Give `agentId`, or `team`.")
    return agent, team


def _place(tx: Transaction, body: ScheduleBody, before: DeliveryAddress) -> DeliveryAddress:
    places = []
    if body.to not in (None, str(before)):
        places.append(parse_address(body.to or "", tx.settings))
    channel = before.channel if body.channel is None else body.channel
    if body.address is not None:
        places.append(make_address(channel, body.address))
    elif channel != before.channel:
        places.append(NOWHERE if channel == NOWHERE.channel else make_address(channel, ""))
    if len(set(places)) > 1:
        raise BadPlace(
            "`to` says another place than `channel` and `address`", hint="Give one of the two."
        )
    return places[0] if places else before


def _timing(tx: Transaction, body: ScheduleBody, before: Timing | None) -> Timing | None:
    """When it is to be due; None if nothing new is said of that."""
    here = body.zone or (owner_zone_name(tx.settings) if before is None else before.zone)
    found = [each for each in _timings(tx, body, here, before) if each is not None]
    if len(found) > 1:
        raise BadSchedule("more than one thing says when it is due", hint=WHEN)
    if found or before is None or here == before.zone:
        return found[0] if found else None
    if before.kind is TimingKind.CRON:
        return cron_timing(before.cron or "", here, tx.now)
    return replace(before, zone=get_zone(here).key)


def _timings(
    tx: Transaction, body: ScheduleBody, here: str, before: Timing | None
) -> list[Timing | None]:
    cron = every = at = None
    if before is not None:
        cron, every, at = before.cron, before.every, before.at
    seconds = None if every is None else every // SECOND
    run_at = parse_time(body.runAt, here) if isinstance(body.runAt, str) else body.runAt
    return [
        None if body.cron in (None, cron) else cron_timing(body.cron or "", here, tx.now),
        None if run_at in (None, at) else once_timing(run_at or 0, here, tx.now),
        None
        if body.every_seconds in (None, seconds)
        else every_timing((body.every_seconds or 0) * SECOND, here, tx.now),
    ]
