"""bullpen schedule: what agents are to be told, and when."""

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
from bullpen.cli.lazy import LazyGroup
from bullpen.cli.options import limit_option, yes
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
from bullpen.core.clock import format_time, parse_duration
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
    "There are no schedules. "
    'Next: bullpen schedule add "what to do" --agent assistant --every 1d --to owner'
)


@click.group(cls=LazyGroup)
def schedule() -> None:
    """Let agents be asked at certain times. NAME is a schedule's id or its label.

    \b
    Example:
      bullpen schedule add "Sum up the news" --agent assistant --cron "0 9 * * 1-5" --to owner
    """


names_argument = click.argument(
    "names", nargs=-1, required=True, shell_complete=completion.schedules, metavar="NAME..."
)


@command(schedule, in_runs=True, tx="write")
@click.argument("text")
@schedule_options
@click.option("--paused", is_flag=True, help="Make it, and let it fire when it is resumed.")
def add(tx: Transaction, /, text: str, paused: bool, **options: str | None) -> Result:
    """Let an agent or a team be told TEXT at certain times.

    Say when by one of --cron, --every, --at and --in. An agent that schedules something need not
    say for whom, nor where the answer goes: it is for itself, and for whoever asked it.

    \b
    Examples:
      bullpen schedule add "Stand-up!" --team dev --cron "0 9 * * 1-5" --to owner
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
    return Result(schedule_fields(added, tx.now), _format_change(added, tx.now, "is made"))


@command(schedule, in_runs=True, tx="read")
@click.option("--agent", shell_complete=completion.agents, help="Only those for this agent.")
@click.option("--team", shell_complete=completion.teams, help="Only those for this team.")
@click.option("--state", type=SCHEDULE_STATES, help="Only those in this state.")
def list_(tx: Transaction, agent: str | None, team: str | None, state: str | None) -> Result:
    """List schedules. An agent sees what it made and what is for it.

    \b
    Example:
      bullpen schedule list --agent coder --state active
    """
    wanted = ScheduleFilter(
        agent=agent, team_id=team, state=None if state is None else ScheduleState(state)
    )
    schedules, now = visible_schedules(tx, wanted), tx.now
    rows: list[tuple[str, ...]] = [
        ("SCHEDULE", "LABEL", "ASKS", "WHEN", "NEXT", "ANSWERS TO", "STATE")
    ]
    rows += [schedule_row(each) for each in schedules]
    fields = (schedule_fields(each, now) for each in schedules)
    return Result(fields, rows=rows, empty=NO_SCHEDULES)


@command(schedule, in_runs=True, tx="read")
@click.argument("name", shell_complete=completion.schedules)
def show(tx: Transaction, name: str) -> Result:
    """Show everything about one schedule.

    \b
    Example:
      bullpen schedule show schedule_a1b2c3d4
    """
    schedule, now = visible_schedule(tx, name), tx.now
    return Result(schedule_fields(schedule, now), format_schedule(schedule, now))


@command(schedule, in_runs=True, tx="write")
@click.argument("name", shell_complete=completion.schedules)
@click.option("--text", help="What is said.")
@schedule_options
def set_(tx: Transaction, /, name: str, text: str | None, **options: str | None) -> Result:
    """Change what is named; the rest stays. --label '' takes the label away.

    \b
    Example:
      bullpen schedule set stand-up --cron "30 9 * * 1-5" --zone Europe/Berlin
    """
    before = editable_schedule(tx, name)
    change = parse_changes(tx, ScheduleOptions(**options), before)
    if text is not None:
        change["message"] = text
    changed = change_schedule(tx, before.id, author(), **change)
    return Result(schedule_fields(changed, tx.now), _format_change(changed, tx.now, "is changed"))


@command(schedule, in_runs=True, tx="write")
@names_argument
@click.option("--reason", help="Why, for people.")
def pause(tx: Transaction, names: tuple[str, ...], reason: str | None) -> Result:
    """Let schedules fire no more until they are resumed.

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
    """Let schedules fire again, from now on: what came due meanwhile was not missed.

    \b
    Example:
      bullpen schedule resume stand-up
    """
    ids = [editable_schedule(tx, each, makes_work=True).id for each in sorted(set(names))]
    resumed, now = [resume_schedule(tx, each) for each in dict.fromkeys(ids)], tx.now
    return Result(
        [schedule_fields(each, now) for each in resumed],
        [line for each in resumed for line in _format_change(each, now, "goes on")],
    )


