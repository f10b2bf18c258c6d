"""Databases of PostgreSQL for one test each, and then, emptied, for the next one.

To copy some hundred files and to delete them again costs more than most tests do.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import sql

from tests.postgres import PostgresServer

TEMPLATE = "template"
GONE_SECONDS = 2.0
"""So long a test's own connections may take to end after it closed them."""

OTHERS = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
    " AND backend_type = 'client backend' AND pid <> pg_backend_pid()"
)
# Of the tables and indexes what TRUNCATE, ANALYZE and VACUUM leave as it is; and the identity.
SHAPE = """
SELECT (SELECT version_num FROM alembic_version),
    (SELECT md5(string_agg(concat_ws(' ', oid, relname, relkind, relpersistence, reloptions,
        relnatts, relchecks, relhasrules, relhastriggers, relacl), ',' ORDER BY oid))
        FROM pg_class WHERE oid >= 16384),
    (SELECT md5(string_agg(concat_ws(' ', attrelid, attnum, attname, atttypid, attnotnull,
        atthasdef, attisdropped), ',' ORDER BY attrelid, attnum))
        FROM pg_attribute WHERE attrelid >= 16384),
    (SELECT md5(string_agg(concat_ws(' ', oid, conname), ',' ORDER BY oid)) FROM pg_constraint),
    (SELECT md5(string_agg(concat_ws(' ', oid, tgname, tgenabled), ',' ORDER BY oid))
        FROM pg_trigger),
    (SELECT md5(string_agg(concat_ws(' ', oid, proname), ',' ORDER BY oid))
        FROM pg_proc WHERE oid >= 16384),
    (SELECT string_agg(id, ',') FROM store_identity),
    (SELECT count(*) FROM pg_namespace),
    (SELECT count(*) FROM pg_db_role_setting)
"""
USED = """
SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'
    AND relname NOT IN ('alembic_version', 'store_identity') AND pg_relation_size(oid) > 0
"""
BEGIN_AGAIN = """
SELECT setval(seqrelid, seqstart, false) FROM pg_sequence
    WHERE pg_sequence_last_value(seqrelid) IS NOT NULL
"""


class Clones:
    """What was cloned from the migrated database and is lent to a test."""

    def __init__(self, server: PostgresServer) -> None:
        self._server = server
        self._free: list[str] = []
        self._numbers = itertools.count()
        self._shape = self._shape_of(TEMPLATE)

    @contextmanager
    def one(self) -> Iterator[str]:
        """The name of a database as it is after the migrations."""
        name = self._free.pop() if self._free else self._new()
        yield name
        if self._empty(name):
            self._free.append(name)
        else:
            self._server.drop_database(name)

    def _new(self) -> str:
        name = f"lent{next(self._numbers)}"
        self._server.create_database(name, template=TEMPLATE)
        return name

    def _empty(self, name: str) -> bool:
        """Make it as it was; False if that is not sure, for somebody uses it or it was rebuilt."""
        with self._server.connect(name) as connection:
            deadline = time.monotonic() + GONE_SECONDS
            while connection.execute(OTHERS).fetchone() != (0,):
                if time.monotonic() > deadline:
                    return False
                time.sleep(0.005)
            if connection.execute(SHAPE).fetchone() != self._shape:
                return False
            used = [sql.Identifier(table) for (table,) in connection.execute(USED)]
            if used:
                # New files, so that the next rows lie in the order in which they come.
                tables = sql.SQL(", ").join(used)
                connection.execute(sql.SQL("TRUNCATE {} CASCADE").format(tables))
            connection.execute(BEGIN_AGAIN)
            return True

    def _shape_of(self, name: str) -> psycopg.rows.TupleRow | None:
        with self._server.connect(name) as connection:
            return connection.execute(SHAPE).fetchone()
