"""Options of bullpen schedule, and how schedules are printed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import assert_never

import click

from bullpen.cli import completion
from bullpen.cli.command import acting_agent, acting_run
from bullpen.cli.options import Function, combine_options
from bullpen.cli.output import format_duration, format_fields, format_state, join
from bullpen.core.clock import (
    format_interval,
    format_time,
    get_zone,
    owner_zone_name,
    parse_duration,
    parse_time,
)
from bullpen.core.errors import BadPlace, BadSchedule, OutOfReach
from bullpen.core.outbox.addresses import DeliveryAddress, owner_address, parse_address
from bullpen.core.queue.reach import Run, require_recipient
from bullpen.core.roster.agents import Reach
from bullpen.core.roster.teams import teams_of
from bullpen.core.schedules.history import ScheduleRun, next_due_times
from bullpen.core.schedules.manage import (
    ScheduleChange,
    agent_of_author,
    check_author,
    check_reach,
    current_reply_address,
)
from bullpen.core.schedules.model import (
    AGENT_AUTHOR_PREFIX,
    ALL_SCHEDULES,
    DEFAULT_SENDER,
    OWNER_AUTHOR,
    OverlapPolicy,
    Schedule,
    ScheduleFilter,
    ScheduleState,
    get_schedule,
    list_schedules,
    lock_schedule,
)
from bullpen.core.schedules.timing import (
    MIN_INTERVAL_MS,
    MissedPolicy,
    Timing,
    TimingKind,
    cron_timing,
    daily_cron,
    describe_timing,
    every_timing,
    once_timing,
)
from bullpen.core.states import ResponseState
from bullpen.core.store.transaction import Transaction

TIMING_EXAMPLES = (
    "--daily 09:00, --cron '0 9 * * 1-5', --every 30m, --at 2026-12-24T18:00 or --in 20m"
)


def schedule_options(*, new: bool) -> Callable[[Function], Function]:
    """The options of a schedule; of a new one with their defaults."""
    return combine_options(
        click.option(
            "--agent",
            metavar="AGENT",
            shell_complete=completion.agents,
            help="Recipient: an agent.",
        ),
        click.option(
            "--team",
            metavar="TEAM",
            shell_complete=completion.teams,
            help="Recipient: the leader of a team.",
        ),
        click.option("--daily", metavar="TIME", help="Every day at this time, for example 09:00."),
        click.option(
            "--on",
            metavar="DAYS",
            help="With --daily: weekdays, weekends, or days such as mon,wed.",
        ),
        click.option(
            "--cron", metavar="CRON", help="A cron expression, for example '0 9 * * 1-5'."
        ),
        click.option(
            "--every", metavar="DURATION", help="An interval of at least a minute, for example 30m."
        ),
        click.option("--at", metavar="TIME", help="Once, for example at 2026-12-24T18:00."),
        click.option("--in", "within", metavar="DURATION", help="Once, for example in 20m."),
        click.option(
            "--zone",
            metavar="NAME",
            show_default="the owner's" if new else False,
            help="Time zone, for example Europe/Berlin.",
        ),
        click.option(
            "--to", metavar="ADDRESS", help="Reply address: channel:address, owner or nowhere."
        ),
        click.option("--label", metavar="NAME", help="Another name for it."),
        click.option(
            "--missed",
            type=click.Choice([each.value for each in MissedPolicy]),
            show_default="one" if new else False,
            help="Due times that passed while Bullpen was not running.",
        ),
        click.option(
            "--overlap",
            type=click.Choice([each.value for each in OverlapPolicy]),
            show_default="skip" if new else False,
            help="Due times while the previous run is unfinished.",
        ),
        click.option(
            "--jitter",
            metavar="DURATION",
            show_default="none" if new else False,
            help="Random delay of up to DURATION.",
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleOptions:
    """The options of a schedule; None for an option that was not given."""

    agent: str | None
    team: str | None
    daily: str | None
    on: str | None
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
        """The given options for the time; a schedule needs exactly one."""
        options = (self.daily, self.cron, self.every, self.at, self.within)
        return [each for each in options if each is not None]


def parse_timing(tx: Transaction, options: ScheduleOptions) -> Timing:
    """Return when a schedule is due, in the owner's time zone by default."""
    return _timing(tx, options, options.zone or owner_zone_name(tx.settings))


def parse_target(options: ScheduleOptions) -> tuple[str | None, str | None]:
    """Return the agent or the team that gets the text; in a run, by default its agent."""
    if options.agent is None and options.team is None and acting_agent() is None:
        raise BadSchedule(
            "missing --agent or --team", hint="Example: --agent coder, or --team dev."
        )
    if options.agent is not None and options.team is not None:
        raise BadSchedule("give --agent or --team, not both", hint="A schedule has one recipient.")
    return options.agent or (None if options.team else acting_agent()), options.team


