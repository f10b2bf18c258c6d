"""bullpen db restore and release: a new home from a backup, and the end of its hold."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bullpen.cli.command import require_person
from bullpen.cli.db import format_count, progress_line
from bullpen.cli.options import DURATION
from bullpen.cli.output import (
    as_json,
    confirm,
    dry_run,
    format_duration,
    print_json,
    print_result,
    print_table,
    yes,
)
from bullpen.core.clock import format_interval, format_time, owner_zone_name
from bullpen.core.settings import ENVIRONMENT_PREFIX, Settings
from bullpen.core.store import open
from bullpen.core.store.open import open_store
from bullpen.ops.backup.release_hold import HeldWork, find_held, release_hold

if TYPE_CHECKING:
    from bullpen.ops.backup.restore import RestoredHome


@click.command(name="release")
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
def release_(settings: Settings, age: int | None, dry_run: bool, yes: bool, as_json: bool) -> None:
    """Release the hold of a restored home: responses, schedules and heartbeats go on.

    Responses are as fresh as if they came now. What was due meanwhile is written down as missed;
    nothing is made up for. Stop the old home first: else both will act.

    \b
    Examples:
      bullpen db release --dry-run
      bullpen db release --older-than 1h
    """
    require_person("release what a person holds")
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


OVERRIDING_VARIABLES = ("DATABASE_URL", "WORKSPACE")
"""What in the environment would win over the settings of the new home."""


@click.command(name="restore")
@click.argument("backup", type=click.Path(path_type=Path))
@click.option(
    "--to",
    "home",
    required=True,
    type=click.Path(path_type=Path),
    help="The new home: a directory that is not there yet, or empty.",
)
@click.option(
    "--database-url",
    default="",
    metavar="URL",
    help="An empty PostgreSQL database that is to be filled; else the home has its own file.",
)
@click.option("--keep-keys", is_flag=True, help="Let the keys of the API open what they did.")
@as_json
@click.pass_obj
def restore_(
    _: Settings, backup: Path, home: Path, database_url: str, keep_keys: bool, as_json: bool
) -> None:
    """Make a new home of a backup. Nothing goes out of it before you release it.

    A restore is a journey through time: what waits in the backup may have been said and done
    since. So responses, schedules and heartbeats of the new home are held until `bullpen db
    release`. What was running when the backup was made waits again. Keys and browsers of that time
    open nothing, unless you keep the keys: one of them may have been revoked since.

    \b
    Examples:
      bullpen db restore ~/bullpen.tar.gz --to ~/restored
      BULLPEN_HOME=~/restored bullpen db release --dry-run
    """
    from bullpen.ops.backup.restore import restore  # with it comes what migrates

    require_person("restore a backup, which has everybody's secrets in it")
    with progress_line() as told:
        made = restore(
            backup.expanduser(), home, database_url=database_url, keep_keys=keep_keys, tell=told
        )
    if not made.settings_valid:
        click.echo(
            "settings.toml of the backup cannot be read: it lies beside as settings.toml.bak,"
            " and the defaults count.",
            err=True,
        )
    for name in OVERRIDING_VARIABLES:
        if os.environ.get(ENVIRONMENT_PREFIX + name):
            click.echo(
                f"{ENVIRONMENT_PREFIX}{name} is set in your environment, and wins over the settings of the"
                " new home: unset it first.",
                err=True,
            )
    print_result(as_json, _restored_fields(made), *_lines(made))


def _restored_fields(made: RestoredHome) -> dict[str, object]:
    return {
        "home": str(made.home),
        "made_at": made.manifest.made_at,
        "revision": open.HEAD_REVISION,
        "before": made.manifest.revision,
        "rows": dict(made.manifest.rows),
        "files": len(made.manifest.files),
        "claims": made.forgotten.claims,
        "deliveries": made.forgotten.deliveries,
        "keys": made.forgotten.keys,
        "with_workspace": made.manifest.with_workspace,
        "held": True,
    }


def _lines(made: RestoredHome) -> list[str]:
    manifest, forgotten = made.manifest, made.forgotten
    before = "" if manifest.revision == open.HEAD_REVISION else f" (before: {manifest.revision})"
    rows = format_count(sum(manifest.rows.values()), "row")
    found = [
        f"The home {made.home} is there: {rows} and {format_count(len(manifest.files), 'file')},"
        f" revision {open.HEAD_REVISION}{before}."
    ]
    if forgotten.claims or forgotten.deliveries:
        found.append(
            f"{format_count(forgotten.claims, 'run')} and"
            f" {format_count(forgotten.deliveries, 'delivery').replace('deliverys', 'deliveries')}"
            " that were under way are not any more."
        )
    if forgotten.keys:
        found.append(f"{format_count(forgotten.keys, 'key')} of that time open nothing any more.")
    if not manifest.with_workspace:
        found.append("The agents' workspaces are not in the backup: the settings name the old one.")
    found += [
        "Nothing goes out of it, and no schedule or heartbeat is due, before you release it.",
        f"Next: BULLPEN_HOME={shlex.quote(str(made.home))} bullpen db release --dry-run",
    ]
    return found
