"""bullpen schedule: what agents are to be told, and when."""

from __future__ import annotations

import click

from bullpen.cli import ids
from bullpen.cli.acting import acting_agent, only_people
from bullpen.cli.commands import Commands
from bullpen.cli.confirm import confirm, yes
from bullpen.cli.output import as_json, how_many, reading, show_json, show_table, tell, writing
from bullpen.cli.schedule_given import (
    Given,
    changes,
    given_options,
    new_place,
    new_target,
    new_timing,
)
from bullpen.cli.schedule_own import author, own_schedule, shown_schedule, shown_schedules
from bullpen.cli.schedule_shown import (
    as_fields,
    as_row,
    run_row,
    show_all,
    show_next,
    target,
)
from bullpen.core.schedules.find import Wanted, see_schedule
from bullpen.core.schedules.fire import run_now
from bullpen.core.schedules.history import list_runs, next_times
from bullpen.core.schedules.meaning import meaning
from bullpen.core.schedules.plan import Missed
from bullpen.core.schedules.schedule import NewSchedule, Overlap, Schedule, ScheduleState
from bullpen.core.schedules.schedules import (
    add_schedule,
    change_schedule,
    remove_schedule,
    resume_schedule,
)
from bullpen.core.schedules.stop import pause_schedule
from bullpen.core.schedules.when import duration, written
from bullpen.core.settings import Settings

STATES = click.Choice([each.value for each in ScheduleState])
EMPTY = (
    "There are no schedules. "
    'Next: bullpen schedule add "what to do" --agent assistant --every 1d --to owner'
)


@click.group(cls=Commands, places={})
def schedule() -> None:
    """Let agents be asked at certain times. NAME is a schedule's id or its label.

    \b
    Example:
      bullpen schedule add "Sum up the news" --agent assistant --cron "0 9 * * 1-5" --to owner
    """


@schedule.command()
@click.argument("text")
@given_options
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
    asked = Given(**given)
    with writing(settings) as tx:
        agent, team = new_target(asked)
        place, sender = new_place(tx, asked)
        new = NewSchedule(
            message=text,
            timing=new_timing(tx, asked),
            agent=agent,
            team_id=team,
            label=asked.label,
            place=place,
            sender=sender,
            missed=Missed(asked.missed or Missed.ONE),
            overlap=Overlap(asked.overlap or Overlap.SKIP),
            jitter=duration(asked.jitter) if asked.jitter is not None else 0,
            paused=paused,
        )
        made, now = add_schedule(tx, new, author()), tx.now
    _tell(made, now, "is made", as_json)


@schedule.command(name="list")
@click.option("--agent", shell_complete=ids.agents, help="Only those for this agent.")
@click.option("--team", shell_complete=ids.teams, help="Only those for this team.")
@click.option("--state", type=STATES, help="Only those in this state.")
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
    wanted = Wanted(
        agent=agent, team_id=team, state=None if state is None else ScheduleState(state)
    )
    with reading(settings) as tx:
        found, now = shown_schedules(tx, wanted), tx.now
    if as_json:
        show_json([as_fields(each, now) for each in found])
        return
    rows: list[tuple[str, ...]] = [
        ("SCHEDULE", "LABEL", "ASKS", "WHEN", "NEXT", "ANSWERS TO", "STATE")
    ]
    rows += [as_row(each) for each in found]
    show_table(rows, EMPTY)


@schedule.command()
@click.argument("name", shell_complete=ids.schedules)
@as_json
@click.pass_obj
def show(settings: Settings, name: str, as_json: bool) -> None:
    """Show everything about one schedule.

    \b
    Example:
      bullpen schedule show schedule_a1b2c3d4
    """
    with reading(settings) as tx:
        found, now = shown_schedule(tx, name), tx.now
    if as_json:
        show_json(as_fields(found, now))
    else:
        show_all(found, now)


@schedule.command(name="set")
@click.argument("name", shell_complete=ids.schedules)
@click.option("--text", help="What is said.")
@given_options
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
    with writing(settings) as tx:
        before = own_schedule(tx, name)
        change = changes(tx, Given(**given), before)
        if text is not None:
            change["message"] = text
        changed, now = change_schedule(tx, before.id, author(), **change), tx.now
    _tell(changed, now, "is changed", as_json)


@schedule.command()
@click.argument("names", nargs=-1, required=True, shell_complete=ids.schedules, metavar="NAME...")
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
    with writing(settings) as tx:
        paused = [pause_schedule(tx, own_schedule(tx, each).id, why) for each in sorted(set(names))]
        document = [as_fields(each, tx.now) for each in paused]
    tell(as_json, document, *(_paused(each) for each in paused))