@command(schedule, in_runs=True)
@names_argument
@yes
def remove(settings: Settings, names: tuple[str, ...], yes: bool) -> Result:
    """Remove schedules; what they have put into a queue stays there.

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
    return Result({"removed": list(schedules)}, [f"{each} is removed" for each in schedules])


@command(schedule, people_only="let a schedule run at once", tx="write")
@click.argument("name", shell_complete=completion.schedules)
def now(tx: Transaction, name: str) -> Result:
    """Let a schedule run at once, whatever its state; its own times stay as they are.

    \b
    Example:
      bullpen schedule now stand-up
    """
    schedule = get_schedule(tx, name)
    message_id = run_schedule_now(tx, schedule.id)
    return Result(
        {"schedule": schedule.id, "message_id": message_id},
        f"{format_target(schedule)} is asked: {message_id}. "
        f"Next: bullpen schedule history {schedule.id}",
    )


@command(schedule, in_runs=True, tx="read")
@click.argument("name", shell_complete=completion.schedules)
@click.option(
    "--count", type=click.IntRange(1, 1000), default=5, show_default=True, help="How many."
)
def next_(tx: Transaction, name: str, count: int) -> Result:
    """Show when a schedule is due next; of one that is paused, when it would be.

    \b
    Example:
      bullpen schedule next stand-up --count 10
    """
    schedule = visible_schedule(tx, name)
    times = next_due_times(schedule, tx.now, count)
    if schedule.state is not ScheduleState.ACTIVE and not json_requested():
        print_notes([f"{schedule.id} is {schedule.state}"])
    return Result(times, [format_time(each, schedule.timing.zone) for each in times])


@command(schedule, in_runs=True, tx="read")
@click.argument("name", shell_complete=completion.schedules)
@limit_option()
def history(tx: Transaction, name: str, limit: int) -> Result:
    """Show what became of a schedule's runs, the newest first.

    \b
    Example:
      bullpen schedule history stand-up --limit 5
    """
    schedule = visible_schedule(tx, name)
    runs = list_schedule_runs(tx, schedule.id, None, limit)
    rows: list[tuple[str, ...]] = [("DUE", "OUTCOME", "MESSAGE", "STATE", "COST", "ANSWER", "WHY")]
    rows += [run_row(each, schedule.timing.zone) for each in runs]
    empty = f"{schedule.id} has not run yet. Next: bullpen schedule now {schedule.id}"
    return Result(runs, rows=rows, empty=empty)


def _format_change(schedule: Schedule, now: int, change: str) -> Iterator[str]:
    """Yield the lines about a schedule after `change`, as "is made", with its next times."""
    timing = describe_timing(schedule.timing)
    yield f"{schedule.id} {change}: {format_target(schedule)} is asked. {timing}"
    yield f"The answers go to {schedule.place}; times are those of {schedule.timing.zone}."
    yield from format_next(schedule, now)


def _format_pause(schedule: Schedule) -> str:
    if schedule.state is ScheduleState.DONE:
        return f"{schedule.id} has nothing to come any more"
    return f"{schedule.id} is paused. Next: bullpen schedule resume {schedule.id}"


def _describe(schedule: Schedule) -> str:
    label = f" ({schedule.label})" if schedule.label else ""
    return f"the schedule {schedule.id}{label} for {format_target(schedule)}"
