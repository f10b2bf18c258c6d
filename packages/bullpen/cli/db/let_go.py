"""bullpen db let-go: what a restored home holds goes its way again."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing

import click

from bullpen.cli.acting import require_person
from bullpen.cli.confirm import confirm, dry_run, yes
from bullpen.cli.db.shown import format_count
from bullpen.cli.duration import DURATION
from bullpen.cli.output import as_json, print_json, print_table
from bullpen.cli.span import format_duration
from bullpen.core.backup.let_go import HeldWork, find_held, release_hold
from bullpen.core.schedules.when import format_interval, format_time
from bullpen.core.settings import Settings
from bullpen.core.store.open import open_store
from bullpen.core.time_zone import owner_zone_name


@click.command(name="let-go")
@click.option(
    "--older-than",
    "age",
    type=DURATION,
    help="Set aside what was made longer ago, as 1h; it can be sent one by one.",
)
@dry_run
@yes
@as_json
@click.pass_obj
def let_go_(settings: Settings, age: int | None, dry_run: bool, yes: bool, as_json: bool) -> None:
    """Let responses go out of a restored home, and its schedules and heartbeats go on.

    Responses are as fresh as if they came now. What was due meanwhile is written down as missed;
    nothing is made up for. Stop the old home first: else both will act.

    \b
    Examples:
      bullpen db let-go --dry-run
      bullpen db let-go --older-than 1h
    """
    require_person("let go what a person holds")
    with closing(open_store(settings)) as store:
        with store.read() as tx:
            now, before = tx.now, 0 if age is None else tx.now - age
            found = find_held(tx, before)
        if found is not None and not dry_run:
            if not as_json:
                _show(settings, found, now)
            confirm(_question(found, age), yes, many=True)
            release_hold(store, before)
    if as_json:
        print_json(_held_fields(found, done=found is not None and not dry_run))
    elif found is None:
        click.echo("Nothing is held here.")
    elif dry_run:
        _show(settings, found, now)
        click.echo(f"Without --dry-run: {_question(found, age)}. Nothing was done.", err=True)
    else:
        click.echo(_done(found))


def _question(found: HeldWork, age: int | None) -> str:
    aside = f", set aside {found.old} older than {format_interval(age)}" if age is not None else ""
    goes = format_count(found.count - found.old, "response")
    return f"Let {goes} go out{aside}, and schedules and heartbeats go on"


def _done(found: HeldWork) -> str:
    aside = f"{format_count(found.old, 'response')} set aside, " if found.old else ""
    return (
        f"{aside}{format_count(found.count - found.old, 'response')} on the way;"
        " schedules and heartbeats go on."
    )


def _show(settings: Settings, found: HeldWork, now: int) -> None:
    since = format_time(found.hold.held_at, owner_zone_name(settings))
    click.echo(f"Held since {since}: {found.hold.reason}.")
    rows: list[Sequence[str]] = [("CHANNEL", "WAIT", "OLDEST")]
    rows += [
        (each.channel, str(each.count), f"{format_duration(now - each.oldest_at)} ago")
        for each in found.responses
    ]
    print_table(rows, "No response waits.")
    due = [
        format_count(count, noun)
        for count, noun in ((found.schedules, "schedule"), (found.heartbeats, "heartbeat"))
        if count
    ]
    if due:
        click.echo(f"Due meanwhile, and not made up for: {' and '.join(due)}.")


def _held_fields(found: HeldWork | None, *, done: bool) -> dict[str, object]:
    if found is None:
        return {"held": False, "let_go": False}
    return {
        "held": not done,
        "let_go": done,
        "reason": found.hold.reason,
        "since": found.hold.held_at,
        "responses": found.count - found.old,
        "set_aside": found.old,
        "channels": {each.channel: each.count - each.old for each in found.responses},
        "schedules": found.schedules,
        "heartbeats": found.heartbeats,
    }
