"""PostgreSQL's errors as Bullpen's own, with the cause and what to do."""

from __future__ import annotations

import re
import shlex

import psycopg
from psycopg import errors as pg
from sqlalchemy.engine import URL

from bullpen.core.errors import (
    Conflict,
    DuplicateMessage,
    NameTaken,
    StoreBusy,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
)
from bullpen.core.states import MessageState

DEFAULT_PORT = 5432

_ERRORS: tuple[tuple[tuple[type[psycopg.Error], ...], type[StoreError], str], ...] = (
    (
        (pg.DeadlockDetected, pg.SerializationFailure, pg.LockNotAvailable),
        StoreBusy,
        "the database is locked",
    ),
    ((pg.QueryCanceled,), StoreBusy, "the statement took too long"),
    ((pg.DiskFull,), StoreFull, "the disk of the PostgreSQL server is full"),
    ((pg.ReadOnlySqlTransaction,), StoreReadOnly, "the database is read-only"),
    ((pg.DataCorrupted, pg.IndexCorrupted), StoreCorrupt, "the database is damaged"),
    (
        (psycopg.OperationalError, pg.AdminShutdown),
        StoreUnavailable,
        "lost the connection to PostgreSQL",
    ),
    ((psycopg.InterfaceError,), StoreUnavailable, "the connection to PostgreSQL is closed"),
)


def translate_error(error: BaseException) -> StoreError | Conflict | None:
    """Return the store error for an error of PostgreSQL; None for a programming error."""
    if isinstance(error, pg.PipelineAborted):
        return None
    if isinstance(error, pg.UniqueViolation):
        return _translate_unique_violation(error)
    for kinds, ours, reason in _ERRORS:
        if isinstance(error, kinds):
            return ours(f"{reason}: {str(error).strip()}")
    return None


def translate_connect_error(error: psycopg.Error, url: URL) -> StoreError | Conflict | None:
    """Return the store error for a connection that failed.

    libpq gives the cause as text only. A server with messages in another language than English
    gives an error with its own text.
    """
    reason = str(error).strip()
    place = _place(url)
    if "too many clients" in reason or "connection slots" in reason:
        return StoreBusy(f"PostgreSQL at {place} accepts no more connections: {reason}")
    if isinstance(error, pg.ConnectionTimeout):
        return StoreUnavailable(f"PostgreSQL at {place} does not answer: {reason}")
    if not isinstance(error, psycopg.OperationalError):
        return translate_error(error)
    if found := re.search(r'database "(.+)" does not exist', reason):
        return StoreUnavailable(
            f"database {found[1]!r} does not exist on {place}",
            hint=f"Create it with `{_command('createdb', url, found[1])}`, or correct the setting "
            "`database_url`.",
        )
    if found := re.search(r'role "(.+)" does not exist', reason):
        return StoreUnavailable(
            f"user {found[1]!r} does not exist on {place}",
            hint=f"Create it with `{_command('createuser', url, found[1], admin=True)}`, "
            "or correct the setting `database_url`.",
        )
    user = f"user {url.username!r}" if url.username else "this user"
    if "authentication failed" in reason:
        return StoreUnavailable(
            f"PostgreSQL at {place} refused the password of {user}",
            hint="Correct the password in the setting `database_url`.",
        )
    if "no password supplied" in reason:
        return StoreUnavailable(
            f"PostgreSQL at {place} requires a password for {user}",
            hint="Add it to the setting `database_url`: postgresql://USER:PASSWORD@HOST/DATABASE.",
        )
    if "no pg_hba.conf entry" in reason:
        return StoreUnavailable(
            f"PostgreSQL at {place} does not allow {user} to connect from this machine",
            hint="Allow it in the server's pg_hba.conf, and reload the server.",
        )
    return StoreUnavailable(
        f"cannot connect to PostgreSQL at {place}: {_connection_failure(reason)}",
        hint="Check that the server runs, and that the setting `database_url` has its address.",
    )


def _place(url: URL) -> str:
    """Return the server's address as the URL gives it."""
    host = url.host or url.query.get("host") or "the local socket"
    host = host if isinstance(host, str) else ",".join(host)
    if host.startswith("/") or not (url.host or url.port):
        return host
    return f"{host}:{url.port or DEFAULT_PORT}"


def _command(program: str, url: URL, name: str, *, admin: bool = False) -> str:
    """Return a command of PostgreSQL for the server of this URL, as its user or as an admin."""
    user = "postgres" if admin else url.username
    options = {"host": url.host, "port": url.port, "username": user}
    given = [f"--{option}={value}" for option, value in options.items() if value]
    return shlex.join([program, *given, name])


def _connection_failure(reason: str) -> str:
    """Return the cause in libpq's text, without the address and without its advice."""
    cause = reason.splitlines()[0].rpartition(" failed: ")[2].strip()
    return cause[:1].lower() + cause[1:] if not cause.startswith("FATAL") else cause


def _translate_unique_violation(error: pg.UniqueViolation) -> StoreError | Conflict | None:
    """Two transactions stored the same key at the same time, and this one was second."""
    match error.diag.constraint_name:
        case "uq_messages_message_id":
            key = re.search(r"=\((.*)\)", error.diag.message_detail or "")
            return DuplicateMessage(key.group(1) if key else "", MessageState.PENDING.value)
        case "pk_receipts":
            return StoreBusy("another process is storing the same platform event")
        case "pk_agents" | "pk_teams" | "pk_custom_providers":
            return NameTaken("another process created the same id at the same time")
        case "uq_schedules_label":
            return NameTaken("another process created a schedule with this label at the same time")
        case _:
            return None
