"""The server that the tests run on: it starts, dies and comes back with what was committed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.postgres import PostgresError, PostgresServer, Source, find_binaries

pytestmark = pytest.mark.postgres


def _server(source: Source) -> PostgresServer:
    try:
        find_binaries(source)
    except PostgresError as error:
        pytest.skip(str(error))
    return PostgresServer(source=source)


@pytest.fixture(params=["machine", "wheel"])
def server(request: pytest.FixtureRequest) -> Iterator[PostgresServer]:
    """A server of the machine's binaries, and one of the wheel's."""
    made = _server(request.param)
    try:
        made.start()
        yield made
    finally:
        made.close()


def _connect(server: PostgresServer) -> psycopg.Connection:
    return psycopg.connect(server.url("kept").replace("+psycopg", ""), autocommit=True)


def _alive(pid: int) -> bool:
    """Whether the process runs; one that nobody has buried yet does not."""
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    except FileNotFoundError:
        return False


def test_what_was_committed_is_there_after_a_kill_and_a_second_start(
    server: PostgresServer,
) -> None:
    server.create_database("kept")
    with _connect(server) as connection:
        connection.execute("CREATE TABLE t AS SELECT 42 AS answer")
    first, port = server.pid, server.port
    server.kill()
    assert not _alive(first)
    with pytest.raises(psycopg.OperationalError):
        _connect(server)
    server.start()
    assert (server.pid != first, server.port) == (True, port)
    with _connect(server) as connection:
        assert connection.execute("SELECT answer FROM t").fetchone() == (42,)


def test_a_server_that_was_closed_leaves_nothing_behind() -> None:
    server = _server("any")
    server.start()
    pid = server.pid
    with psycopg.connect(server.url("postgres").replace("+psycopg", "")) as connection:
        row = connection.execute("SHOW data_directory").fetchone()
    assert row is not None
    directory = Path(str(row[0]))
    assert directory.is_dir()
    server.close()
    server.close()
    assert not _alive(pid)
    assert not directory.exists()


def test_a_clone_has_what_its_template_has() -> None:
    server = _server("any")
    try:
        server.start()
        server.create_database("kept")
        with _connect(server) as connection:
            connection.execute("CREATE TABLE t AS SELECT 42 AS answer")
        server.create_database("clone", template="kept")
        server.drop_database("kept")
        with psycopg.connect(server.url("clone").replace("+psycopg", "")) as connection:
            assert connection.execute("SELECT answer FROM t").fetchone() == (42,)
    finally:
        server.close()
