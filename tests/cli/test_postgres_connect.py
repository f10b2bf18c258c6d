"""A PostgreSQL server that cannot be used: the error names the cause and what to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from sqlalchemy.engine import make_url

from bullpen.core.clock import poll_until
from bullpen.core.errors import StoreUnavailable
from bullpen.core.settings import Settings
from bullpen.core.store.open import open_store
from tests.cli.command import Bullpen
from tests.ports import free_port
from tests.stores import Stores

pytestmark = pytest.mark.postgres

USER, PASSWORD = "needs_password", "right-horse"


def refused(stores: Stores, url: str) -> StoreUnavailable:
    """The error of the first statement on this database."""
    settings = Settings(home=stores.directory, database_url=url)
    with (
        pytest.raises(StoreUnavailable) as raised,
        closing(open_store(settings, check=False)) as store,
    ):
        store.revision()
    return raised.value


@pytest.fixture(scope="module")
def url_with_password(stores: Stores) -> Iterator[str]:
    """A database of a user who must give a password."""
    with stores.server.connect() as connection:
        (file,) = connection.execute("SHOW hba_file").fetchone() or ("",)
        rules = Path(file)
        before = rules.read_text()
        connection.execute(f"CREATE ROLE {USER} LOGIN PASSWORD '{PASSWORD}'")
        try:
            rules.write_text(f"host all {USER} 127.0.0.1/32 scram-sha-256\n{before}")
            connection.execute("SELECT pg_reload_conf()")
            url = make_url(stores.server.url("postgres")).set(username=USER)
            assert poll_until(lambda: not _accepts(url.render_as_string()), 10.0, 0.05)
            yield url.set(password=PASSWORD).render_as_string(hide_password=False)
        finally:
            rules.write_text(before)
            connection.execute("SELECT pg_reload_conf()")
            connection.execute(f"DROP ROLE {USER}")


def _accepts(url: str) -> bool:
    try:
        psycopg.connect(url.replace("+psycopg", "")).close()
    except psycopg.OperationalError:
        return False
    return True


def test_a_missing_database_is_named_with_the_command_that_creates_it(stores: Stores) -> None:
    error = refused(stores, stores.server.url("not_there"))
    place = f"127.0.0.1:{stores.server.port}"
    assert str(error) == f"database 'not_there' does not exist on {place}"
    command = f"createdb --host=127.0.0.1 --port={stores.server.port} --username=bullpen not_there"
    assert command in str(error.hint)


def test_a_server_that_does_not_run_is_unreachable(stores: Stores) -> None:
    port = free_port()
    error = refused(stores, f"postgresql://ann:hunter2@127.0.0.1:{port}/bullpen")
    assert str(error).startswith(f"cannot connect to PostgreSQL at 127.0.0.1:{port}: ")
    assert "refused" in str(error)
    assert "\n" not in str(error)
    assert "database_url" in str(error.hint)
    assert "hunter2" not in f"{error} {error.hint}"


def test_a_wrong_password_is_told_apart_from_a_missing_one(
    stores: Stores, url_with_password: str
) -> None:
    settings = Settings(home=stores.directory, database_url=url_with_password)
    with closing(open_store(settings, check=False)) as store:
        assert store.revision() is None
    wrong = refused(stores, url_with_password.replace(PASSWORD, "hunter2"))
    assert f"refused the password of user '{USER}'" in str(wrong)
    assert "hunter2" not in f"{wrong} {wrong.hint}"
    missing = refused(stores, url_with_password.replace(f":{PASSWORD}", ""))
    assert f"requires a password for user '{USER}'" in str(missing)
    assert "PASSWORD@" in str(missing.hint)


def test_a_user_that_does_not_exist_is_named(stores: Stores) -> None:
    error = refused(stores, stores.server.url("postgres").replace("bullpen@", "nobody@"))
    assert str(error).startswith("user 'nobody' does not exist on 127.0.0.1:")
    assert "createuser" in str(error.hint)


def test_the_url_of_a_hosting_provider_is_accepted(stores: Stores, empty: Bullpen) -> None:
    settings = stores.settings("postgresql")
    url = settings.database_url.replace("postgresql+psycopg://", "postgres://")
    assert url.startswith("postgres://")
    done = empty.ok("db", "check", BULLPEN_DATABASE_URL=url)
    assert "revision" in done.out


def test_up_on_a_missing_database_says_how_to_create_it(stores: Stores, empty: Bullpen) -> None:
    done = empty("up", BULLPEN_DATABASE_URL=stores.server.url("not_there"))
    assert done.status == 75
    assert "database 'not_there' does not exist" in done.err
    assert "createdb" in done.err
    assert "Traceback" not in done.err
