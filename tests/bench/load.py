"""Fills a database with so many waiting and so many finished messages, by SQL alone."""

from __future__ import annotations

from sqlalchemy import delete, select, text

from bullpen.core.clock import DAY
from bullpen.core.models import MESSAGES
from bullpen.core.queue.enqueue import enqueue
from bullpen.core.store.base import Store
from bullpen.core.store.sqlite import SqliteStore
from tests.bench.laps import message

NUMBERS = {
    "sqlite": """
        WITH RECURSIVE numbers(i) AS
        (SELECT 1 UNION ALL SELECT i + 1 FROM numbers WHERE i < :rows)
    """,
    "postgresql": "WITH numbers AS (SELECT i FROM generate_series(1, :rows) AS i)",
}

# The factor spreads the ids over all that there are, so that their index is not filled in order.
MESSAGE_ID = {
    "sqlite": "printf('api_%08x', i * 2654435761 % 4294967296)",
    "postgresql": "'api_' || lpad(to_hex(i::bigint * 2654435761 % 4294967296), 8, '0')",
}

ROWS = """
INSERT INTO messages ({columns})
{numbers}, named AS (SELECT i, {message_id} AS message_id, :start + i AS moment FROM numbers)
SELECT {values} FROM named
"""

# The other columns are those of a message that Bullpen itself enqueued.
OWN = {
    "message_id": "message_id",
    "conversation_id": "message_id",
    "agent": "'agent' || (i % :agents)",
    "sort_key": "moment",
}

LANES = """
UPDATE lanes SET
    pending = (SELECT count(*) FROM messages
               WHERE messages.agent = lanes.agent AND status = 'pending'),
    head_key = (SELECT min(sort_key) FROM messages
                WHERE messages.agent = lanes.agent AND status = 'pending')
"""


HALF_IS_FINISHED = "CASE WHEN 2 * i <= :rows THEN 'completed' ELSE 'pending' END"


def load(store: Store, count: int, agents: int) -> None:
    """Write `count` waiting and `count` finished messages, as if they had come one by one."""
    with store.write() as tx:
        enqueue(tx, message("agent0"))
    with store.engine.begin() as connection:
        model = dict(connection.execute(select(MESSAGES)).mappings().one())
        connection.execute(delete(MESSAGES))
    _write(store, model, 2 * count, agents, store.clock.now() - 2 * count, HALF_IS_FINISHED)


def load_finished(store: Store, count: int, agents: int) -> None:
    """Write `count` messages that were finished so long ago that they are to be archived."""
    with store.engine.begin() as connection:
        model = dict(connection.execute(select(MESSAGES).limit(1)).mappings().one())
    _write(store, model, count, agents, store.clock.now() - 7 * DAY, "'completed'")


def _write(
    store: Store, model: dict[str, object], count: int, agents: int, start: int, status: str
) -> None:
    own = {**OWN, "status": status}
    with store.engine.begin() as connection:
        for index in MESSAGES.indexes:
            index.drop(connection)
        columns = {name: _value(name, model[name], own) for name in model if name != "id"}
        rows = ROWS.format(
            columns=", ".join(columns),
            values=", ".join(columns.values()),
            numbers=NUMBERS[store.dialect],
            message_id=MESSAGE_ID[store.dialect],
        )
        given = {**model, "rows": count, "agents": agents, "start": start}
        connection.execute(text(rows), given)
        for index in MESSAGES.indexes:
            index.create(connection)
        connection.execute(text(LANES))
    _settle(store)


def _value(name: str, of_model: object, own: dict[str, str]) -> str:
    if name.endswith("_at") and of_model is not None:
        return "moment"
    return own.get(name, f":{name}")


def _settle(store: Store) -> None:
    """Bring the planner's statistics and the files to the state that they come to by themselves."""
    if isinstance(store, SqliteStore):
        bare = store.connect()
        bare.execute("ANALYZE")
        bare.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        bare.close()
        return
    with store.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("VACUUM (ANALYZE)"))
        connection.execute(text("CHECKPOINT"))