def parse_reply_address(tx: Transaction, options: ScheduleOptions) -> tuple[DeliveryAddress, str]:
    """Return the reply address and the person's name; in a run, by default those of the run."""
    run = acting_run()
    if options.to is not None:
        address = parse_address(options.to, tx.settings)
        if run is not None:
            _require_recipient(tx, run, address)
        return address, DEFAULT_SENDER
    if run is None:
        raise BadPlace(
            "missing --to",
            hint="Use --to owner, --to nowhere, or a channel and an address: "
            "--to telegram:123456789.",
        )
    return current_reply_address(tx, run.agent)


def _require_recipient(tx: Transaction, run: Run, address: DeliveryAddress) -> None:
    if not address.nowhere:
        chat = None if address.reply_to is None else address.reply_to.chat
        require_recipient(tx, run, address.channel, chat or address.sender_id)


def parse_changes(tx: Transaction, options: ScheduleOptions, before: Schedule) -> ScheduleChange:
    """Return the new values that the options give."""
    change = ScheduleChange()
    if options.agent is not None or options.team is not None:
        change["agent"], change["team_id"] = parse_target(options)
    if options.when or options.on is not None:
        if not options.when:
            _refuse_days(options)
        change["timing"] = _timing(tx, options, options.zone or before.timing.zone)
    elif options.zone is not None:
        change["timing"] = _in_zone(tx, before.timing, options.zone)
    if options.to is not None:
        change["place"], change["sender"] = parse_reply_address(tx, options)
    if options.label is not None:
        change["label"] = options.label or None
    if options.missed is not None:
        change["missed"] = MissedPolicy(options.missed)
    if options.overlap is not None:
        change["overlap"] = OverlapPolicy(options.overlap)
    if options.jitter is not None:
        change["jitter"] = parse_duration(options.jitter)
    return change


def _timing(tx: Transaction, options: ScheduleOptions, zone_name: str) -> Timing:
    if len(options.when) != 1:
        text = "give only one option for the time" if options.when else "missing the time"
        raise BadSchedule(text, hint=f"Use one of {TIMING_EXAMPLES}.")
    if options.daily is not None:
        return cron_timing(daily_cron(options.daily, options.on), zone_name, tx.now)
    _refuse_days(options)
    if options.cron is not None:
        return cron_timing(options.cron, zone_name, tx.now)
    if options.every is not None:
        return every_timing(parse_duration(options.every), zone_name, tx.now)
    if options.at is not None:
        at = parse_time(options.at, zone_name)
    else:
        at = tx.now + parse_duration(options.within or "")
    if acting_agent() is not None and tx.now < at < tx.now + MIN_INTERVAL_MS:
        # Otherwise an agent that schedules itself in each run never stops.
        raise BadSchedule(
            "an agent may not schedule within the next minute",
            hint="Use at least one minute, for example `--in 20m`.",
        )
    return once_timing(at, zone_name, tx.now)


def _refuse_days(options: ScheduleOptions) -> None:
    if options.on is not None:
        raise BadSchedule("--on needs --daily", hint="Example: --daily 09:00 --on weekdays.")


def _in_zone(tx: Transaction, timing: Timing, zone_name: str) -> Timing:
    """Move a timing to a zone; for intervals and single times, the zone is only for display."""
    if timing.kind is TimingKind.CRON:
        return cron_timing(timing.cron or "", zone_name, tx.now)
    return replace(timing, zone=get_zone(zone_name).key)


def author() -> str:
    """Return the author of schedules that this command creates."""
    agent = acting_agent()
    return OWNER_AUTHOR if agent is None else f"{AGENT_AUTHOR_PREFIX}{agent}"


def editable_schedule(tx: Transaction, name: str, *, makes_work: bool = False) -> Schedule:
    """Return a schedule that the author may change.

    With `makes_work` the author must also be allowed to schedule for its agent. The schedule is
    not locked then: the work locks the agent's lane, and a lane is locked before a schedule.
    """
    schedule = get_schedule(tx, name) if makes_work else lock_schedule(tx, name)
    check_author(author(), schedule)
    _require_visible(tx, schedule)
    if makes_work:
        check_reach(tx, author(), schedule.agent, schedule.team_id)
    return schedule


def visible_schedule(tx: Transaction, name: str) -> Schedule:
    """Return a schedule that the author may see."""
    schedule = get_schedule(tx, name)
    _require_visible(tx, schedule)
    return schedule


def visible_schedules(tx: Transaction, wanted: ScheduleFilter = ALL_SCHEDULES) -> list[Schedule]:
    """Return the schedules that match the filter and that the author may see."""
    run = acting_run()
    schedules = list_schedules(tx, wanted)
    if run is None:
        return schedules
    return [
        each
        for each in schedules
        if _concerns(tx, run.agent, each) and _within_reach(tx, run, each)
    ]


def _require_visible(tx: Transaction, schedule: Schedule) -> None:
    run = acting_run()
    if run is None:
        return
    hint = "List visible schedules: bullpen schedule list"
    if not _concerns(tx, run.agent, schedule):
        raise OutOfReach(
            f"schedule {schedule.id} is neither by @{run.agent} nor for @{run.agent}",
            hint=hint,
        )
    if not _within_reach(tx, run, schedule):
        raise OutOfReach(
            f"schedule {schedule.id} is not for the person whom @{run.agent} answers now", hint=hint
        )


