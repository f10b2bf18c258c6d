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
from bullpen.cli.options import Count
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
    """Manage the database, backups and restores.

    \b
    Examples:
      bullpen db upgrade
      bullpen db backup --keep 7
      bullpen db restore ~/.bullpen/backups/bullpen-20260102T030405Z --to ~/restored
    """


@command(db, people_only="create a backup, because it contains secrets")
@click.argument("to", required=False, type=click.Path(path_type=Path), metavar="[PATH]")
@click.option("--workspace", is_flag=True, help="Include the agents' workspaces.")
@click.option(
    "--keep",
    type=Count(1),
    metavar="N",
    help="Keep the newest N backups of this home in the directory, delete older ones.",
)
def backup(settings: Settings, to: Path | None, workspace: bool, keep: int | None) -> Result:
    """Back up the home while the services run.

    A backup contains the database, settings, files and plugins. PATH is a directory of backups, in
    which each backup is a subdirectory, or a file that ends with .tar.gz or .tar. Without PATH the
    backup is stored in `backups` in the home.

    A backup contains secrets, so only its owner can read it. It does not contain the API's token or
    keys from environment variables.

    \b
    Examples:
      bullpen db backup
      bullpen db backup /mnt/disk/bullpen --keep 7
      bullpen db backup ~/bullpen.tar.gz --workspace
    """
    target = resolve_target(settings, to)
    if keep is not None and target.file is not None:
        raise click.UsageError("--keep requires a directory of backups, not a file")
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
    yield f"Created {result.backup.path}: {rows}, {files}, {format_size(manifest.size)}, verified."
    if result.removed:
        yield f"Deleted {format_count(len(result.removed), 'older backup')}."
    if not manifest.with_workspace:
        yield "The agents' workspaces are not included; --workspace includes them."


@command(db, people_only="upgrade the database")
@click.option("--no-backup", is_flag=True, help="Skip the backup before the upgrade.")
def upgrade(settings: Settings, no_backup: bool) -> Result:
    """Create the database, or upgrade it to this version.

    Existing data is kept. Before the upgrade, it is backed up to `backups` in the home.

    \b
    Example:
      bullpen db upgrade
    """
    with closing(open_store(settings, check=False)) as store, progress_line() as update:
        result = upgrade_database(store, backup=not no_backup, tell=update)
    backup = None if result.backup is None else str(result.backup)
    lines = [] if backup is None else [f"Created the backup {backup}."]
    if result.before == store_open.HEAD_REVISION:
        lines.append(f"The database is already at revision {store_open.HEAD_REVISION}.")
    elif result.before is None:
        lines.append(f"Created the database at revision {store_open.HEAD_REVISION}.")
    else:
        lines.append(
            f"Upgraded the database from revision {result.before} to {store_open.HEAD_REVISION}."
        )
    document = {"revision": store_open.HEAD_REVISION, "before": result.before, "backup": backup}
    return Result(document, lines)


@command(db)
def check(settings: Settings) -> Result:
    """Check the schema of the database.

    The exit status is 1 if the schema differs from the schema of this version.

    \b
    Example:
      bullpen db check
    """
    from bullpen.core.store.migrate import differences  # Alembic is slow to load

    with closing(open_store(settings)) as store:
        found = differences(store)
    document = {"revision": store_open.HEAD_REVISION, "good": not found, "differences": found}
    if found:
        hints = [*found, f"The schema differs in {format_count(len(found), 'place')}."]
        return Result(document, hints=hints, status=1)
    return Result(document, f"The schema is correct and at revision {store_open.HEAD_REVISION}.")


@command(db)
@click.argument("backup", type=click.Path(path_type=Path))
def verify(settings: Settings, backup: Path) -> Result:
    """Verify every file of a backup.

    The exit status is 1 if the backup is damaged; each damage is printed.

    \b
    Example:
      bullpen db verify ~/.bullpen/backups/bullpen-20260102T030405Z
    """
    with progress_line() as update, open_backup(backup.expanduser()) as directory:
        result = verify_backup(directory, update)
    document = _verify_fields(backup, result)
    if not result.good:
        count = format_count(len(result.damages), "damage")
        hints = [*result.damages, f"{backup} is damaged: {count}."]
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
        yield f"{backup} is intact: created {made}, revision {revision}, {rows}, {files}, {size}."


SIZE_UNITS = ((1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "kB"))


@contextmanager
def progress_line() -> Iterator[ProgressCallback]:
    """Show the progress on standard error until the block ends, if that is a terminal."""
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
    """Return a number of bytes in the largest unit that fits."""
    for unit, name in SIZE_UNITS:
        if count >= unit:
            return f"{count / unit:.1f} {name}"
    return f"{count} bytes"
