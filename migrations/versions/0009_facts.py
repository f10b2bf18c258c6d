"""What reports need about runs and messages, and the identity of the store.

The columns are added without writing a row, because `attempts` may have millions. Only the few
messages that may run again get values.
"""

import secrets
import time

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

MESSAGE_TABLES = ("messages", "messages_archive")

UNFINISHED = "status IN ('pending', 'processing', 'held', 'dead')"

COUNT_RUNS = f"""
    UPDATE messages SET runs =
        retry_count + crash_count + CASE WHEN status = 'processing' THEN 1 ELSE 0 END
    WHERE {UNFINISHED} AND (retry_count > 0 OR crash_count > 0 OR status = 'processing')
"""  # noqa: S608 - constants
"""The runs of messages that may run again, as far as they are known."""

DATE_CONVERSATIONS = f"""
    UPDATE messages SET conversation_at = COALESCE(
        (SELECT first.created_at FROM messages AS first
         WHERE first.message_id = messages.conversation_id),
        (SELECT first.created_at FROM messages_archive AS first
         WHERE first.message_id = messages.conversation_id)
    )
    WHERE conversation_id <> message_id AND {UNFINISHED}
"""  # noqa: S608 - constants
"""The conversation of a message that an agent may still answer; of a first message it is its own
`created_at`, which readers know."""


def upgrade() -> None:
    _attempts()
    for table in MESSAGE_TABLES:
        op.add_column(table, _later("runs", sa.Integer(), "0"))
        op.add_column(table, sa.Column("conversation_at", sa.BigInteger(), nullable=True))
    op.execute(COUNT_RUNS)
    op.execute(DATE_CONVERSATIONS)
    _identity()


def downgrade() -> None:
    op.drop_table("store_identity")
    for table in MESSAGE_TABLES:
        op.drop_column(table, "conversation_at")
        op.drop_column(table, "runs")
    for column in reversed(_attempt_columns()):
        op.drop_column("attempts", column.name)


def _attempts() -> None:
    for column in _attempt_columns():
        op.add_column("attempts", column)


def _attempt_columns() -> list[sa.Column]:
    return [
        _later("sender", sa.Text(), "''"),
        sa.Column("sender_id", sa.Text(), nullable=True),
        sa.Column("from_agent", sa.Text(), nullable=True),
        sa.Column("available_at", sa.BigInteger(), nullable=True),
        sa.Column("conversation_at", sa.BigInteger(), nullable=True),
        sa.Column("attempt", sa.Integer(), nullable=True),
        _later("dead", sa.Integer(), "0"),
        sa.Column("wait", sa.BigInteger(), nullable=True),
    ]


def _later(name: str, kind: sa.types.TypeEngine, default: str) -> sa.Column:
    """A column that is not null, with the value of the rows that exist."""
    return sa.Column(name, kind, nullable=False, server_default=sa.text(default))


def _identity() -> None:
    identity = op.create_table(
        "store_identity",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_store_identity")),
    )
    row = {"id": secrets.token_hex(8), "created_at": int(time.time() * 1000)}
    op.bulk_insert(identity, [row])
