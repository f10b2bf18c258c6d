"""bullpen db: the database's schema."""

from __future__ import annotations

import sys

import click

from bullpen.core.settings import Settings
from bullpen.core.store import schema
from bullpen.core.store.open import open_store


@click.group()
def db() -> None:
    """Create, upgrade and check the database.

    \b
    Example:
      bullpen db upgrade
    """


@db.command()
@click.pass_obj
def upgrade(settings: Settings) -> None:
    """Create the database, or bring it to this version; data are kept.

    \b
    Example:
      bullpen db upgrade
    """
    from bullpen.core.store import migrate

    store = open_store(settings, check=False)
    before = store.revision()
    migrate.upgrade(store)
    store.close()
    if before == schema.HEAD:
        click.echo(f"The database is at revision {schema.HEAD} already.")
    else:
        click.echo(f"The database is at revision {schema.HEAD} now (before: {before or 'none'}).")


@db.command()
@click.pass_obj
def check(settings: Settings) -> None:
    """Fail if the database differs from what this version expects.

    \b
    Example:
      bullpen db check
    """
    from bullpen.core.store import migrate

    store = open_store(settings)
    found = migrate.differences(store)
    store.close()
    for each in found:
        click.echo(each, err=True)
    if found:
        click.echo("The database differs from the models.", err=True)
        sys.exit(1)
    click.echo(f"The database is as it should be, at revision {schema.HEAD}.")
