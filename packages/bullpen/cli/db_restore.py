"""bullpen db restore and release: a new home from a backup, and the end of its hold."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bullpen.cli.command import Result, command, json_requested
from bullpen.cli.db import progress_line
from bullpen.cli.options import DURATION, dry_run, yes
from bullpen.cli.output import confirm, echo, format_count, format_duration, print_table
from bullpen.core.clock import format_interval, format_time, owner_zone_name
from bullpen.core.settings import ENVIRONMENT_PREFIX, Settings
from bullpen.core.store import open as store_open
from bullpen.core.store.open import open_store
from bullpen.ops.backup.release_hold import HeldWork, find_held, release_hold

if TYPE_CHECKING:
    from bullpen.ops.backup.restore import RestoredHome


@command(people_only="release what a person holds")
@click.option(
    "--older-than",
    "age",
    type=DURATION,
    help="Set aside what was made longer ago, as 1h; it can be sent one by one.",
)
@dry_run
@yes
def release(settings: Settings, age: int | None, dry_run: bool, yes: bool) -> Result:
    """Release the hold of a restored home: responses, schedules and heartbeats go on.

    Responses are as fresh as if they came now. What was due meanwhile is written down as missed;
    nothing is made up for. Stop the old home first: else both will act.

    \b
    Examples:
      bullpen db release --dry-run
      bullpen db release --older-than 1h
    """
    with closing(open_store(settings)) as store:
        with store.read() as tx:
            now, before = tx.now, 0 if age is None else tx.now - age
            held = find_held(tx, before)
        if held is None:
            return Result({"held": False, "let_go": False}, "Nothing is held here.")
        if not json_requested():
            _print_held(settings, held, now)
        question = _describe_release(held, age)
        if dry_run:
            hint = f"Without --dry-run: {question}. Nothing was done."
            return Result(_held_fields(held, released=False), hints=[hint])
        confirm(question, yes, many=True)
        release_hold(store, before)
    aside = f"{format_count(held.old, 'response')} set aside, " if held.old else ""
    going = format_count(held.count - held.old, "response")
    return Result(
        _held_fields(held, released=True),
        f"{aside}{going} on the way; schedules and heartbeats go on.",
    )


def _describe_release(held: HeldWork, age: int | None) -> str:
    aside = f", set aside {held.old} older than {format_interval(age)}" if age is not None else ""
    going = format_count(held.count - held.old, "response")
    return f"Let {going} go out{aside}, and schedules and heartbeats go on"


def _print_held(settings: Settings, held: HeldWork, now: int) -> None:
    since = format_time(held.hold.held_at, owner_zone_name(settings))
    echo(f"Held since {since}: {held.hold.reason}.")
    rows: list[Sequence[str]] = [("CHANNEL", "WAIT", "OLDEST")]
    rows += [
        (each.channel, str(each.count), f"{format_duration(now - each.oldest_at)} ago")
        for each in held.responses
    ]
    print_table(rows, "No response waits.")
    due = [
        format_count(count, noun)
        for count, noun in ((held.schedules, "schedule"), (held.heartbeats, "heartbeat"))
        if count
    ]
    if due:
        echo(f"Due meanwhile, and not made up for: {' and '.join(due)}.")


def _held_fields(held: HeldWork, *, released: bool) -> dict[str, object]:
    return {
        "held": not released,
        "let_go": released,
        "reason": held.hold.reason,
        "since": held.hold.held_at,
        "responses": held.count - held.old,
        "set_aside": held.old,
        "channels": {each.channel: each.count - each.old for each in held.responses},
        "schedules": held.schedules,
        "heartbeats": held.heartbeats,
    }


OVERRIDING_VARIABLES = ("DATABASE_URL", "WORKSPACE")
"""Variables that would win over the settings of the new home."""


@command(people_only="restore a backup, which has everybody's secrets in it")
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
def restore(_: Settings, backup: Path, home: Path, database_url: str, keep_keys: bool) -> Result:
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
    from bullpen.ops.backup.restore import restore as restore_backup  # Alembic is slow to load

    with progress_line() as update:
        restored = restore_backup(
            backup.expanduser(), home, database_url=database_url, keep_keys=keep_keys, tell=update
        )
    notes = []
    if not restored.settings_valid:
        notes.append(
            "settings.toml of the backup cannot be read: it lies beside as settings.toml.bak,"
            " and the defaults count."
        )
    notes += [
        f"{ENVIRONMENT_PREFIX}{name} is set in your environment, and wins over the settings of the"
        " new home: unset it first."
        for name in OVERRIDING_VARIABLES
        if os.environ.get(ENVIRONMENT_PREFIX + name)
    ]
    return Result(_restored_fields(restored), _format_restored(restored), notes=notes)


def _restored_fields(restored: RestoredHome) -> dict[str, object]:
    manifest, reset = restored.manifest, restored.forgotten
    return {
        "home": str(restored.home),
        "made_at": manifest.made_at,
        "revision": store_open.HEAD_REVISION,
        "before": manifest.revision,
        "rows": dict(manifest.rows),
        "files": len(manifest.files),
        "claims": reset.claims,
        "deliveries": reset.deliveries,
        "keys": reset.keys,
        "with_workspace": manifest.with_workspace,
        "held": True,
    }


def _format_restored(restored: RestoredHome) -> Iterator[str]:
    manifest, reset = restored.manifest, restored.forgotten
    before = (
        "" if manifest.revision == store_open.HEAD_REVISION else f" (before: {manifest.revision})"
    )
    rows = format_count(sum(manifest.rows.values()), "row")
    files = format_count(len(manifest.files), "file")
    revision = f"revision {store_open.HEAD_REVISION}{before}"
    yield f"The home {restored.home} is there: {rows} and {files}, {revision}."
    if reset.claims or reset.deliveries:
        runs = format_count(reset.claims, "run")
        deliveries = format_count(reset.deliveries, "delivery", "deliveries")
        yield f"{runs} and {deliveries} that were under way are not any more."
    if reset.keys:
        yield f"{format_count(reset.keys, 'key')} of that time open nothing any more."
    if not manifest.with_workspace:
        yield "The agents' workspaces are not in the backup: the settings name the old one."
    yield "Nothing goes out of it, and no schedule or heartbeat is due, before you release it."
    yield f"Next: BULLPEN_HOME={shlex.quote(str(restored.home))} bullpen db release --dry-run"
