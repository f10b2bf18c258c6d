"""What bounds keys, files, agents and the queue."""

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
"""The messages whose text no finish of the revision before has written into the history."""


def upgrade() -> None:
    _keys()
    _files()
    _agents()
    _queue()
    _history()


def downgrade() -> None:
    _queue_before()
    _agents_before()
    _history_before()


def _agents_before() -> None:
    with op.batch_alter_table("agents") as agents:
        agents.drop_column("reach")
        agents.drop_column("sandbox")


def _history_before() -> None:
    op.execute(
        f"DELETE FROM agent_messages WHERE role = 'user' AND message_id IN ({UNANSWERED})"  # noqa: S608
    )


def _queue_before() -> None:
    op.drop_column("lanes", "newest_at")
    op.drop_column("lanes", "lease_ms")


def _keys() -> None:
    pass


def _files() -> None:
    pass


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
    # Larger numbers were taken once, which PostgreSQL's columns cannot hold.
    op.execute("UPDATE lanes SET max_depth = 1000000000 WHERE max_depth > 1000000000")
    op.execute("UPDATE lanes SET max_attempts = 1000000000 WHERE max_attempts > 1000000000")


def _history() -> None:
    """What was said and not answered is in the history too, from now on since it was accepted.

    The history is read in the order of its ids, so no row is older than the one before it.
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
