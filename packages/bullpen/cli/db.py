"""bullpen db: check, upgrade, back up and verify the database."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import click

from bullpen.cli.command import Result, command
from bullpen.cli.lazy import LazyGroup
from bullpen.cli.output import format_count
from bullpen.core.clock import format_time, owner_zone_name
from bullpen.core.settings import Settings
from bullpen.core.store import open as store_open
from bullpen.core.store.open import open_store
from bullpen.ops.backup.contents import ProgressCallback, ignore_progress, open_backup
from bullpen.ops.backup.create import BackupResult, create_backup, resolve_target, upgrade_database
from bullpen.ops.backup.verify import VerifyResult, verify_backup


@click.group(
    cls=LazyGroup,
    modules={
        "release": "bullpen.cli.db_restore:release",
        "restore": "bullpen.cli.db_restore:restore",
    },
    aliases={"let-go": "release"},
)
def db() -> None:
    """Create, upgrade and check the database; back the home up, and make a new one of a backup.

    \b
    Examples:
      bullpen db upgrade
      bullpen db backup --keep 7
      bullpen db restore ~/.bullpen/backups/bullpen-20260102T030405Z --to ~/restored
    """


@command(db, people_only="take a backup, which has everybody's secrets in it")
@click.argument("to", required=False, type=click.Path(path_type=Path), metavar="[DIRECTORY|FILE]")
@click.option("--workspace", is_flag=True, help="The agents' workspaces as well.")
@click.option(
    "--keep",
    type=click.IntRange(min=1),
    help="Remove the oldest backups of this home there, but for so many.",
)
def backup(settings: Settings, to: Path | None, workspace: bool, keep: int | None) -> Result:
    """Back up the database, settings, files and plugins, while everything goes on.

    It lies in DIRECTORY under a name of its own, or in the home's `backups` if you give none; a
    FILE that ends with .tar.gz or .tar has it all in one. Secrets are in it: only you can read it.
    The token of the API is not, nor are keys that stand in the environment.

    \b
    Examples:
      bullpen db backup
      bullpen db backup /mnt/disk/bullpen --keep 7
      bullpen db backup ~/bullpen.tar.gz --workspace
    """
    target = resolve_target(settings, to)
    if keep is not None and target.file is not None:
        raise click.UsageError("--keep is for a directory of backups, not for one file.")
    with closing(open_store(settings)) as store, progress_line() as update:
        result = create_backup(store, target, with_workspace=workspace, keep=keep, tell=update)
    return Result(_backup_fields(result), _format_backup(result))


def _backup_fields(result: BackupResult) -> dict[str, object]:
    manifest = result.manifest
    return {
        "path": str(result.backup.path),
        "made_at": result.backup.made_at,
        "size": result.backup.size,
        "kind": manifest.kind,
        "revision": manifest.revision,
        "with_workspace": manifest.with_workspace,
        "files": len(manifest.files),
        "rows": dict(manifest.rows),
        "removed": [str(path) for path in result.removed],
    }


def _format_backup(result: BackupResult) -> Iterator[str]:
    manifest = result.manifest
    rows = format_count(sum(manifest.rows.values()), "row")
    files = format_count(len(manifest.files), "file")
    yield f"The backup is at {result.backup.path}"
    yield f"{rows} and {files}, {format_size(manifest.size)}, checked."
    if result.removed:
        yield f"{format_count(len(result.removed), 'older backup')} removed."
    if not manifest.with_workspace:
        yield "The agents' workspaces are not in it: --workspace takes them along."


@command(db, people_only="upgrade the database")
@click.option("--no-backup", is_flag=True, help="Take no backup before; you have one.")
def upgrade(settings: Settings, no_backup: bool) -> Result:
    """Create the database, or bring it to this version; data are kept.

    Data of an earlier version are backed up before, to the home's `backups`.

    \b
    Example:
      bullpen db upgrade
    """
    with closing(open_store(settings, check=False)) as store, progress_line() as update:
        result = upgrade_database(store, backup=not no_backup, tell=update)
    backup = None if result.backup is None else str(result.backup)
    lines = [] if backup is None else [f"The backup of what was is at {backup}"]
    if result.before == store_open.HEAD_REVISION:
        lines.append(f"The database is at revision {store_open.HEAD_REVISION} already.")
    else:
        before = result.before or "none"
        lines.append(
            f"The database is at revision {store_open.HEAD_REVISION} now (before: {before})."
        )
    document = {"revision": store_open.HEAD_REVISION, "before": result.before, "backup": backup}
    return Result(document, lines)


@command(db)
def check(settings: Settings) -> Result:
    """Fail if the database differs from what this version expects.

    \b
    Example:
      bullpen db check
    """
    from bullpen.core.store.migrate import differences  # Alembic is slow to load

    with closing(open_store(settings)) as store:
        found = differences(store)
    document = {"revision": store_open.HEAD_REVISION, "good": not found, "differences": found}
    if found:
        hints = [*found, "The database differs from the models."]
        return Result(document, hints=hints, status=1)
    return Result(
        document, f"The database is as it should be, at revision {store_open.HEAD_REVISION}."
    )


@command(db)
@click.argument("backup", type=click.Path(path_type=Path))
def verify(settings: Settings, backup: Path) -> Result:
    """Look at every byte of a backup; the exit status is 1 if anything is wrong with it.

    \b
    Example:
      bullpen db verify ~/.bullpen/backups/bullpen-20260102T030405Z
    """
    with progress_line() as update, open_backup(backup.expanduser()) as directory:
        result = verify_backup(directory, update)
    document = _verify_fields(backup, result)
    if not result.good:
        count = format_count(len(result.damages), "damage")
        hints = [*result.damages, f"{backup} is not good: {count}."]
        return Result(document, hints=hints, status=1)
    return Result(document, _format_verified(settings, backup, result))


def _verify_fields(backup: Path, result: VerifyResult) -> dict[str, object]:
    manifest = result.manifest
    document: dict[str, object] = {
        "path": str(backup),
        "good": result.good,
        "damages": list(result.damages),
    }
    if manifest is not None:
        document.update(
            made_at=manifest.made_at,
            revision=manifest.revision,
            version=manifest.version,
            kind=manifest.kind,
            with_workspace=manifest.with_workspace,
            size=manifest.size,
            files=len(manifest.files),
            rows=dict(manifest.rows),
        )
    return document


def _format_verified(settings: Settings, backup: Path, result: VerifyResult) -> Iterator[str]:
    manifest = result.manifest
    if manifest is not None:
        made = format_time(manifest.made_at, owner_zone_name(settings))
        rows = format_count(sum(manifest.rows.values()), "row")
        files = format_count(len(manifest.files), "file")
        size = format_size(manifest.size)
        revision = manifest.revision
        yield f"{backup} is good: made {made}, revision {revision}, {rows}, {files}, {size}."


SIZE_UNITS = ((1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "kB"))


@contextmanager
def progress_line() -> Iterator[ProgressCallback]:
    """Show the progress on a terminal's standard error until the block ends."""
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield ignore_progress
        return
    from rich.console import Console  # imported here: it is slow to load

    with Console(stderr=True).status("") as status:

        def update(what: str, done: int, total: int) -> None:
            share = f" {100 * done // total} %" if total else ""
            status.update(f"{what}{share}")

        yield update


def format_size(count: int) -> str:
    """Return a number of bytes in the largest unit of which there is one."""
    for unit, name in SIZE_UNITS:
        if count >= unit:
            return f"{count / unit:.1f} {name}"
    return f"{count} bytes"
