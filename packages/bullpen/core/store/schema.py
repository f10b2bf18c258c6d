"""Which schema a database has, asked without Alembic: every start of every process does."""

from __future__ import annotations

from bullpen.core.errors import SchemaTooNew, SchemaTooOld
from bullpen.core.store.base import Store

HEAD_REVISION = "0006"
"""The revision that this version of Bullpen works with."""

KNOWN_REVISIONS: tuple[str, ...] = ("0001", "0002", "0003", "0004", "0005", "0006")
"""Every revision that this version knows, the oldest first."""


def check_schema(store: Store) -> None:
    """Refuse a database that this version cannot work with."""
    found = store.revision()
    if found == HEAD_REVISION:
        return
    if found is None:
        raise SchemaTooOld("the database is empty")
    if found in KNOWN_REVISIONS:
        raise SchemaTooOld(
            f"the database is at revision {found}, this Bullpen needs {HEAD_REVISION}"
        )
    raise SchemaTooNew(f"the database is at revision {found}, which this Bullpen does not know")
