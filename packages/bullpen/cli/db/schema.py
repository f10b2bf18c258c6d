"""bullpen db upgrade and check: the database's schema."""

from __future__ import annotations

import sys
from contextlib import closing

import click

from bullpen.cli.acting import require_person
from bullpen.cli.db.shown import progress_line
from bullpen.cli.output import as_json, print_json, print_result
from bullpen.core.settings import Settings
from bullpen.core.store import schema
from bullpen.core.store.open import open_store


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
    from bullpen.core.backup import upgrade as schema_upgrade  # only here: Alembic takes its time

    require_person("upgrade the database")
    with closing(open_store(settings, check=False)) as store, progress_line() as told:
        done = schema_upgrade.upgrade_database(store, backup=not no_backup, tell=told)
    backup = None if done.backup is None else str(done.backup)
    if backup is not None and not as_json:
        click.echo(f"The backup of what was is at {backup}")
    found = {"revision": schema.HEAD_REVISION, "before": done.before, "backup": backup}
    if done.before == schema.HEAD_REVISION:
        line = f"The database is at revision {schema.HEAD_REVISION} already."
    else:
        line = f"The database is at revision {schema.HEAD_REVISION} now (before: {done.before or 'none'})."
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
        print_json({"revision": schema.HEAD_REVISION, "good": not found, "differences": found})
    else:
        for each in found:
            click.echo(each, err=True)
        if found:
            click.echo("The database differs from the models.", err=True)
        else:
            click.echo(f"The database is as it should be, at revision {schema.HEAD_REVISION}.")
    if found:
        sys.exit(1)
