"""bullpen schedule: what agents are to be told, and when."""

from __future__ import annotations

import click

from bullpen.cli import completion
from bullpen.cli.command import acting_agent, read_transaction, require_person, write_transaction
from bullpen.cli.lazy import LazyGroup
from bullpen.cli.output import (
    as_json,
    confirm,
    limit_option,
    print_json,
    print_result,
    print_table,
    yes,
)
from bullpen.cli.schedule_options import (
    ScheduleOptions,
    author,
    editable_schedule,
    format_target,
    parse_changes,
    parse_reply_address,
    parse_target,
    parse_timing,
    print_next,
    print_schedule,
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

SCHEDULE_STATES = click.Choice([each.value for each in ScheduleState])
NO_SCHEDULES = (
    "There are no schedules. "
    'Next: bullpen schedule add "what to do" --agent assistant --every 1d --to owner'
)


@click.group(cls=LazyGroup, modules={})
def schedule() -> None:
    """Let agents be asked at certain times. NAME is a schedule's id or its label.

    \b
    Example:
      bullpen schedule add "Sum up the news" --agent assistant --cron "0 9 * * 1-5" --to owner
    """


@schedule.command()
@click.argument("text")
@schedule_options
@click.option("--paused", is_flag=True, help="Make it, and let it fire when it is resumed.")
@as_json
@click.pass_obj
def add(settings: Settings, /, text: str, paused: bool, as_json: bool, **given: str | None) -> None:
    """Let an agent or a team be told TEXT at certain times.

    Say when by one of --cron, --every, --at and --in. An agent that schedules something need not
    say for whom, nor where the answer goes: it is for itself, and for whoever asked it.

    \b
    Examples:
      bullpen schedule add "Stand-up!" --team dev --cron "0 9 * * 1-5" --to owner
      bullpen schedule add "Is the site up?" --agent ops --every 30m --to telegram:123456789
    """
    asked = ScheduleOptions(**given)
    with write_transaction(settings) as tx:
        agent, team = parse_target(asked)
        place, sender = parse_reply_address(tx, asked)
        new = NewSchedule(
            message=text,
            timing=parse_timing(tx, asked),
            agent=agent,
            team_id=team,
            label=asked.label,
            place=place,
            sender=sender,
            missed=MissedPolicy(asked.missed or MissedPolicy.ONE),
            overlap=OverlapPolicy(asked.overlap or OverlapPolicy.SKIP),
            jitter=parse_duration(asked.jitter) if asked.jitter is not None else 0,
            paused=paused,
        )
        made, now = add_schedule(tx, new, author()), tx.now
    _tell(made, now, "is made", as_json)


@schedule.command(name="list")
@click.option("--agent", shell_complete=completion.agents, help="Only those for this agent.")
@click.option("--team", shell_complete=completion.teams, help="Only those for this team.")
@click.option("--state", type=SCHEDULE_STATES, help="Only those in this state.")
@as_json
@click.pass_obj
def list_(
    settings: Settings, agent: str | None, team: str | None, state: str | None, as_json: bool
) -> None:
    """List schedules. An agent sees what it made and what is for it.

    \b
    Example:
      bullpen schedule list --agent coder --state active
    """
    wanted = ScheduleFilter(
        agent=agent, team_id=team, state=None if state is None else ScheduleState(state)
    )
    with read_transaction(settings) as tx:
        found, now = visible_schedules(tx, wanted), tx.now
    if as_json:
        print_json([schedule_fields(each, now) for each in found])
        return
    rows: list[tuple[str, ...]] = [
        ("SCHEDULE", "LABEL", "ASKS", "WHEN", "NEXT", "ANSWERS TO", "STATE")
    ]
    rows += [schedule_row(each) for each in found]
    print_table(rows, NO_SCHEDULES)


@schedule.command()
@click.argument("name", shell_complete=completion.schedules)
@as_json
@click.pass_obj
def show(settings: Settings, name: str, as_json: bool) -> None:
    """Show everything about one schedule.

    \b
    Example:
      bullpen schedule show schedule_a1b2c3d4
    """
    with read_transaction(settings) as tx:
        found, now = visible_schedule(tx, name), tx.now
    if as_json:
        print_json(schedule_fields(found, now))
    else:
        print_schedule(found, now)


@schedule.command(name="set")
@click.argument("name", shell_complete=completion.schedules)
@click.option("--text", help="What is said.")
@schedule_options
@as_json
@click.pass_obj
def set_(
    settings: Settings, /, name: str, text: str | None, as_json: bool, **given: str | None
) -> None:
    """Change what is named; the rest stays. --label '' takes the label away.

    \b
    Example:
      bullpen schedule set stand-up --cron "30 9 * * 1-5" --zone Europe/Berlin
    """
    with write_transaction(settings) as tx:
        before = editable_schedule(tx, name)
        change = parse_changes(tx, ScheduleOptions(**given), before)
        if text is not None:
            change["message"] = text
        changed, now = change_schedule(tx, before.id, author(), **change), tx.now
    _tell(changed, now, "is changed", as_json)


@schedule.command()
@click.argument(
    "names", nargs=-1, required=True, shell_complete=completion.schedules, metavar="NAME..."
)
@click.option("--reason", help="Why, for people.")
@as_json
@click.pass_obj
def pause(settings: Settings, names: tuple[str, ...], reason: str | None, as_json: bool) -> None:
    """Let schedules fire no more until they are resumed.

    \b
    Example:
      bullpen schedule pause stand-up --reason "on holiday"
    """
    agent = acting_agent()
    why = reason or ("paused by hand" if agent is None else f"paused by @{agent}")
    with write_transaction(settings) as tx:
        paused = [
            pause_schedule(tx, editable_schedule(tx, each).id, why) for each in sorted(set(names))
        ]
        document = [schedule_fields(each, tx.now) for each in paused]
    print_result(as_json, document, *(_paused(each) for each in paused))


@schedule.command()
@click.argument(
    "names", nargs=-1, required=True, shell_complete=completion.schedules, metavar="NAME..."
)
@as_json
@click.pass_obj
def resume(settings: Settings, names: tuple[str, ...], as_json: bool) -> None:
    """Let schedules fire again, from now on: what came due meanwhile was not missed.

    \b
    Example:
      bullpen schedule resume stand-up
    """
    with write_transaction(settings) as tx:
        found = [editable_schedule(tx, each, makes_work=True).id for each in sorted(set(names))]
        resumed, now = [resume_schedule(tx, each) for each in dict.fromkeys(found)], tx.now
    if as_json:
        print_json([schedule_fields(each, now) for each in resumed])
        return
    for each in resumed:
        _show_made(each, now, "goes on")


@schedule.command()
@click.argument(
    "names", nargs=-1, required=True, shell_complete=completion.schedules, metavar="NAME..."
)
@yes
@as_json
@click.pass_obj
def remove(settings: Settings, names: tuple[str, ...], yes: bool, as_json: bool) -> None:
    """Remove schedules; what they have put into a queue stays there.

    \b
    Example:
      bullpen schedule remove stand-up
    """
    with read_transaction(settings) as tx:
        found = {each.id: each for each in (visible_schedule(tx, each) for each in names)}
    confirm("\n".join(f"Remove {_what(each)}" for each in found.values()), yes)
    with write_transaction(settings) as tx:
        for each in sorted(found):
            remove_schedule(tx, editable_schedule(tx, each).id)
    print_result(as_json, {"removed": list(found)}, *(f"{each} is removed" for each in found))


@schedule.command(name="now")
@click.argument("name", shell_complete=completion.schedules)
@as_json
@click.pass_obj
def now_(settings: Settings, name: str, as_json: bool) -> None:
    """Let a schedule run at once, whatever its state; its own times stay as they are.

    \b
    Example:
      bullpen schedule now stand-up
    """
    require_person("let a schedule run at once")
    with write_transaction(settings) as tx:
        found = get_schedule(tx, name)
        message = run_schedule_now(tx, found.id)
    print_result(
        as_json,
        {"schedule": found.id, "message_id": message},
        f"{format_target(found)} is asked: {message}. Next: bullpen schedule history {found.id}",
    )


@schedule.command(name="next")
@click.argument("name", shell_complete=completion.schedules)
@click.option(
    "--count", type=click.IntRange(1, 1000), default=5, show_default=True, help="How many."
)
@as_json
@click.pass_obj
def next_(settings: Settings, name: str, count: int, as_json: bool) -> None:
    """Show when a schedule is due next; of one that is paused, when it would be.

    \b
    Example:
      bullpen schedule next stand-up --count 10
    """
    with read_transaction(settings) as tx:
        found, now = visible_schedule(tx, name), tx.now
    times = next_due_times(found, now, count)
    if as_json:
        print_json(times)
        return
    if found.state is not ScheduleState.ACTIVE:
        click.echo(f"{found.id} is {found.state}", err=True)
    for each in times:
        click.echo(format_time(each, found.timing.zone))


@schedule.command()
@click.argument("name", shell_complete=completion.schedules)
@limit_option()
@as_json
@click.pass_obj
def history(settings: Settings, name: str, limit: int, as_json: bool) -> None:
    """Show what became of a schedule's runs, the newest first.

    \b
    Example:
      bullpen schedule history stand-up --limit 5
    """
    with read_transaction(settings) as tx:
        found = visible_schedule(tx, name)
        runs = list_schedule_runs(tx, found.id, None, limit)
    if as_json:
        print_json(runs)
        return
    rows: list[tuple[str, ...]] = [("DUE", "OUTCOME", "MESSAGE", "STATE", "COST", "ANSWER", "WHY")]
    rows += [run_row(each, found.timing.zone) for each in runs]
    print_table(rows, f"{found.id} has not run yet. Next: bullpen schedule now {found.id}")


def _tell(made: Schedule, now: int, done: str, as_json: bool) -> None:
    if as_json:
        print_json(schedule_fields(made, now))
    else:
        _show_made(made, now, done)


def _show_made(made: Schedule, now: int, done: str) -> None:
    click.echo(f"{made.id} {done}: {format_target(made)} is asked. {describe_timing(made.timing)}")
    click.echo(f"The answers go to {made.place}; times are those of {made.timing.zone}.")
    print_next(made, now)


def _paused(paused: Schedule) -> str:
    if paused.state is ScheduleState.DONE:
        return f"{paused.id} has nothing to come any more"
    return f"{paused.id} is paused. Next: bullpen schedule resume {paused.id}"


def _what(schedule: Schedule) -> str:
    label = f" ({schedule.label})" if schedule.label else ""
    return f"the schedule {schedule.id}{label} for {format_target(schedule)}"