def _within_reach(tx: Transaction, run: Run, schedule: Schedule) -> bool:
    """Whether a schedule has the recipients of the run; none, if the run has none."""
    if run.reach is not Reach.CONVERSATION:
        return True
    place, owner = schedule.place, owner_address(tx.settings)
    if not run.recipients:
        return place.nowhere or (place.channel, place.sender_id) == (owner.channel, owner.sender_id)
    keys = [f"#{place.sender_id}" if place.sender_id else f"@{schedule.sender}"]
    keys += [] if place.reply_to is None else [f"/{place.reply_to.chat}"]
    return any((place.channel, key) in run.recipients for key in keys)


def _concerns(tx: Transaction, agent: str, schedule: Schedule) -> bool:
    if agent in (schedule.agent, agent_of_author(schedule.made_by)):
        return True
    return schedule.team_id in {team.id for team in teams_of(tx, agent)}


def format_target(schedule: Schedule) -> str:
    """Return the recipient, such as `@coder`."""
    return f"@{schedule.agent or schedule.team_id}"


def schedule_fields(schedule: Schedule, now: int) -> dict[str, object]:
    """Return a schedule for a JSON document; times are milliseconds since 1970."""
    fields = asdict(schedule)
    fields.update(fields.pop("timing"))
    del fields["anchor"], fields["place"], fields["paused"]
    return {
        **fields,
        "to": str(schedule.place),
        "meaning": describe_timing(schedule.timing),
        "next": next_due_times(schedule, now),
    }


def schedule_row(schedule: Schedule, now: int, zone: str) -> tuple[str, ...]:
    """Return a schedule's row in the list; its zone is shown unless it is `zone`."""
    due = schedule.due_at
    reason = f" ({schedule.reason})" if schedule.reason else ""
    return (
        schedule.label or schedule.id,
        format_target(schedule),
        _brief_timing(schedule.timing, zone),
        "" if due is None else f"in {format_duration(due - now)}",
        join(format_state(schedule.state), reason),
    )


def format_next(schedule: Schedule, now: int) -> Iterator[str]:
    """Yield the lines with the next due times of a schedule, or the reason for their absence."""
    if schedule.state is ScheduleState.DONE:
        yield "No due times left."
    elif schedule.state is ScheduleState.PAUSED:
        yield f"Paused: {schedule.reason}. Next: bullpen schedule resume {schedule.id}"
    else:
        yield "Next due times:"
        for each in next_due_times(schedule, now):
            yield f"  {format_time(each, schedule.timing.zone)}"


def format_schedule(schedule: Schedule, now: int) -> Iterator[str]:
    """Yield the lines of `bullpen schedule show`."""
    timing = schedule.timing
    yield from format_fields(
        ("id", schedule.id),
        ("label", schedule.label or None),
        ("for", format_target(schedule)),
        ("text", schedule.message),
        ("when", describe_timing(timing)),
        ("cron", timing.cron or None),
        ("zone", timing.zone),
        ("reply to", str(schedule.place)),
        ("missed", schedule.missed),
        ("overlap", schedule.overlap),
        ("jitter", format_interval(schedule.jitter) if schedule.jitter else None),
        ("state", schedule.state),
        ("created by", schedule.made_by),
        ("created at", format_time(schedule.created_at, timing.zone)),
        width=11,
    )
    yield from format_next(schedule, now)


def run_row(run: ScheduleRun, zone: str) -> tuple[str, ...]:
    """Return a run's row in the history; "by hand" is a run of `bullpen schedule now`."""
    if run.due_at is None:
        due = f"by hand {format_time(run.fired_at, zone)}"
    else:
        due = format_time(run.due_at, zone)
    if run.until is not None and run.times > 1:
        due = f"{due} to {format_time(run.until, zone)}"
    outcome = f"{run.outcome} ({run.times} times)" if run.times > 1 else run.outcome
    state = format_state(run.state) if run.state else ""
    cost = f"${run.cost:.4f}" if run.cost else ""
    why = run.error or run.reason or ""
    return due, outcome, run.message_id or "", state, cost, delivery_state(run), why


def delivery_state(run: ScheduleRun) -> str:
    """Return the delivery state of each answer of a run."""
    states = []
    for each in run.deliveries:
        delivered = each.status == ResponseState.ACKED
        text = "delivered" if delivered else each.status
        receipts = f" {','.join(each.receipts)}" if each.receipts else ""
        error = f" ({each.error})" if each.error and not delivered else ""
        states.append(f"{each.channel}: {text}{receipts}{error}")
    return "; ".join(states)


def _brief_timing(timing: Timing, zone: str) -> str:
    """The timing for a narrow column; the time of a single run is in the column beside it."""
    match timing.kind:
        case TimingKind.CRON:
            return f"{timing.cron}{'' if timing.zone == zone else f' {timing.zone}'}"
        case TimingKind.EVERY:
            return f"every {format_interval(timing.every or 0)}"
        case TimingKind.ONCE:
            return "once"
        case never:
            assert_never(never)
