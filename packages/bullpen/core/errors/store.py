"""The database could not do it."""

from __future__ import annotations

from bullpen.core.errors.base import BullpenError


class StoreError(BullpenError):
    """The database could not do it."""

    code = "store_error"
    hint = "Look at the database and its disk; `bullpen doctor` checks both."


class StoreBusy(StoreError):
    """The database was locked for longer than the limit; nothing was written."""

    code = "store_busy"
    exit_status = 75
    hint = "Try again; if it lasts, look for a process that holds the database open."


class StoreUnavailable(StoreError):
    """The database cannot be reached, or went away."""

    code = "store_unavailable"
    exit_status = 75
    hint = "Check that the database runs and that `database_url` names it."


class CommitUnknown(StoreUnavailable):
    """The connection was lost during COMMIT: it may have happened or not."""

    code = "commit_unknown"
    hint = "Repeat it under the same message id or token: what was stored is not stored twice."


class StoreFull(StoreError):
    """There is no room left on the disk; nothing was written."""

    code = "store_full"
    hint = "Free some disk space, then try again."


class StoreReadOnly(StoreError):
    """The database cannot be written."""

    code = "store_read_only"
    hint = "Check the owner and rights of the database file and of its directory."


class StoreCorrupt(StoreError):
    """The file is not a database, or is damaged."""

    code = "store_corrupt"
    hint = "Stop Bullpen, keep the damaged file aside, and restore a backup."


class SchemaTooNew(StoreError):
    """The database was made by a later version of Bullpen."""

    code = "schema_too_new"
    hint = "Install the version of Bullpen that made it, or a later one."


class SchemaTooOld(StoreError):
    """The database is of an earlier version of Bullpen, or empty."""

    code = "schema_too_old"
    hint = "Run `bullpen up`, or `bullpen db upgrade`."


class BackupFailed(StoreError):
    """A backup could not be made, or not be taken apart; nothing is left that looks like one."""

    code = "backup_failed"
    hint = "Look at the disk, or give another place."


class BadBackup(StoreError):
    """What was given is no backup, or is damaged."""

    code = "bad_backup"
    hint = "`bullpen db verify` names each damage. Take another backup if you have one."
