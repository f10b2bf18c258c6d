"""Migrations: they make what the models say, and keep what is stored."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, MetaData, Table, create_engine, insert, inspect, select, text
from sqlalchemy.types import BigInteger, Boolean, Double, Float, Integer

from bullpen.core.errors import SchemaTooNew, SchemaTooOld
from bullpen.core.file_records import is_used_in
from bullpen.core.message import NewMessage
from bullpen.core.models import whole_schema
from bullpen.core.outbox.parts import decode_receipts
from bullpen.core.queue.claim import claim
from bullpen.core.queue.enqueue import enqueue
from bullpen.core.queue.lanes import create_lane
from bullpen.core.settings import Settings
from bullpen.core.store import migrate, open
from bullpen.core.store.base import Store
from bullpen.core.store.open import open_store
from tests.later_revision import LATER_REVISION, LATER_TABLE, become_later
from tests.stores import Stores

MIGRATIONS = Path(__file__).resolve().parents[2] / "migrations"
Rows = dict[str, list[tuple[object, ...]]]


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """This is a later version; gives its revision."""
    become_later(monkeypatch, tmp_path)
    return LATER_REVISION


@pytest.fixture
def empty(stores: Stores, kind: str, tmp_path: Path) -> Iterator[Store]:
    """A store on a database in which there is nothing."""
    url = f"sqlite:///{tmp_path / 'empty.db'}"
    if kind == "postgresql":
        stores.server.create_database(f"empty_{tmp_path.name}")
        url = stores.server.url(f"empty_{tmp_path.name}")
    opened = open_store(Settings(home=tmp_path, database_url=url), check=False)
    yield opened
    opened.close()


def _set_revision(store: Store, revision: str) -> None:
    with store.engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = :r"), {"r": revision})


def _ddl(connection: Connection) -> dict[str, str]:
    """The text of every table and index, without what does not matter."""
    found = connection.execute(
        text(
            "SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite%'"
        )
    )
    return {
        # The bracket at the end belongs to whichever column is the last one.
        name: ",".join(sorted(_plain(sql).removesuffix(")").split(",")))
        for name, sql in found
        if name != "alembic_version"
    }


def _plain(sql: str) -> str:
    """The text in small letters, without quotes, and with single blanks only."""
    plain = re.sub(r"\s+", " ", sql.replace('"', "").lower())
    head, _, body = plain.partition("(")
    return re.sub(r"\s*([,()])\s*", r"\1", f"{head}({body}").strip()


def test_the_migrations_make_what_the_models_say(empty: Store) -> None:
    migrate.upgrade(empty)
    assert migrate.differences(empty) == []


def test_differences_are_seen(empty: Store) -> None:
    migrate.upgrade(empty)
    with empty.engine.begin() as connection:
        connection.execute(text("DROP INDEX ix_messages_ready"))
        connection.execute(text("ALTER TABLE lanes ADD COLUMN surplus INTEGER"))
    found = " ".join(migrate.differences(empty))
    assert "ix_messages_ready" in found
    assert "surplus" in found


def test_a_table_of_the_callers_own_is_no_difference(empty: Store) -> None:
    migrate.upgrade(empty)
    with empty.engine.begin() as connection:
        connection.execute(text("CREATE TABLE orders (id INTEGER PRIMARY KEY, what TEXT)"))
        connection.execute(text("CREATE INDEX ix_orders ON orders (what)"))
    assert migrate.differences(empty) == []


def test_on_sqlite_both_make_the_same_text_conditions_of_indexes_included(
    stores: Stores, tmp_path: Path
) -> None:
    made = create_engine(f"sqlite:///{tmp_path / 'made.db'}")
    whole_schema().create_all(made)
    migrated = create_engine(f"sqlite:///{stores.sqlite_template()}")
    with made.connect() as one, migrated.connect() as other:
        models, migrations = _ddl(one), _ddl(other)
    made.dispose()
    migrated.dispose()
    assert models.keys() == migrations.keys()
    for name, sql in models.items():
        assert migrations[name] == sql


def test_on_postgresql_both_make_the_same_indexes_conditions_included(stores: Stores) -> None:
    """Alembic's comparison does not look at the conditions of partial indexes."""
    query = text("SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'")
    migrated = create_engine(stores.postgres_url("migrated"))
    stores.server.create_database("made")
    made = create_engine(stores.server.url("made"))
    whole_schema().create_all(made)
    with made.connect() as one, migrated.connect() as other:
        models = {row.indexname: row.indexdef for row in one.execute(query)}
        migrations = {row.indexname: row.indexdef for row in other.execute(query)}
    made.dispose()
    migrated.dispose()
    migrations.pop("alembic_version_pkc")
    assert models == migrations


