"""Open the store that the settings name, and check its schema."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from bullpen.core.clock import Clock
from bullpen.core.errors import (
    BadSetting,
    BullpenError,
    SchemaTooNew,
    SchemaTooOld,
    StoreMissing,
)
from bullpen.core.files import replace_file
from bullpen.core.ids import Ids
from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from bullpen.core.store.sqlite import SqliteStore

DATABASE_URL_HINT = "Use sqlite:////PATH/TO/FILE or postgresql://USER:PASSWORD@HOST/DATABASE."


def database_file(settings: Settings) -> Path | None:
    """Return the file of SQLite; None for a server, and for an invalid URL."""
    try:
        url = make_url(settings.url)
    except (ArgumentError, ValueError):
        return None
    if url.get_backend_name() != "sqlite" or not url.database or url.database == ":memory:":
        return None
    return Path(url.database)


HEAD_REVISION = "0009"
"""The schema revision of this version of Bullpen."""

KNOWN_REVISIONS: tuple[str, ...] = ("0006", "0007", "0008", "0009")
"""Every schema revision that this version can upgrade, oldest first."""

UNRELEASED_REVISIONS = ("0001", "0002", "0003", "0004", "0005")
"""Revisions that only checkouts had. The first migration of a release, 0006, replaces them."""

UNRELEASED_HINT = (
    "Use a checkout with the migrations 0001 to 0006, and upgrade the database with its `bullpen db"
    " upgrade` (restore a backup there first). Or start with a new home."
)


KNOWN_DATABASES_FILE = "databases"
"""A file in the home that lists the databases that were created for it."""


def is_known_database(settings: Settings) -> bool:
    """Whether this home had this database before, so that an empty one has lost its data."""
    return _name_of_database(settings) in _known_databases(settings)


def remember_database(settings: Settings) -> None:
    """Record that this home has this database."""
    known, name = _known_databases(settings), _name_of_database(settings)
    if name not in known:
        text = "".join(f"{each}\n" for each in (*known, name))
        replace_file(settings.home / KNOWN_DATABASES_FILE, text.encode())


def forget_database(settings: Settings) -> None:
    """Allow the next start to create a new database."""
    known, name = _known_databases(settings), _name_of_database(settings)
    if name in known:
        text = "".join(f"{each}\n" for each in known if each != name)
        replace_file(settings.home / KNOWN_DATABASES_FILE, text.encode())


def _known_databases(settings: Settings) -> list[str]:
    try:
        text = (settings.home / KNOWN_DATABASES_FILE).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return []
    return text.splitlines()


def _name_of_database(settings: Settings) -> str:
    """Return the URL of the database without its password."""
    return parse_database_url(settings.url).render_as_string(hide_password=True)


def check_not_lost(settings: Settings) -> None:
    """Raise StoreMissing if the file of SQLite existed before, and is missing or empty."""
    file = database_file(settings)
    if file is None or not is_known_database(settings):
        return
    if _file_is_missing(file):
        raise StoreMissing(f"the database was removed: {file}")
    with suppress(OSError):
        if not file.stat().st_size:
            raise StoreMissing(f"the database was emptied: {file}")


def check_schema(store: Store) -> None:
    """Refuse a database that this version cannot work with."""
    revision = store.revision()
    if revision == HEAD_REVISION:
        return
    if revision is None:
        if is_known_database(store.settings):
            raise StoreMissing("the database has lost its tables")
        raise SchemaTooOld("the database is empty")
    check_revision(revision, "the database is at")
    raise SchemaTooOld(
        f"the database is at revision {revision}, but this version needs {HEAD_REVISION}"
    )


def check_revision(revision: str, subject: str) -> None:
    """Refuse a revision that this version cannot upgrade; `subject` begins the error's text."""
    if revision in UNRELEASED_REVISIONS:
        raise SchemaTooOld(
            f"{subject} revision {revision}, which is older than the first release",
            hint=UNRELEASED_HINT,
        )
    if revision not in KNOWN_REVISIONS:
        raise SchemaTooNew(
            f"{subject} revision {revision}, which this version of Bullpen does not know"
        )


def parse_database_url(address: str) -> URL:
    """Parse and check the URL of an SQLite file or of a PostgreSQL database."""
    try:
        url = make_url(address)
    except (ArgumentError, ValueError) as error:
        raise BadSetting("database_url is not a URL", hint=DATABASE_URL_HINT) from error
    match url.get_backend_name():
        case "sqlite" if url.database and url.database != ":memory:":
            return url
        case "sqlite":
            raise BadSetting("database_url has no file", hint=DATABASE_URL_HINT)
        case "postgresql":
            return url
        case "postgres":  # as Heroku, Fly, Neon and Supabase write it
            return url.set(drivername="postgresql")
        case other:
            raise BadSetting(
                f"database_url has the unsupported database {other!r}", hint=DATABASE_URL_HINT
            )


def has_valid_database_url(settings: Settings) -> bool:
    """Whether the settings name a database that could be opened."""
    try:
        parse_database_url(settings.url)
    except BadSetting:
        return False
    return True


def open_store(
    settings: Settings, *, clock: Clock | None = None, ids: Ids | None = None, check: bool = True
) -> Store:
    """Open the store; with `check`, refuse a schema that is not this version's."""
    url = parse_database_url(settings.url)
    store: Store
    if url.get_backend_name() == "postgresql":
        # Its driver takes long to import, and most installations do not use it.
        from bullpen.core.store.postgres import PostgresStore

        store = PostgresStore(url, settings, clock, ids)
    else:
        path = Path(url.database or "")
        in_home = path.parent == settings.home
        # SQLite would create an empty one by opening it.
        if check and (_file_is_missing(path) or (in_home and _is_missing(settings.home))):
            check_not_lost(settings)
            raise SchemaTooOld(f"the database does not exist yet: {path}")
        if in_home:
            settings.home.mkdir(mode=0o700, parents=True, exist_ok=True)
            _make_private(path)
        store = SqliteStore(path, settings, clock, ids)
    if check:
        try:
            check_schema(store)
        except BullpenError:
            store.close()
            raise
    return store


def _file_is_missing(path: Path) -> bool:
    try:
        return path.parent.is_dir() and not path.exists()
    except OSError:  # SQLite reports it with an error that is translated
        return False


def _is_missing(path: Path) -> bool:
    try:
        return not path.exists()
    except OSError:
        return False


def _make_private(path: Path) -> None:
    """Create the file with mode 0600; SQLite copies the mode to the files beside it."""
    with suppress(OSError):  # SQLite reports it with an error that is translated
        path.touch(mode=0o600, exist_ok=True)
