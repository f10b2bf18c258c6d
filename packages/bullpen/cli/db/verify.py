"""bullpen db verify: whether a backup is all that it was."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from bullpen.cli.db.shown import format_count, format_size, progress_line
from bullpen.cli.output import as_json, print_json
from bullpen.core.backup.archive import open_backup
from bullpen.core.backup.verify import VerifyResult, verify_backup
from bullpen.core.schedules.when import format_time
from bullpen.core.settings import Settings
from bullpen.core.time_zone import owner_zone_name


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