def test_the_known_revisions_are_those_of_the_scripts() -> None:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    scripts = ScriptDirectory.from_config(config)
    known = [script.revision for script in scripts.walk_revisions()]
    assert tuple(reversed(known)) == open.KNOWN_REVISIONS
    assert open.HEAD_REVISION == scripts.get_current_head() == open.KNOWN_REVISIONS[-1]


def fill(connection: Connection) -> None:
    """Put a row into every table that there is."""
    metadata = MetaData()
    metadata.reflect(connection)
    for place, table in enumerate(metadata.tables.values()):
        if table.name != "alembic_version":
            connection.execute(insert(table).values(_row(table, 100 * place)))


def _row(table: Table, base: int) -> dict[str, object]:
    """A value for every column, another one for each."""
    row: dict[str, object] = {}
    for number, column in enumerate(table.columns, base):
        if isinstance(column.type, Boolean):
            row[column.name] = True
        elif isinstance(column.type, (Integer, BigInteger, Float, Double)):
            row[column.name] = number
        else:
            row[column.name] = f"{column.name} é {number}"
    return row


def read(connection: Connection) -> Rows:
    """What is stored, by table and column name."""
    metadata = MetaData()
    metadata.reflect(connection)
    return {
        f"{table.name}.{column.name}": [tuple(row) for row in connection.execute(select(column))]
        for table in metadata.tables.values()
        if table.name != "alembic_version"
        for column in table.columns
    }


def test_a_step_back_and_forth_keeps_what_both_revisions_have(empty: Store, later: str) -> None:
    migrate.upgrade(empty)
    with empty.engine.begin() as connection:
        fill(connection)
        before = read(connection)
    migrate.downgrade(empty, open.KNOWN_REVISIONS[-2])
    with empty.engine.begin() as connection:
        between = read(connection)
    migrate.upgrade(empty)
    with empty.engine.begin() as connection:
        after = read(connection)
    assert before.keys() - between.keys() == {f"{LATER_TABLE}.agent"}
    assert before.keys() == after.keys()
    for name, values in between.items():
        assert before[name] == values == after[name], name
    assert empty.revision() == later


def test_data_of_every_revision_survive_the_way_to_the_newest(empty: Store, later: str) -> None:
    for revision in open.KNOWN_REVISIONS:
        migrate.upgrade(empty, revision)
        with empty.engine.begin() as connection:
            fill(connection)
            before = read(connection)
        migrate.upgrade(empty)
        with empty.engine.begin() as connection:
            after = read(connection)
        assert empty.revision() == later == open.HEAD_REVISION == open.KNOWN_REVISIONS[-1]
        assert before.keys() <= after.keys()
        for name, values in before.items():
            assert values == after[name], (revision, name)
        assert migrate.differences(empty) == []
        migrate.downgrade(empty, "base")


def test_files_that_rows_name_before_the_upgrade_stay_in_their_conversations(
    empty: Store, later: str
) -> None:
    migrate.upgrade(empty, "0006")
    with empty.engine.begin() as connection:
        tables = MetaData()
        tables.reflect(connection)
        for name, base in (("messages", 100), ("messages_archive", 200), ("responses", 300)):
            table = tables.tables[name]
            row = _row(table, base) | {"conversation_id": name, "agent": "coder"}
            row |= {
                "files": f'["/h/files/{name}.txt", "/elsewhere/notes.md", 5]',
                "channel": "slack",
            }
            connection.execute(insert(table).values(row))
    migrate.upgrade(empty)
    with empty.read() as tx:
        for name in ("messages", "messages_archive", "responses"):
            assert is_used_in(tx, f"{name}.txt", name, "other", None)
            assert not is_used_in(tx, f"{name}.txt", "another", "coder", None)
            assert not is_used_in(tx, "notes.md", name, "coder", None)


def test_an_upgrade_of_what_is_new_already_changes_nothing(empty: Store) -> None:
    migrate.upgrade(empty)
    with empty.engine.begin() as connection:
        fill(connection)
        before = read(connection)
    migrate.upgrade(empty)
    with empty.engine.begin() as connection:
        assert read(connection) == before


