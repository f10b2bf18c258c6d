"""bullpen db backup: a copy of the home as of one moment, while everything goes on."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import click

from bullpen.cli.acting import only_people
from bullpen.cli.db.shown import number, progress, size
from bullpen.cli.output import as_json, tell
from bullpen.core.backup.make import Made, back_up
from bullpen.core.backup.place import backup_place
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
    only_people("take a backup, which has everybody's secrets in it")
    place = backup_place(settings, to)
    if keep is not None and place.file is not None:
        raise click.UsageError("--keep is for a directory of backups, not for one file.")
    with closing(open_store(settings)) as store, progress() as told:
        made = back_up(store, place, with_workspace=workspace, keep=keep, tell=told)
    tell(as_json, as_document(made), *_lines(made))


def as_document(made: Made) -> dict[str, object]:
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


def _lines(made: Made) -> list[str]:
    manifest = made.manifest
    found = [
        f"The backup is at {made.backup.path}",
        f"{number(sum(manifest.rows.values()), 'row')} and {number(len(manifest.files), 'file')},"
        f" {size(manifest.size)}, checked.",
    ]
    if made.removed:
        found.append(f"{number(len(made.removed), 'older backup')} removed.")
    if not manifest.with_workspace:
        found.append("The agents' workspaces are not in it: --workspace takes them along.")
    return found
