"""The queue: messages, lanes, responses, history, attempts, events, receipts and workers."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "agent_messages",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("agent_id", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("channel", sa.Text(), nullable=False),
        sa.Column("sender", sa.Text(), nullable=False),
        sa.Column("message_id", sa.Text(), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_agent_messages")),
    )
    op.create_index("ix_agent_messages_agent", "agent_messages", ["agent_id", "id"], unique=False)

    op.create_table(
        "attempts",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("message_id", sa.Text(), nullable=False),
        sa.Column("messages", sa.Integer(), nullable=False),
        sa.Column("agent", sa.Text(), nullable=False),
        sa.Column("worker", sa.Text(), nullable=False),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.Column("error_kind", sa.Text(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("fingerprint", sa.Text(), nullable=True),
        sa.Column("retry_count", sa.Integer(), nullable=False),
        sa.Column("provider", sa.Text(), nullable=True),
        sa.Column("model", sa.Text(), nullable=True),
        sa.Column("input_tokens", sa.Integer(), nullable=False),
        sa.Column("output_tokens", sa.Integer(), nullable=False),
        sa.Column("cost", sa.Double(), nullable=False),
        sa.Column("conversation_id", sa.Text(), nullable=False),
        sa.Column("hop", sa.Integer(), nullable=False),
        sa.Column("team_id", sa.Text(), nullable=True),
        sa.Column("channel", sa.Text(), nullable=False),
        sa.Column("enqueued_at", sa.BigInteger(), nullable=False),
        sa.Column("claimed_at", sa.BigInteger(), nullable=False),
        sa.Column("started_at", sa.BigInteger(), nullable=False),
        sa.Column("finished_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_attempts")),
    )
    op.create_index("ix_attempts_message_id", "attempts", ["message_id"], unique=False)

    op.create_table(
        "chat_messages",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("team_id", sa.Text(), nullable=False),
        sa.Column("from_agent", sa.Text(), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_chat_messages")),
    )
    op.create_index("ix_chat_messages_team", "chat_messages", ["team_id", "id"], unique=False)

    op.create_table(
        "events",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("agent", sa.Text(), nullable=True),
        sa.Column("conversation_id", sa.Text(), nullable=True),
        sa.Column("message_id", sa.Text(), nullable=True),
        sa.Column("data", sa.Text(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_events")),
    )

    op.create_table(
        "lanes",
        sa.Column("agent", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("ordering", sa.Text(), nullable=False),
        sa.Column("batching", sa.Text(), nullable=False),
        sa.Column("max_depth", sa.Integer(), nullable=True),
        sa.Column("overflow", sa.Text(), nullable=False),
        sa.Column("max_attempts", sa.Integer(), nullable=False),
        sa.Column("pending", sa.Integer(), nullable=False),
        sa.Column("head_key", sa.BigInteger(), nullable=True),
        sa.Column("not_before", sa.BigInteger(), nullable=True),
        sa.Column("claim_token", sa.Text(), nullable=True),
        sa.Column("claimed_by", sa.Text(), nullable=True),
        sa.Column("claimed_at", sa.BigInteger(), nullable=True),
        sa.Column("lease_expires_at", sa.BigInteger(), nullable=True),
        sa.Column("batch", sa.Text(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("agent", name=op.f("pk_lanes")),
    )
    op.create_index(
        "ix_lanes_claimable",
        "lanes",
        ["head_key"],
        unique=False,
        sqlite_where=sa.text("head_key IS NOT NULL"),
        postgresql_where=sa.text("head_key IS NOT NULL"),
    )
    op.create_index(
        "ix_lanes_not_before",
        "lanes",
        ["not_before"],
        unique=False,
        sqlite_where=sa.text("not_before IS NOT NULL"),
        postgresql_where=sa.text("not_before IS NOT NULL"),
    )

    op.create_table(
        "messages",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("message_id", sa.Text(), nullable=False),
        sa.Column("channel", sa.Text(), nullable=False),
        sa.Column("sender", sa.Text(), nullable=False),
        sa.Column("sender_id", sa.Text(), nullable=True),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("agent", sa.Text(), nullable=False),
        sa.Column("from_agent", sa.Text(), nullable=True),
        sa.Column("files", sa.Text(), nullable=True),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("retry_count", sa.Integer(), nullable=False),
        sa.Column("crash_count", sa.Integer(), nullable=False),
        sa.Column("last_error", sa.Text(), nullable=True),
        sa.Column("error_kind", sa.Text(), nullable=True),
        sa.Column("claimed_by", sa.Text(), nullable=True),
        sa.Column("claim_token", sa.Text(), nullable=True),
        sa.Column("conversation_id", sa.Text(), nullable=False),
        sa.Column("parent_id", sa.Text(), nullable=True),
        sa.Column("hop", sa.Integer(), nullable=False),
        sa.Column("team_id", sa.Text(), nullable=True),
        sa.Column("reply_to", sa.Text(), nullable=True),
        sa.Column("batch_key", sa.Text(), nullable=True),
        sa.Column("priority", sa.Integer(), nullable=False),
        sa.Column("sort_key", sa.BigInteger(), nullable=False),
        sa.Column("ready", sa.Boolean(), nullable=False),
        sa.Column("due_at", sa.BigInteger(), nullable=False),
        sa.Column("available_at", sa.BigInteger(), nullable=False),
        sa.Column("deadline", sa.BigInteger(), nullable=True),
        sa.Column("payload", sa.Text(), nullable=True),
        sa.Column("schema", sa.Text(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_messages")),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_messages_conversation",
        "messages",
        ["conversation_id"],
        unique=False,
        sqlite_where=sa.text("conversation_id <> message_id"),
        postgresql_where=sa.text("conversation_id <> message_id"),
    )
    op.create_index(
        "ix_messages_deadline",
        "messages",
        ["deadline"],
        unique=False,
        sqlite_where=sa.text("status = 'pending' AND deadline IS NOT NULL"),
        postgresql_where=sa.text("status = 'pending' AND deadline IS NOT NULL"),
    )
    op.create_index(
        "ix_messages_delayed",
        "messages",
        ["available_at"],
        unique=False,
        sqlite_where=sa.text("status = 'pending' AND ready = 0"),
        postgresql_where=sa.text("status = 'pending' AND NOT ready"),
    )
    op.create_index(
        "ix_messages_finished",
        "messages",
        ["updated_at", "id"],
        unique=False,
        sqlite_where=sa.text("status IN ('completed', 'cancelled', 'expired')"),
        postgresql_where=sa.text("status IN ('completed', 'cancelled', 'expired')"),
    )
    op.create_index(
        "ix_messages_ready",
        "messages",
        ["agent", "sort_key", "id", "batch_key"],
        unique=False,
        sqlite_where=sa.text("status = 'pending' AND ready = 1"),
        postgresql_where=sa.text("status = 'pending' AND ready"),
    )
    op.create_index(
        "ix_messages_waiting_for_people",
        "messages",
        ["status", "updated_at", "id"],
        unique=False,
        sqlite_where=sa.text("status IN ('dead', 'held')"),
        postgresql_where=sa.text("status IN ('dead', 'held')"),
    )
    op.create_index("uq_messages_message_id", "messages", ["message_id"], unique=True)

    op.create_table(
        "receipts",
        sa.Column("channel", sa.Text(), nullable=False),
        sa.Column("event_id", sa.Text(), nullable=False),
        sa.Column("message_id", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("channel", "event_id", name=op.f("pk_receipts")),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_receipts_created_at", "receipts", ["created_at"], unique=False)

    op.create_table(
        "responses",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("message_id", sa.Text(), nullable=False),
        sa.Column("channel", sa.Text(), nullable=False),
        sa.Column("sender", sa.Text(), nullable=False),
        sa.Column("sender_id", sa.Text(), nullable=True),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("original_message", sa.Text(), nullable=False),
        sa.Column("agent", sa.Text(), nullable=False),
        sa.Column("files", sa.Text(), nullable=True),
        sa.Column("metadata", sa.Text(), nullable=True),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("conversation_id", sa.Text(), nullable=False),
        sa.Column("reply_to", sa.Text(), nullable=True),
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("delivery_attempts", sa.Integer(), nullable=False),
        sa.Column("parts_sent", sa.Integer(), nullable=False),
        sa.Column("part_receipts", sa.Text(), nullable=True),
        sa.Column("sending", sa.Boolean(), nullable=False),
        sa.Column("possible_duplicate", sa.Boolean(), nullable=False),
        sa.Column("claim_token", sa.Text(), nullable=True),
        sa.Column("claimed_by", sa.Text(), nullable=True),
        sa.Column("lease_expires_at", sa.BigInteger(), nullable=True),
        sa.Column("available_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.Column("last_error", sa.Text(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("acked_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_responses")),
    )
    op.create_index(
        "ix_responses_acked",
        "responses",
        ["acked_at", "id"],
        unique=False,
        sqlite_where=sa.text("status = 'acked'"),
        postgresql_where=sa.text("status = 'acked'"),
    )
    op.create_index("ix_responses_message_id", "responses", ["message_id"], unique=False)
    op.create_index(
        "ix_responses_pending",
        "responses",
        ["channel", "available_at", "id", "expires_at"],
        unique=False,
        sqlite_where=sa.text("status = 'pending'"),
        postgresql_where=sa.text("status = 'pending'"),
    )
    op.create_index(
        "ix_responses_waiting_for_people",
        "responses",
        ["status", "id"],
        unique=False,
        sqlite_where=sa.text("status IN ('dead', 'unknown')"),
        postgresql_where=sa.text("status IN ('dead', 'unknown')"),
    )

    op.create_table(
        "workers",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("pid", sa.Integer(), nullable=False),
        sa.Column("wake", sa.Text(), nullable=True),
        sa.Column("started_at", sa.BigInteger(), nullable=False),
        sa.Column("heartbeat_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_workers")),
    )


def downgrade() -> None:
    op.drop_table("agent_messages")
    op.drop_table("attempts")
    op.drop_table("chat_messages")
    op.drop_table("events")
    op.drop_table("lanes")
    op.drop_table("messages")
    op.drop_table("receipts")
    op.drop_table("responses")
    op.drop_table("workers")