def test_a_downgrade_to_nothing_leaves_the_callers_tables(empty: Store) -> None:
    migrate.upgrade(empty)
    with empty.engine.begin() as connection:
        connection.execute(text("CREATE TABLE orders (id INTEGER PRIMARY KEY)"))
    migrate.downgrade(empty, "base")
    with empty.engine.begin() as connection:
        left = set(inspect(connection).get_table_names())
    assert left == {"orders", "alembic_version"}
    migrate.upgrade(empty)
    assert migrate.differences(empty) == []


def test_old_receipts_of_parts_are_kept_with_their_ids_and_back(empty: Store) -> None:
    old = {1: '["ts-1", "ts \\u00e9"]', 2: "[]", 3: None, 4: "not JSON", 5: '{"a": 1}'}
    migrate.upgrade(empty, "0007")
    with empty.engine.begin() as connection:
        metadata = MetaData()
        metadata.reflect(connection)
        for name in ("responses", "responses_archive"):
            table = metadata.tables[name]
            rows = [_row(table, 0) | {"id": id_, "part_receipts": old[id_]} for id_ in old]
            # More than one batch.
            rows += [{**rows[0], "id": 10 + number} for number in range(1500)]
            connection.execute(insert(table), rows)
    migrate.upgrade(empty, "0008")
    new = old | {1: '[{"id": "ts-1"}, {"id": "ts \\u00e9"}]'}
    assert _part_receipts(empty) == [new, new]
    with empty.engine.begin() as connection:
        found = {
            row.part_receipts
            for name in ("responses", "responses_archive")
            for row in connection.execute(text(f"SELECT part_receipts FROM {name} WHERE id >= 10"))
        }
    assert found == {new[1]}
    assert [each.id for each in decode_receipts(new[1])] == ["ts-1", "ts é"]
    migrate.downgrade(empty, "0007")
    assert _part_receipts(empty) == [old, old]


def test_messages_that_may_run_again_have_their_runs_and_their_conversation(empty: Store) -> None:
    migrate.upgrade(empty, "0008")
    with empty.engine.begin() as connection:
        metadata = MetaData()
        metadata.reflect(connection)
        live, archive = metadata.tables["messages"], metadata.tables["messages_archive"]
        model = _row(live, 0) | {"retry_count": 0, "crash_count": 0}
        old = {name: value for name, value in model.items() if name in archive.c}
        first = {"message_id": "first", "conversation_id": "first", "created_at": 7}
        connection.execute(insert(archive).values(old | first))
        for id_, (status, retries, crashes, conversation) in enumerate(
            [
                ("pending", 0, 0, "first"),
                ("held", 2, 1, "m0"),
                ("processing", 1, 0, "gone"),
                ("completed", 3, 0, "m0"),
                ("pending", 0, 0, "m4"),
            ]
        ):
            row = {"id": id_ + 1, "message_id": f"m{id_}", "conversation_id": conversation}
            row |= {"status": status, "retry_count": retries, "crash_count": crashes}
            connection.execute(insert(live).values(model | row | {"created_at": 100 + id_}))
        attempts = metadata.tables["attempts"]
        connection.execute(insert(attempts).values(_row(attempts, 0)))
    migrate.upgrade(empty, "0009")
    select_messages = "SELECT runs, conversation_at FROM messages ORDER BY id"
    with empty.engine.begin() as connection:
        found = [tuple(row) for row in connection.execute(text(select_messages))]
        (run,) = connection.execute(text("SELECT * FROM attempts")).mappings()
    assert found == [(0, 7), (3, 100), (2, None), (0, None), (0, None)]
    assert (run["sender"], run["dead"]) == ("", 0)
    assert {run[name] for name in ("available_at", "conversation_at", "attempt")} == {None}
    migrate.downgrade(empty, "0008")
    migrate.upgrade(empty, "0009")
    with empty.engine.begin() as connection:
        assert [tuple(row) for row in connection.execute(text(select_messages))] == found


def _part_receipts(store: Store) -> list[dict[int, str | None]]:
    """The receipts of the first responses, live and archived, by id."""
    queries = (
        "SELECT id, part_receipts FROM responses WHERE id < 10",
        "SELECT id, part_receipts FROM responses_archive WHERE id < 10",
    )
    with store.engine.begin() as connection:
        return [
            {row.id: row.part_receipts for row in connection.execute(text(each))}
            for each in queries
        ]


