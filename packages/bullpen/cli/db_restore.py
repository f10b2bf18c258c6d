"""bullpen db restore and release: create a home from a backup, and end its hold."""

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


@command(people_only="release a restored home")
@click.option(
    "--older-than",
    "age",
    type=DURATION,
    help="First drop responses that are older than DURATION.",
)
@dry_run
@yes
def release(settings: Settings, age: int | None, dry_run: bool, yes: bool) -> Result:
    """Release a restored home from hold.

    Held responses are delivered, and schedules and heartbeats resume. Runs that were due in the
    meantime are recorded as missed and are not started. A response that --older-than drops is dead;
    the API can send it again.

    Stop the old home first. Otherwise both homes deliver responses and run schedules.

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
            return Result({"held": False, "let_go": False}, "This home is not on hold.")
        if not json_requested():
            _print_held(settings, held, now)
        question = _describe_release(held, age)
        if dry_run:
            hint = f"Without --dry-run: {question}. Nothing was changed."
            return Result(_held_fields(held, released=False), hints=[hint])
        confirm(question, yes, many=True)
        release_hold(store, before)
    dropped = f" Dropped {format_count(held.old, 'response')}." if held.old else ""
    released = format_count(held.count - held.old, "response")
    return Result(
        _held_fields(held, released=True),
        f"Released {released}; resumed schedules and heartbeats.{dropped}",
    )


def _describe_release(held: HeldWork, age: int | None) -> str:
    released = format_count(held.count - held.old, "response")
    dropped = ""
    if age is not None:
        older = format_count(held.old, "response")
        dropped = f", drop {older} older than {format_interval(age)}"
    return f"Release {released}{dropped}, and resume schedules and heartbeats"


def _print_held(settings: Settings, held: HeldWork, now: int) -> None:
    since = format_time(held.hold.held_at, owner_zone_name(settings))
    echo(f"On hold since {since}: {held.hold.reason}.")
    rows: list[Sequence[str]] = [("CHANNEL", "PENDING", "OLDEST")]
    rows += [
        (each.channel, str(each.count), f"{format_duration(now - each.oldest_at)} ago")
        for each in held.responses
    ]
    print_table(rows, "No pending responses.")
    due = [
        format_count(count, noun)
        for count, noun in ((held.schedules, "schedule"), (held.heartbeats, "heartbeat"))
        if count
    ]
    if due:
        echo(f"Missed in the meantime, and not started later: {' and '.join(due)}.")


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
"""Environment variables that would override the settings of the new home."""


@command(people_only="restore a backup, because it contains secrets")
@click.argument("backup", type=click.Path(path_type=Path))
@click.option(
    "--to",
    "home",
    required=True,
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="New home: a directory that does not exist yet, or is empty.",
)
@click.option(
    "--database-url",
    default="",
    metavar="URL",
    show_default="a file in the new home",
    help="Empty PostgreSQL database to restore to.",
)
@click.option("--keep-keys", is_flag=True, help="Keep existing API keys valid.")
def restore(_: Settings, backup: Path, home: Path, database_url: str, keep_keys: bool) -> Result:
    """Create a new home from a backup, on hold.

    Responses in the backup may have been delivered since it was made, and schedules may have fired.
    So the new home delivers no responses and starts no schedules or heartbeats until you run
    `bullpen db release`. Messages that were processing become pending. API keys and browser logins
    are revoked unless you give --keep-keys, because a key may have been revoked since.

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
            "settings.toml of the backup is invalid: it was saved as settings.toml.bak, and the new"
            " home uses the defaults."
        )
    notes += [
        f"{ENVIRONMENT_PREFIX}{name} is set in your environment and overrides the settings of the"
        " new home. Unset it first."
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
    yield f"Restored {restored.home}: {rows}, {files}, {revision}."
    if reset.claims or reset.deliveries:
        runs = format_count(reset.claims, "run")
        deliveries = format_count(reset.deliveries, "delivery", "deliveries")
        yield f"Ended {runs} and {deliveries} that were in progress in the backup."
    if reset.keys:
        yield f"Revoked {format_count(reset.keys, 'API key')}."
    if not manifest.with_workspace:
        yield "The backup has no workspaces: the settings refer to the old workspace."
    yield "The home is on hold: no responses, schedules or heartbeats until you release it."
    yield f"Next: BULLPEN_HOME={shlex.quote(str(restored.home))} bullpen db release --dry-run"
