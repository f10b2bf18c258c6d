"""bullpen db backup: a copy of the home as of one moment, while everything goes on."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import click

from bullpen.cli.acting import require_person
from bullpen.cli.db.shown import format_count, format_size, progress_line
from bullpen.cli.output import as_json, print_result
from bullpen.core.backup.make import BackupResult, create_backup
from bullpen.core.backup.place import resolve_target
from bullpen.core.settings import Settings
from bullpen.core.store.open import open_store


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
