"""Limits of keys, files, agents and the queue."""

import json
from pathlib import PurePath

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

UNANSWERED = """
    SELECT message_id FROM messages
    WHERE status IN ('pending', 'processing', 'held', 'dead', 'cancelled', 'expired')
"""
"""The messages whose text the previous revision did not write into the history."""


def upgrade() -> None:
    _keys()
    _files()
    _agents()
    _queue()
    _history()


def downgrade() -> None:
    _keys_before()
    _queue_before()
    _agents_before()
    _history_before()
    _files_before()


def _agents_before() -> None:
    with op.batch_alter_table("agents") as agents:
        agents.drop_column("reach")
        agents.drop_column("sandbox")


def _history_before() -> None:
    op.execute(
        f"DELETE FROM agent_messages WHERE role = 'user' AND message_id IN ({UNANSWERED})"  # noqa: S608
    )


def _queue_before() -> None:
    op.drop_index("ix_messages_key", "messages")
    op.drop_column("messages", "key_bytes")
    op.drop_column("messages", "key_id")
    op.drop_column("lanes", "newest_at")
    op.drop_column("lanes", "lease_ms")


def _files_before() -> None:
    op.drop_table("file_uses")
    op.drop_table("stored_files")


def _keys() -> None:
    op.add_column("api_keys", sa.Column("made_by", sa.Text(), nullable=True))
    op.create_index("ix_api_keys_made_by", "api_keys", ["made_by"])


def _keys_before() -> None:
    op.drop_index("ix_api_keys_made_by", "api_keys")
    op.drop_column("api_keys", "made_by")


def _files() -> None:
    op.create_table(
        "stored_files",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("key_id", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_stored_files")),
    )
    op.create_index("ix_stored_files_key", "stored_files", ["key_id"])
    uses = op.create_table(
        "file_uses",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("conversation_id", sa.Text(), nullable=False),
        sa.Column("agent", sa.Text(), nullable=False),
        sa.Column("place", sa.Text(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", "conversation_id", "agent", name=op.f("pk_file_uses")),
        sqlite_with_rowid=False,
    )
    op.bulk_insert(uses, _known_uses())


def _known_uses() -> list[dict[str, object]]:
    """The conversations of the existing rows that refer to files of the files directory."""
    found: dict[tuple[str, str, str], dict[str, object]] = {}
    for table, place in (
        ("messages", "batch_key"),
        ("messages_archive", "batch_key"),
        ("responses", "NULL"),
        ("responses_archive", "NULL"),
    ):
        query = (
            f"SELECT files, conversation_id, agent, {place}, created_at, channel FROM {table}"  # noqa: S608
            " WHERE files IS NOT NULL"
        )
        for files, conversation, agent, where, created, channel in op.get_bind().exec_driver_sql(
            query
        ):
            known = None if channel in ("chatroom", "internal", "heartbeat") else where
            for path in map(PurePath, _names(files)):
                if path.parent.name == "files":
                    row = {"name": path.name, "conversation_id": conversation, "agent": agent}
                    row.update(place=known, created_at=created)
                    found.setdefault((path.name, conversation, agent), row)
    return list(found.values())


def _names(files: str) -> list[str]:
    try:
        found = json.loads(files)
    except ValueError:
        return []
    return [each for each in found if isinstance(each, str)] if isinstance(found, list) else []


def _agents() -> None:
    # Agents that exist already are bounded as new ones are.
    with op.batch_alter_table("agents") as agents:
        agents.add_column(
            sa.Column("reach", sa.Text(), nullable=False, server_default="conversation")
        )
        agents.add_column(sa.Column("sandbox", sa.Text(), nullable=False, server_default="none"))
    with op.batch_alter_table("agents") as agents:
        agents.alter_column("reach", server_default=None)
        agents.alter_column("sandbox", server_default=None)


def _queue() -> None:
    op.add_column("lanes", sa.Column("lease_ms", sa.BigInteger(), nullable=True))
    op.add_column("lanes", sa.Column("newest_at", sa.BigInteger(), nullable=True))
    op.add_column("messages", sa.Column("key_id", sa.Text(), nullable=True))
    op.add_column("messages", sa.Column("key_bytes", sa.Integer(), nullable=True))
    of_keys = sa.text("key_id IS NOT NULL AND status IN ('pending', 'held')")
    op.create_index(
        "ix_messages_key",
        "messages",
        ["key_id", "status", "key_bytes"],
        sqlite_where=of_keys,
        postgresql_where=of_keys,
    )
    # Larger numbers were taken once, which PostgreSQL's columns cannot hold.
    op.execute("UPDATE lanes SET max_depth = 1000000000 WHERE max_depth > 1000000000")
    op.execute("UPDATE lanes SET max_attempts = 1000000000 WHERE max_attempts > 1000000000")


def _history() -> None:
    """Add unanswered messages to the history; from now on, each is added when it is accepted.

    The history is read in the order of its ids, so no row is older than the row before it.
    """
    connection = op.get_bind()
    newest = connection.execute(sa.text("SELECT MAX(created_at) FROM agent_messages")).scalar()
    connection.execute(
        sa.text(
            f"""
            INSERT INTO agent_messages
                (agent_id, role, channel, sender, message_id, content, created_at)
            SELECT agent, 'user', channel, COALESCE(from_agent, sender), message_id, message,
                CASE WHEN created_at > :newest THEN created_at ELSE :newest END
            FROM messages
            WHERE message_id IN ({UNANSWERED})
                AND message_id NOT IN (SELECT message_id FROM agent_messages WHERE role = 'user')
            ORDER BY id
            """  # noqa: S608 - no value is in the text
        ),
        {"newest": newest or 0},
    )
