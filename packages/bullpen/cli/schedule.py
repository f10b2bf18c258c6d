"""bullpen schedule: texts that agents get at set times."""

from __future__ import annotations

from collections.abc import Iterator

import click

from bullpen.cli import completion
from bullpen.cli.command import (
    Result,
    acting_agent,
    command,
    json_requested,
    print_notes,
    read_transaction,
    write_transaction,
)
from bullpen.cli.filters import check_filters
from bullpen.cli.lazy import LazyGroup
from bullpen.cli.options import Count, limit_option, require_change, yes
from bullpen.cli.output import confirm
from bullpen.cli.schedule_options import (
    ScheduleOptions,
    author,
    editable_schedule,
    format_next,
    format_schedule,
    format_target,
    parse_changes,
    parse_reply_address,
    parse_target,
    parse_timing,
    run_row,
    schedule_fields,
    schedule_options,
    schedule_row,
    visible_schedule,
    visible_schedules,
)
from bullpen.core.clock import format_time, owner_zone_name, parse_duration
from bullpen.core.roster.teams import get_team
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
    NewSchedule,
    OverlapPolicy,
    Schedule,
    ScheduleFilter,
    ScheduleState,
    get_schedule,
)
from bullpen.core.schedules.timing import MissedPolicy, describe_timing
from bullpen.core.settings import Settings
from bullpen.core.store.transaction import Transaction

SCHEDULE_STATES = click.Choice([each.value for each in ScheduleState])
NO_SCHEDULES = (
    "No schedules match. "
    'Next: bullpen schedule add "Sum up the news" --agent assistant --daily 09:00 --to owner'
)


@click.group(cls=LazyGroup)
def schedule() -> None:
    """Send texts to agents at set times.

    NAME is the id or the label of a schedule.

    \b
    Example:
      bullpen schedule add "Sum up the news" --agent assistant --daily 09:00 --to owner
    """


names_argument = click.argument(
    "names", nargs=-1, required=True, shell_complete=completion.schedules, metavar="NAME..."
)


@command(schedule, in_runs=True, tx="write")
@click.argument("text")
@schedule_options(new=True)
@click.option("--paused", is_flag=True, help="Create it paused.")
def add(tx: Transaction, /, text: str, paused: bool, **options: str | None) -> Result:
    """Create a schedule that sends TEXT to an agent or team.

    The time is one of --daily, --cron, --every, --at and --in. In its run, an agent may leave out
    the recipient and --to: the schedule is for the agent, and its answers go to the person whom
    the run answers.

    \b
    Examples:
      bullpen schedule add "Stand-up!" --team dev --daily 09:00 --on weekdays --to owner
      bullpen schedule add "Is the site up?" --agent ops --every 30m --to telegram:123456789
    """
    parsed = ScheduleOptions(**options)
    agent, team = parse_target(parsed)
    address, sender = parse_reply_address(tx, parsed)
    new = NewSchedule(
        message=text,
        timing=parse_timing(tx, parsed),
        agent=agent,
        team_id=team,
        label=parsed.label,
        place=address,
        sender=sender,
        missed=MissedPolicy(parsed.missed or MissedPolicy.ONE),
        overlap=OverlapPolicy(parsed.overlap or OverlapPolicy.SKIP),
        jitter=parse_duration(parsed.jitter) if parsed.jitter is not None else 0,
        paused=paused,
    )
    added = add_schedule(tx, new, author())
    return Result(schedule_fields(added, tx.now), _format_change(added, tx.now, "Created"))


@command(schedule, in_runs=True, tx="read", listing=True)
@click.option(
    "--agent",
    metavar="AGENT",
    shell_complete=completion.agents,
    help="Only schedules for this agent.",
)
@click.option(
    "--team", metavar="TEAM", shell_complete=completion.teams, help="Only schedules for this team."
)
@click.option("--state", type=SCHEDULE_STATES, help="Only schedules in this state.")
def list_(tx: Transaction, agent: str | None, team: str | None, state: str | None) -> Result:
    """List schedules.

    In its run, an agent sees the schedules that it created and those for itself.

    \b
    Example:
      bullpen schedule list --agent coder --state active
    """
    check_filters(tx, agent=agent)
    if team is not None:
        get_team(tx, team)
    wanted = ScheduleFilter(
        agent=agent, team_id=team, state=None if state is None else ScheduleState(state)
    )
    schedules, now = visible_schedules(tx, wanted), tx.now
    rows: list[tuple[str, ...]] = [("SCHEDULE", "FOR", "WHEN", "NEXT", "STATE")]
    zone = owner_zone_name(tx.settings)
    rows += [schedule_row(each, now, zone) for each in schedules]
    fields = (schedule_fields(each, now) for each in schedules)
    ids = (each.id for each in schedules)
    return Result(fields, rows=rows, empty=NO_SCHEDULES, ids=ids)


@command(schedule, in_runs=True, tx="read")
@click.argument("name", shell_complete=completion.schedules)
def show(tx: Transaction, name: str) -> Result:
    """Show a schedule with its next due times.

    \b
    Example:
      bullpen schedule show schedule_a1b2c3d4
    """
    schedule, now = visible_schedule(tx, name), tx.now
    return Result(schedule_fields(schedule, now), format_schedule(schedule, now))


@command(schedule, in_runs=True, tx="write")
@click.argument("name", shell_complete=completion.schedules)
@click.option("--text", metavar="TEXT", help="Text that the agent gets.")
@schedule_options(new=False)
def set_(tx: Transaction, /, name: str, text: str | None, **options: str | None) -> Result:
    """Change the given options of a schedule.

    `--label ''` removes the label.

    \b
    Example:
      bullpen schedule set stand-up --daily 09:30 --on weekdays --zone Europe/Berlin
    """
    require_change({"text": text, **options})
    before = editable_schedule(tx, name)
    change = parse_changes(tx, ScheduleOptions(**options), before)
    if text is not None:
        change["message"] = text
    changed = change_schedule(tx, before.id, author(), **change)
    return Result(schedule_fields(changed, tx.now), _format_change(changed, tx.now, "Changed"))


