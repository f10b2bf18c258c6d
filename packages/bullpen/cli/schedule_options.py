"""Options of bullpen schedule, and how schedules are printed."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace

import click

from bullpen.cli import completion
from bullpen.cli.command import acting_agent
from bullpen.cli.output import Function
from bullpen.core.clock import (
    format_interval,
    format_time,
    get_zone,
    owner_zone_name,
    parse_duration,
    parse_time,
)
from bullpen.core.errors import BadPlace, BadSchedule, OutOfReach
from bullpen.core.outbox.addresses import DeliveryAddress, parse_address
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
    describe_timing,
    every_timing,
    once_timing,
)
from bullpen.core.states import ResponseState
from bullpen.core.store.transaction import Transaction

TIMING_EXAMPLES = "--cron '0 9 * * 1-5', --every 30m, --at 2026-12-24T18:00 or --in 20m"

_OPTIONS = (
    click.option("--agent", shell_complete=completion.agents, help="Who is asked."),
    click.option(
        "--team", shell_complete=completion.teams, help="Which team is asked: its leader."
    ),
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


def author() -> str:
    """As whom a schedule is made or touched."""
    agent = acting_agent()
    return OWNER_AUTHOR if agent is None else f"{AGENT_AUTHOR_PREFIX}{agent}"


def editable_schedule(tx: Transaction, name: str, *, makes_work: bool = False) -> Schedule:
    """A schedule that may be changed by who acts; with work, as much as if it were made now."""
    # Work locks the agent's lane, and a lane is locked before a schedule.
    schedule = get_schedule(tx, name) if makes_work else lock_schedule(tx, name)
    check_author(author(), schedule)
    if makes_work:
        check_reach(tx, author(), schedule.agent, schedule.team_id)
    return schedule


def visible_schedule(tx: Transaction, name: str) -> Schedule:
    """A schedule that may be looked at by who acts."""
    schedule = get_schedule(tx, name)
    agent = agent_of_author(author())
    if agent is not None and not _concerns(tx, agent, schedule):
        raise OutOfReach(
            f"the schedule {schedule.id} is neither made by @{agent} nor for it",
            hint="`bullpen schedule list` shows those that are.",
        )
    return schedule


def visible_schedules(tx: Transaction, wanted: ScheduleFilter = ALL_SCHEDULES) -> list[Schedule]:
    """Those of the wanted that may be looked at by who acts."""
    agent = agent_of_author(author())
    found = list_schedules(tx, wanted)
    return found if agent is None else [each for each in found if _concerns(tx, agent, each)]


def _concerns(tx: Transaction, agent: str, schedule: Schedule) -> bool:
    if agent in (schedule.agent, agent_of_author(schedule.made_by)):
        return True
    return schedule.team_id in {team.id for team in teams_of(tx, agent)}


def format_target(schedule: Schedule) -> str:
    """Who is asked."""
    return f"@{schedule.agent or schedule.team_id}"


def schedule_fields(schedule: Schedule, now: int) -> dict[str, object]:
    """All of it for a JSON document; times are milliseconds since 1970."""
    fields = asdict(schedule)
    fields.update(fields.pop("timing"))
    del fields["anchor"], fields["place"], fields["paused"]
    return {
        **fields,
        "to": str(schedule.place),
        "meaning": describe_timing(schedule.timing),
        "next": next_due_times(schedule, now),
    }


def schedule_row(schedule: Schedule) -> tuple[str, ...]:
    """A line of the list."""
    zone = schedule.timing.zone
    state = f"{schedule.state} ({schedule.reason})" if schedule.reason else schedule.state
    due = "" if schedule.due_at is None else format_time(schedule.due_at, zone)
    to = str(schedule.place)
    return (
        schedule.id,
        schedule.label or "",
        format_target(schedule),
        _brief(schedule),
        due,
        to,
        state,
    )


def print_next(schedule: Schedule, now: int) -> None:
    """When it is due next, in its zone; or why it is not."""
    if schedule.state is ScheduleState.DONE:
        click.echo("Nothing of it comes any more.")
    elif schedule.state is ScheduleState.PAUSED:
        click.echo(f"It is paused: {schedule.reason}. Next: bullpen schedule resume {schedule.id}")
    else:
        click.echo("It is due next at")
        for each in next_due_times(schedule, now):
            click.echo(f"  {format_time(each, schedule.timing.zone)}")


def print_schedule(schedule: Schedule, now: int) -> None:
    """Everything about one."""
    timing = schedule.timing
    for name, value in (
        ("id", schedule.id),
        ("label", schedule.label or ""),
        ("asks", format_target(schedule)),
        ("text", schedule.message),
        ("when", describe_timing(timing)),
        ("cron", timing.cron or ""),
        ("zone", timing.zone),
        ("answers to", str(schedule.place)),
        ("missed", schedule.missed),
        ("overlap", schedule.overlap),
        ("jitter", format_interval(schedule.jitter) if schedule.jitter else ""),
        ("state", schedule.state),
        ("made by", schedule.made_by),
        ("made at", format_time(schedule.created_at, timing.zone)),
    ):
        if value:
            click.echo(f"{name:<11} {value}")
    print_next(schedule, now)


def run_row(run: ScheduleRun, zone: str) -> tuple[str, ...]:
    """A line of the history."""
    due = f"by hand {format_time(run.fired_at, zone)}" if run.due_at is None else ""
    due = due or format_time(run.due_at or 0, zone)
    if run.until is not None and run.times > 1:
        due = f"{due} to {format_time(run.until, zone)}"
    outcome = f"{run.outcome} ({run.times} times)" if run.times > 1 else run.outcome
    cost = f"${run.cost:.4f}" if run.cost else ""
    why = run.error or run.reason or ""
    return due, outcome, run.message_id or "", run.state or "", cost, delivery_state(run), why


def delivery_state(run: ScheduleRun) -> str:
    """Whether its answers got there; empty if there are none."""
    said = []
    for each in run.deliveries:
        taken = each.status == ResponseState.ACKED
        text = "delivered" if taken else each.status
        receipts = f" {','.join(each.receipts)}" if each.receipts else ""
        error = f" ({each.error})" if each.error and not taken else ""
        said.append(f"{each.channel}: {text}{receipts}{error}")
    return "; ".join(said)


def _brief(schedule: Schedule) -> str:
    timing = schedule.timing
    if timing.kind is TimingKind.CRON:
        return f"{timing.cron} {timing.zone}"
    said = describe_timing(timing)
    return said[0].lower() + said[1:]
