"""bullpen db: the database's schema, backups of the whole home, and homes made from them."""

from __future__ import annotations

import click

from bullpen.cli.commands import LazyGroup

HERE = "bullpen.cli.db"


@click.group(
    cls=LazyGroup,
    places={
        "backup": f"{HERE}.backup:backup",
        "check": f"{HERE}.schema:check",
        "let-go": f"{HERE}.let_go:let_go_",
        "restore": f"{HERE}.restore:restore_",
        "upgrade": f"{HERE}.schema:upgrade",
        "verify": f"{HERE}.verify:verify_",
    },
)
def db() -> None:
    """Create, upgrade and check the database; back the home up, and make a new one of a backup.

    \b
    Examples:
      bullpen db upgrade
      bullpen db backup --keep 7
      bullpen db restore ~/.bullpen/backups/bullpen-20260102T030405Z --to ~/restored
    """