@schedule.command()
@click.argument("names", nargs=-1, required=True, shell_complete=ids.schedules, metavar="NAME...")
@as_json
@click.pass_obj
def resume(settings: Settings, names: tuple[str, ...], as_json: bool) -> None:
    """Let schedules fire again, from now on: what came due meanwhile was not missed.

    \b
    Example:
      bullpen schedule resume stand-up
    """
    with writing(settings) as tx:
        found = [own_schedule(tx, each, makes_work=True).id for each in sorted(set(names))]
        resumed, now = [resume_schedule(tx, each) for each in dict.fromkeys(found)], tx.now
    if as_json:
        show_json([as_fields(each, now) for each in resumed])
        return
    for each in resumed:
        _show_made(each, now, "goes on")


@schedule.command()
@click.argument("names", nargs=-1, required=True, shell_complete=ids.schedules, metavar="NAME...")
@yes
@as_json
@click.pass_obj
def remove(settings: Settings, names: tuple[str, ...], yes: bool, as_json: bool) -> None:
    """Remove schedules; what they have put into a queue stays there.

    \b
    Example:
      bullpen schedule remove stand-up
    """
    with reading(settings) as tx:
        found = {each.id: each for each in (shown_schedule(tx, each) for each in names)}
    confirm("\n".join(f"Remove {_what(each)}" for each in found.values()), yes)
    with writing(settings) as tx:
        for each in sorted(found):
            remove_schedule(tx, own_schedule(tx, each).id)
    tell(as_json, {"removed": list(found)}, *(f"{each} is removed" for each in found))


@schedule.command(name="now")
@click.argument("name", shell_complete=ids.schedules)
@as_json
@click.pass_obj
def now_(settings: Settings, name: str, as_json: bool) -> None:
    """Let a schedule run at once, whatever its state; its own times stay as they are.

    \b
    Example:
      bullpen schedule now stand-up
    """
    only_people("let a schedule run at once")
    with writing(settings) as tx:
        found = see_schedule(tx, name)
        message = run_now(tx, found.id)
    tell(
        as_json,
        {"schedule": found.id, "message_id": message},
        f"{target(found)} is asked: {message}. Next: bullpen schedule history {found.id}",
    )


@schedule.command(name="next")
@click.argument("name", shell_complete=ids.schedules)
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
    with reading(settings) as tx:
        found, now = shown_schedule(tx, name), tx.now
    times = next_times(found, now, count)
    if as_json:
        show_json(times)
        return
    if found.state is not ScheduleState.ACTIVE:
        click.echo(f"{found.id} is {found.state}", err=True)
    for each in times:
        click.echo(written(each, found.timing.zone))


@schedule.command()
@click.argument("name", shell_complete=ids.schedules)
@how_many()
@as_json
@click.pass_obj
def history(settings: Settings, name: str, limit: int, as_json: bool) -> None:
    """Show what became of a schedule's runs, the newest first.

    \b
    Example:
      bullpen schedule history stand-up --limit 5
    """
    with reading(settings) as tx:
        found = shown_schedule(tx, name)
        runs = list_runs(tx, found.id, None, limit)
    if as_json:
        show_json(runs)
        return
    rows: list[tuple[str, ...]] = [("DUE", "OUTCOME", "MESSAGE", "STATE", "COST", "ANSWER", "WHY")]
    rows += [run_row(each, found.timing.zone) for each in runs]
    show_table(rows, f"{found.id} has not run yet. Next: bullpen schedule now {found.id}")


def _tell(made: Schedule, now: int, done: str, as_json: bool) -> None:
    if as_json:
        show_json(as_fields(made, now))
    else:
        _show_made(made, now, done)


def _show_made(made: Schedule, now: int, done: str) -> None:
    click.echo(f"{made.id} {done}: {target(made)} is asked. {meaning(made.timing)}")
    click.echo(f"The answers go to {made.place}; times are those of {made.timing.zone}.")
    show_next(made, now)


def _paused(paused: Schedule) -> str:
    if paused.state is ScheduleState.DONE:
        return f"{paused.id} has nothing to come any more"
    return f"{paused.id} is paused. Next: bullpen schedule resume {paused.id}"


def _what(schedule: Schedule) -> str:
    label = f" ({schedule.label})" if schedule.label else ""
    return f"the schedule {schedule.id}{label} for {target(schedule)}"