@command(schedule, in_runs=True, tx="write")
@names_argument
@click.option(
    "--reason", metavar="TEXT", show_default="paused by hand", help="Reason that is shown."
)
def pause(tx: Transaction, names: tuple[str, ...], reason: str | None) -> Result:
    """Pause schedules until they are resumed.

    \b
    Example:
      bullpen schedule pause stand-up --reason "on holiday"
    """
    agent = acting_agent()
    why = reason or ("paused by hand" if agent is None else f"paused by @{agent}")
    paused = [
        pause_schedule(tx, editable_schedule(tx, each).id, why) for each in sorted(set(names))
    ]
    return Result(
        [schedule_fields(each, tx.now) for each in paused], [_format_pause(each) for each in paused]
    )


@command(schedule, in_runs=True, tx="write")
@names_argument
def resume(tx: Transaction, names: tuple[str, ...]) -> Result:
    """Resume paused schedules.

    Due times that passed while a schedule was paused do not count as missed.

    \b
    Example:
      bullpen schedule resume stand-up
    """
    ids = [editable_schedule(tx, each, makes_work=True).id for each in sorted(set(names))]
    resumed, now = [resume_schedule(tx, each) for each in dict.fromkeys(ids)], tx.now
    return Result(
        [schedule_fields(each, now) for each in resumed],
        [line for each in resumed for line in _format_change(each, now, "Resumed")],
    )


@command(schedule, in_runs=True)
@names_argument
@yes
def remove(settings: Settings, names: tuple[str, ...], yes: bool) -> Result:
    """Remove schedules.

    Messages that they have enqueued stay in the queue.

    \b
    Example:
      bullpen schedule remove stand-up
    """
    with read_transaction(settings) as tx:
        schedules = {each.id: each for each in (visible_schedule(tx, each) for each in names)}
    confirm("\n".join(f"Remove {_describe(each)}" for each in schedules.values()), yes)
    with write_transaction(settings) as tx:
        for each in sorted(schedules):
            remove_schedule(tx, editable_schedule(tx, each).id)
    return Result({"removed": list(schedules)}, [f"Removed {each}." for each in schedules])


@command(schedule, people_only="run schedules at once", tx="write")
@click.argument("name", shell_complete=completion.schedules)
def now(tx: Transaction, name: str) -> Result:
    """Enqueue the message of a schedule now.

    Works in every state of the schedule, and does not change its due times.

    \b
    Example:
      bullpen schedule now stand-up
    """
    schedule = get_schedule(tx, name)
    message_id = run_schedule_now(tx, schedule.id)
    return Result(
        {"schedule": schedule.id, "message_id": message_id},
        f"Enqueued message {message_id} of schedule {schedule.label or schedule.id} "
        f"for {format_target(schedule)}. Next: bullpen trace {message_id}",
    )


@command(schedule, in_runs=True, tx="read")
@click.argument("name", shell_complete=completion.schedules)
@click.option(
    "-n",
    "--count",
    type=Count(1, 1000),
    default=5,
    show_default=True,
    help="Number of due times.",
)
def next_(tx: Transaction, name: str, count: int) -> Result:
    """Show the next due times of a schedule.

    For a paused schedule, the due times that it would have.

    \b
    Example:
      bullpen schedule next stand-up --count 10
    """
    schedule = visible_schedule(tx, name)
    times = next_due_times(schedule, tx.now, count)
    if schedule.state is not ScheduleState.ACTIVE and not json_requested():
        print_notes([f"{schedule.id} is {schedule.state}"])
    return Result(times, [format_time(each, schedule.timing.zone) for each in times])


@command(schedule, in_runs=True, tx="read", listing=True)
@click.argument("name", shell_complete=completion.schedules)
@limit_option()
def history(tx: Transaction, name: str, limit: int) -> Result:
    """List past runs of a schedule, newest first.

    \b
    Example:
      bullpen schedule history stand-up -n 5
    """
    schedule = visible_schedule(tx, name)
    runs = list_schedule_runs(tx, schedule.id, None, limit)
    rows: list[tuple[str, ...]] = [
        ("DUE", "OUTCOME", "MESSAGE", "STATE", "COST", "DELIVERY", "REASON")
    ]
    rows += [run_row(each, schedule.timing.zone) for each in runs]
    empty = f"No runs of {schedule.id} yet. Next: bullpen schedule now {schedule.id}"
    ids = (each.message_id for each in runs if each.message_id is not None)
    return Result(runs, rows=rows, empty=empty, ids=ids)


def _format_change(schedule: Schedule, now: int, change: str) -> Iterator[str]:
    """Yield the confirmation of a change, such as "Created", with the next due times."""
    label = f" ({schedule.label})" if schedule.label else ""
    yield f"{change} schedule {schedule.id}{label} for {format_target(schedule)}."
    timing = describe_timing(schedule.timing).removesuffix(".")
    yield f"{timing}, {schedule.timing.zone}. Replies go to {schedule.place}."
    yield from format_next(schedule, now)


def _format_pause(schedule: Schedule) -> str:
    if schedule.state is ScheduleState.DONE:
        return f"{schedule.id} has no due times left."
    return f"Paused {schedule.id}. Next: bullpen schedule resume {schedule.id}"


def _describe(schedule: Schedule) -> str:
    label = f" ({schedule.label})" if schedule.label else ""
    return f"schedule {schedule.id}{label} for {format_target(schedule)}"
