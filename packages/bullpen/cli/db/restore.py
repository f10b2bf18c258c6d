"""bullpen db restore: a new home made from a backup, held until its owner lets it go."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bullpen.cli.acting import require_person
from bullpen.cli.db.shown import format_count, progress_line
from bullpen.cli.output import as_json, print_result
from bullpen.core.settings import ENVIRONMENT_PREFIX, Settings
from bullpen.core.store import schema

if TYPE_CHECKING:
    from bullpen.core.backup.restore import RestoredHome

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
    """Make a new home of a backup. Nothing goes out of it before you let it go.

    A restore is a journey through time: what waits in the backup may have been said and done
    since. So responses, schedules and heartbeats of the new home are held until `bullpen db
    let-go`. What was running when the backup was made waits again. Keys and browsers of that time
    open nothing, unless you keep the keys: one of them may have been revoked since.

    \b
    Examples:
      bullpen db restore ~/bullpen.tar.gz --to ~/restored
      BULLPEN_HOME=~/restored bullpen db let-go --dry-run
    """
    from bullpen.core.backup.restore import restore  # with it comes what migrates

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
        "revision": schema.HEAD_REVISION,
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
    before = "" if manifest.revision == schema.HEAD_REVISION else f" (before: {manifest.revision})"
    rows = format_count(sum(manifest.rows.values()), "row")
    found = [
        f"The home {made.home} is there: {rows} and {format_count(len(manifest.files), 'file')},"
        f" revision {schema.HEAD_REVISION}{before}."
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
        "Nothing goes out of it, and no schedule or heartbeat is due, before you let it go.",
        f"Next: BULLPEN_HOME={shlex.quote(str(made.home))} bullpen db let-go --dry-run",
    ]
    return found
