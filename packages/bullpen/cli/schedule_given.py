"""What a person or an agent writes about a schedule: when, for whom, and where the answer goes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import click

from bullpen.cli import ids
from bullpen.cli.acting import acting_agent
from bullpen.cli.output import Function
from bullpen.core.errors import BadPlace, BadSchedule
from bullpen.core.outbox.place import DeliveryAddress, parse_address
from bullpen.core.schedules.here import current_reply_address
from bullpen.core.schedules.plan import MissedPolicy
from bullpen.core.schedules.schedule import DEFAULT_SENDER, OverlapPolicy, Schedule
from bullpen.core.schedules.schedules import ScheduleChange
from bullpen.core.schedules.timing import (
    MIN_INTERVAL_MS,
    Timing,
    TimingKind,
    cron_timing,
    every_timing,
    once_timing,
)
from bullpen.core.schedules.when import parse_duration, parse_time
from bullpen.core.store.transaction import Transaction
from bullpen.core.time_zone import get_zone, owner_zone_name

TIMING_EXAMPLES = "--cron '0 9 * * 1-5', --every 30m, --at 2026-12-24T18:00 or --in 20m"

_OPTIONS = (
    click.option("--agent", shell_complete=ids.agents, help="Who is asked."),
    click.option("--team", shell_complete=ids.teams, help="Which team is asked: its leader."),
    click.option("--cron", help="At the times of a cron expression, as '0 9 * * 1-5'."),
    click.option("--every", help="Again and again after so long, as 30m; a minute or more."),
    click.option("--at", help="Once, at this time, as 2026-12-24T18:00."),
    click.option("--in", "within", help="Once, after so long, as 20m."),
    click.option("--zone", help="Whose clock says the time, as Europe/Berlin; else the owner's."),
    click.option("--to", help="Where the answers go: channel:address, owner or nowhere."),
    click.option("--label", help="A name for it."),
    click.option(
        "--missed",
        type=click.Choice([each.value for each in MissedPolicy]),
        help="What becomes of times at which Bullpen was not running; one, if not said.",
    ),
    click.option(
        "--overlap",
        type=click.Choice([each.value for each in OverlapPolicy]),
        help="What is done while the last run still waits or works; skip, if not said.",
    ),
    click.option("--jitter", help="Up to so much later, by chance, as 5m."),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleOptions:
    """The options as they were given; None is what was not named."""

    agent: str | None
    team: str | None
    cron: str | None
    every: str | None
    at: str | None
    within: str | None
    zone: str | None
    to: str | None
    label: str | None
    missed: str | None
    overlap: str | None
    jitter: str | None

    @property
    def when(self) -> list[str]:
        """What says when."""
        return [each for each in (self.cron, self.every, self.at, self.within) if each is not None]


def schedule_options(function: Function) -> Function:
    """The options that describe a schedule."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def parse_timing(tx: Transaction, given: ScheduleOptions) -> Timing:
    """When it is due, in the owner's zone unless another is named."""
    return _timing(tx, given, given.zone or owner_zone_name(tx.settings))


def parse_target(given: ScheduleOptions) -> tuple[str | None, str | None]:
    """The agent or the team; an agent that names nobody means itself."""
    if given.agent is None and given.team is None and acting_agent() is None:
        raise BadSchedule("nobody is named who is asked", hint="Give --agent coder or --team dev.")
    if given.agent is not None and given.team is not None:
        raise BadSchedule(
            "a schedule is for one agent or one team", hint="Give --agent or --team, not both."
        )
    return given.agent or (None if given.team else acting_agent()), given.team


def parse_reply_address(tx: Transaction, given: ScheduleOptions) -> tuple[DeliveryAddress, str]:
    """Where the answers go, and the name of the person there; an agent's, to whoever asked it."""
    if given.to is not None:
        return parse_address(given.to, tx.settings), DEFAULT_SENDER
    agent = acting_agent()
    if agent is None:
        raise BadPlace(
            "it is not said where the answers go",
            hint="Give --to telegram:123456789 (a channel and an address on it), "
            "--to owner or --to nowhere.",
        )
    return current_reply_address(tx, agent)


def parse_changes(tx: Transaction, given: ScheduleOptions, before: Schedule) -> ScheduleChange:
    """What is named, as it is to be."""
    change = ScheduleChange()
    if given.agent is not None or given.team is not None:
        change["agent"], change["team_id"] = parse_target(given)
    if given.when:
        change["timing"] = _timing(tx, given, given.zone or before.timing.zone)
    elif given.zone is not None:
        change["timing"] = _in_zone(tx, before.timing, given.zone)
    if given.to is not None:
        change["place"], change["sender"] = parse_reply_address(tx, given)
    if given.label is not None:
        change["label"] = given.label or None
    if given.missed is not None:
        change["missed"] = MissedPolicy(given.missed)
    if given.overlap is not None:
        change["overlap"] = OverlapPolicy(given.overlap)
    if given.jitter is not None:
        change["jitter"] = parse_duration(given.jitter)
    return change


def _timing(tx: Transaction, given: ScheduleOptions, zone_name: str) -> Timing:
    if len(given.when) != 1:
        many = "more than one of them says" if given.when else "nothing says"
        raise BadSchedule(f"{many} when it is due", hint=f"Give one of {TIMING_EXAMPLES}.")
    if given.cron is not None:
        return cron_timing(given.cron, zone_name, tx.now)
    if given.every is not None:
        return every_timing(parse_duration(given.every), zone_name, tx.now)
    if given.at is not None:
        at = parse_time(given.at, zone_name)
    else:
        at = tx.now + parse_duration(given.within or "")
    if acting_agent() is not None and tx.now < at < tx.now + MIN_INTERVAL_MS:
        # Else one that schedules itself in each run would never rest.
        raise BadSchedule("that is in less than a minute", hint="Give a minute or more, as `20m`.")
    return once_timing(at, zone_name, tx.now)


def _in_zone(tx: Transaction, timing: Timing, zone_name: str) -> Timing:
    """The same in another zone: a cron expression is read by its clock, the rest only shown."""
    if timing.kind is TimingKind.CRON:
        return cron_timing(timing.cron or "", zone_name, tx.now)
    return replace(timing, zone=get_zone(zone_name).key)
