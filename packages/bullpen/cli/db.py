"""bullpen db: check, upgrade, back up and verify the database."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import click

from bullpen.cli.command import require_person
from bullpen.cli.lazy import LazyGroup
from bullpen.cli.output import as_json, print_json, print_result
from bullpen.core.clock import format_time, owner_zone_name
from bullpen.core.settings import Settings
from bullpen.core.store import open
from bullpen.core.store.open import open_store
from bullpen.ops.backup.contents import ProgressCallback, ignore_progress, open_backup
from bullpen.ops.backup.create import BackupResult, create_backup, resolve_target
from bullpen.ops.backup.verify import VerifyResult, verify_backup


@click.group(
    cls=LazyGroup,
    modules={
        "backup": "bullpen.cli.db:backup",
        "check": "bullpen.cli.db:check",
        "release": "bullpen.cli.db_restore:release_",
        "restore": "bullpen.cli.db_restore:restore_",
        "upgrade": "bullpen.cli.db:upgrade",
        "verify": "bullpen.cli.db:verify_",
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


SIZE_UNITS = ((1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "kB"))


@contextmanager
def progress_line() -> Iterator[ProgressCallback]:
    """Tells on standard error how far it is, where somebody sees it; in the end it is gone."""
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield ignore_progress
        return
    from rich.console import Console  # only here: the command line begins without

    with Console(stderr=True).status("") as status:

        def tell(what: str, done: int, total: int) -> None:
            share = f" {100 * done // total} %" if total else ""
            status.update(f"{what}{share}")

        yield tell


def format_size(count: int) -> str:
    """So many bytes, in the largest unit of which there is one."""
    for unit, name in SIZE_UNITS:
        if count >= unit:
            return f"{count / unit:.1f} {name}"
    return f"{count} bytes"


def format_count(count: int, noun: str) -> str:
    """So many of them."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


@click.command()
@click.argument("to", required=False, type=click.Path(path_type=Path), metavar="[DIRECTORY|FILE]")
@click.option("--workspace", is_flag=True, help="The agents' workspaces as well.")
@click.option(
    "--keep",
    type=click.IntRange(min=1),
    help="Remove the oldest backups of this home there, but for so many.",
)
@as_json
@click.pass_obj
def backup(
    settings: Settings, to: Path | None, workspace: bool, keep: int | None, as_json: bool
) -> None:
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
    require_person("take a backup, which has everybody's secrets in it")
    place = resolve_target(settings, to)
    if keep is not None and place.file is not None:
        raise click.UsageError("--keep is for a directory of backups, not for one file.")
    with closing(open_store(settings)) as store, progress_line() as told:
        made = create_backup(store, place, with_workspace=workspace, keep=keep, tell=told)
    print_result(as_json, backup_fields(made), *_lines(made))


def backup_fields(made: BackupResult) -> dict[str, object]:
    """What is known of a backup that was made."""
    manifest = made.manifest
    return {
        "path": str(made.backup.path),
        "made_at": made.backup.made_at,
        "size": made.backup.size,
        "kind": manifest.kind,
        "revision": manifest.revision,
        "with_workspace": manifest.with_workspace,
        "files": len(manifest.files),
        "rows": dict(manifest.rows),
        "removed": [str(path) for path in made.removed],
    }


def _lines(made: BackupResult) -> list[str]:
    manifest = made.manifest
    found = [
        f"The backup is at {made.backup.path}",
        f"{format_count(sum(manifest.rows.values()), 'row')} and {format_count(len(manifest.files), 'file')},"
        f" {format_size(manifest.size)}, checked.",
    ]
    if made.removed:
        found.append(f"{format_count(len(made.removed), 'older backup')} removed.")
    if not manifest.with_workspace:
        found.append("The agents' workspaces are not in it: --workspace takes them along.")
    return found


@click.command()
@click.option("--no-backup", is_flag=True, help="Take no backup before; you have one.")
@as_json
@click.pass_obj
def upgrade(settings: Settings, no_backup: bool, as_json: bool) -> None:
    """Create the database, or bring it to this version; data are kept.

    Data of an earlier version are backed up before, to the home's `backups`.

    \b
    Example:
      bullpen db upgrade
    """
    from bullpen.ops.backup import create as schema_upgrade  # only here: Alembic takes its time

    require_person("upgrade the database")
    with closing(open_store(settings, check=False)) as store, progress_line() as told:
        done = schema_upgrade.upgrade_database(store, backup=not no_backup, tell=told)
    backup = None if done.backup is None else str(done.backup)
    if backup is not None and not as_json:
        click.echo(f"The backup of what was is at {backup}")
    found = {"revision": open.HEAD_REVISION, "before": done.before, "backup": backup}
    if done.before == open.HEAD_REVISION:
        line = f"The database is at revision {open.HEAD_REVISION} already."
    else:
        line = f"The database is at revision {open.HEAD_REVISION} now (before: {done.before or 'none'})."
    print_result(as_json, found, line)


@click.command()
@as_json
@click.pass_obj
def check(settings: Settings, as_json: bool) -> None:
    """Fail if the database differs from what this version expects.

    \b
    Example:
      bullpen db check
    """
    from bullpen.core.store import migrate

    with closing(open_store(settings)) as store:
        found = migrate.differences(store)
    if as_json:
        print_json({"revision": open.HEAD_REVISION, "good": not found, "differences": found})
    else:
        for each in found:
            click.echo(each, err=True)
        if found:
            click.echo("The database differs from the models.", err=True)
        else:
            click.echo(f"The database is as it should be, at revision {open.HEAD_REVISION}.")
    if found:
        sys.exit(1)


@click.command(name="verify")
@click.argument("backup", type=click.Path(path_type=Path))
@as_json
@click.pass_obj
def verify_(settings: Settings, backup: Path, as_json: bool) -> None:
    """Look at every byte of a backup; the exit status is 1 if anything is wrong with it.

    \b
    Example:
      bullpen db verify ~/.bullpen/backups/bullpen-20260102T030405Z
    """
    with progress_line() as told, open_backup(backup.expanduser()) as directory:
        found = verify_backup(directory, told)
    if as_json:
        print_json(_document(backup, found))
    else:
        _show(settings, backup, found)
    if not found.good:
        sys.exit(1)


def _document(backup: Path, found: VerifyResult) -> dict[str, object]:
    manifest = found.manifest
    document: dict[str, object] = {
        "path": str(backup),
        "good": found.good,
        "damages": list(found.damages),
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


def _show(settings: Settings, backup: Path, found: VerifyResult) -> None:
    for damage in found.damages:
        click.echo(damage, err=True)
    if not found.good:
        click.echo(f"{backup} is not good: {format_count(len(found.damages), 'damage')}.", err=True)
    if found.manifest is not None and found.good:
        manifest = found.manifest
        rows = format_count(sum(manifest.rows.values()), "row")
        made = format_time(manifest.made_at, owner_zone_name(settings))
        click.echo(
            f"{backup} is good: made {made}, revision {manifest.revision}, {rows},"
            f" {format_count(len(manifest.files), 'file')}, {format_size(manifest.size)}."
        )