def test_a_queue_works_after_every_way_through_the_revisions(empty: Store, later: str) -> None:
    migrate.upgrade(empty)
    migrate.downgrade(empty, open.KNOWN_REVISIONS[0])
    migrate.upgrade(empty)
    assert empty.revision() == later
    with empty.write() as tx:
        create_lane(tx, "coder")
        enqueue(tx, NewMessage(agent="coder", message="hi"))
        assert claim(tx, "worker-1") is not None


def test_a_database_of_a_later_version_is_refused(stores: Stores, settings: Settings) -> None:
    with stores.opened(settings) as store:
        _set_revision(store, "ffff")
        with pytest.raises(SchemaTooNew):
            migrate.upgrade(store)
        with store.engine.begin() as connection:
            assert connection.execute(text("SELECT * FROM alembic_version")).scalar() == "ffff"
    with pytest.raises(SchemaTooNew) as caught:
        open_store(settings)
    assert caught.value.hint
    open_store(settings, check=False).close()


def test_an_empty_database_is_refused(empty: Store) -> None:
    with pytest.raises(SchemaTooOld) as caught:
        open_store(empty.settings)
    assert "bullpen db upgrade" in caught.value.hint


def test_a_database_of_an_earlier_version_is_refused(empty: Store, later: str) -> None:
    older = open.KNOWN_REVISIONS[-2]
    migrate.upgrade(empty, older)
    with pytest.raises(SchemaTooOld, match=f"{older}, but this version needs {later}") as caught:
        open_store(empty.settings)
    assert "bullpen db upgrade" in caught.value.hint


@pytest.mark.parametrize("revision", open.UNRELEASED_REVISIONS)
def test_a_database_of_a_checkout_before_the_first_release_is_refused_and_not_touched(
    empty: Store, revision: str
) -> None:
    migrate.upgrade(empty)
    _set_revision(empty, revision)
    for refused in (lambda: open_store(empty.settings), lambda: migrate.upgrade(empty)):
        with pytest.raises(SchemaTooOld, match=revision) as caught:
            refused()
        assert caught.value.hint == open.UNRELEASED_HINT
    assert empty.revision() == revision


def test_a_database_of_the_newest_checkout_has_nothing_to_upgrade(empty: Store) -> None:
    assert "0006" in open.KNOWN_REVISIONS
    assert not set(open.UNRELEASED_REVISIONS) & set(open.KNOWN_REVISIONS)


def test_what_was_said_before_the_upgrade_and_not_answered_is_in_the_history_once(
    empty: Store,
) -> None:
    migrate.upgrade(empty, "0006")
    said = {"pending": 10, "completed": 20, "dead": 30, "held": 40}
    with empty.engine.begin() as connection:
        metadata = MetaData()
        metadata.reflect(connection)
        history, messages = (metadata.tables[name] for name in ("agent_messages", "messages"))
        entry = {**_row(history, 0), "role": "user", "message_id": "completed", "created_at": 25}
        connection.execute(insert(history).values(entry))
        for number, (status, at) in enumerate(said.items(), 1):
            row = {**_row(messages, 1000 * number), "status": status, "message_id": status}
            row.update(from_agent=None, created_at=at, claim_token=None)
            connection.execute(insert(messages).values(row))
    for _ in range(2):
        migrate.upgrade(empty)
        with empty.engine.begin() as connection:
            rows = connection.execute(text("SELECT * FROM agent_messages ORDER BY id")).all()
            said_by_id = connection.execute(text("SELECT message_id, message FROM messages")).all()
            texts = {row.message_id: row.message for row in said_by_id}
        # No older than the entry before it: pages and searches by time go by the ids.
        assert [(row.message_id, row.role, row.created_at) for row in rows] == [
            ("completed", "user", 25),
            ("pending", "user", 25),
            ("dead", "user", 30),
            ("held", "user", 40),
        ]
        assert [row.content for row in rows[1:]] == [texts[each.message_id] for each in rows[1:]]
        migrate.downgrade(empty, "0006")
        with empty.engine.begin() as connection:
            left = connection.execute(text("SELECT message_id FROM agent_messages")).scalars()
            assert list(left) == ["completed"]
