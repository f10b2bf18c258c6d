"""Chats, senders and the health of channels; look-ups of responses whose outcome is unknown."""

import json

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

BATCH_ROWS = 1000

RESPONSE_TABLES = ("responses", "responses_archive")
MESSAGE_TABLES = ("messages", "messages_archive")

RESPONSE_COLUMNS = {
    "sending_since": sa.BigInteger,
    "sending_part": sa.Text,
    "lapses": sa.Integer,
    "recover_at": sa.BigInteger,
    "recoveries": sa.Integer,
    "tell_at": sa.BigInteger,
}


def upgrade() -> None:
    _chats()
    _senders()
    _channel_health()
    for table in MESSAGE_TABLES:
        op.add_column(table, sa.Column("written_at", sa.BigInteger(), nullable=True))
    for table in RESPONSE_TABLES:
        for name, kind in RESPONSE_COLUMNS.items():
            op.add_column(table, sa.Column(name, kind(), nullable=True))
        _rewrite_receipts(table, old=str, new=lambda receipt: {"id": receipt})
    _index_pending("channel", "id", "available_at", "expires_at")
    to_recover = sa.text("status = 'unknown' AND recover_at IS NOT NULL")
    op.create_index(
        "ix_responses_recover",
        "responses",
        ["channel", "recover_at", "id"],
        sqlite_where=to_recover,
        postgresql_where=to_recover,
    )


def downgrade() -> None:
    op.drop_index("ix_responses_recover", "responses")
    _index_pending("channel", "available_at", "id", "expires_at")
    for table in RESPONSE_TABLES:
        _rewrite_receipts(table, old=dict, new=lambda receipt: receipt["id"])
        for name in RESPONSE_COLUMNS:
            op.drop_column(table, name)
    for table in MESSAGE_TABLES:
        op.drop_column(table, "written_at")
    for table in ("channel_health", "senders", "chats"):
        op.drop_table(table)


def _index_pending(*columns: str) -> None:
    """Create the index of the responses that are leased, with another order of its columns."""
    pending = sa.text("status = 'pending'")
    op.drop_index("ix_responses_pending", "responses")
    op.create_index(
        "ix_responses_pending",
        "responses",
        list(columns),
        sqlite_where=pending,
        postgresql_where=pending,
    )


def _rewrite_receipts(table, old, new) -> None:  # noqa: ANN001 - a type, and a function of its values
    """Write each receipt in the other form; other values of the column stay as they are."""
    connection = op.get_bind()
    select = sa.text(
        f"SELECT id, part_receipts FROM {table}"  # noqa: S608 - a constant
        " WHERE part_receipts IS NOT NULL AND id > :after ORDER BY id LIMIT :limit"
    )
    update = sa.text(f"UPDATE {table} SET part_receipts = :receipts WHERE id = :id")  # noqa: S608
    after = -1
    while rows := connection.execute(select, {"after": after, "limit": BATCH_ROWS}).all():
        after = rows[-1][0]
        changed = [
            {"id": row, "receipts": json.dumps([new(each) for each in receipts])}
            for row, text in rows
            if (receipts := _receipts(text, old))
        ]
        if changed:
            connection.execute(update, changed)


def _receipts(text, kind) -> list:  # noqa: ANN001
    try:
        found = json.loads(text)
    except ValueError:
        return []
    return found if isinstance(found, list) and all(isinstance(e, kind) for e in found) else []


def _chats() -> None:
    op.create_table(
        "chats",
        sa.Column("channel", sa.Text(), nullable=False),
        sa.Column("chat", sa.Text(), nullable=False),
        sa.Column("direct", sa.Boolean(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("access", sa.Text(), nullable=True),
        sa.Column("allowed_by", sa.Text(), nullable=True),
        sa.Column("code", sa.Text(), nullable=True),
        sa.Column("code_expires_at", sa.BigInteger(), nullable=True),
        sa.Column("cursor", sa.Text(), nullable=True),
        sa.Column("cursor_at", sa.BigInteger(), nullable=True),
        sa.Column("default_agent", sa.Text(), nullable=True),
        sa.Column("window_until", sa.BigInteger(), nullable=True),
        sa.Column("opted_out_at", sa.BigInteger(), nullable=True),
        sa.Column("migrated_to", sa.Text(), nullable=True),
        sa.Column("penalty_until", sa.BigInteger(), nullable=True),
        sa.Column("person", sa.Text(), nullable=True),
        sa.Column("last_in_at", sa.BigInteger(), nullable=True),
        sa.Column("last_out_at", sa.BigInteger(), nullable=True),
        sa.Column("told_at", sa.BigInteger(), nullable=True),
        sa.Column("away_told_at", sa.BigInteger(), nullable=True),
        sa.Column("verbosity", sa.Text(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("channel", "chat", name=op.f("pk_chats")),
        sqlite_with_rowid=False,
    )
    _index_codes("chats")


def _senders() -> None:
    op.create_table(
        "senders",
        sa.Column("channel", sa.Text(), nullable=False),
        sa.Column("sender_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("tier", sa.Text(), nullable=True),
        sa.Column("code", sa.Text(), nullable=True),
        sa.Column("code_expires_at", sa.BigInteger(), nullable=True),
        sa.Column("told_at", sa.BigInteger(), nullable=True),
        sa.Column("asked_in", sa.Text(), nullable=True),
        sa.Column("approved_at", sa.BigInteger(), nullable=True),
        sa.Column("approved_by", sa.Text(), nullable=True),
        sa.Column("first_at", sa.BigInteger(), nullable=False),
        sa.Column("last_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("channel", "sender_id", name=op.f("pk_senders")),
        sqlite_with_rowid=False,
    )
    _index_codes("senders")
    unpaired = sa.text("tier IS NULL")
    op.create_index(
        "ix_senders_unpaired",
        "senders",
        ["last_at"],
        sqlite_where=unpaired,
        postgresql_where=unpaired,
    )


def _index_codes(table: str) -> None:
    with_code = sa.text("code IS NOT NULL")
    op.create_index(
        f"ix_{table}_code",
        table,
        ["channel", "code_expires_at"],
        sqlite_where=with_code,
        postgresql_where=with_code,
    )


def _channel_health() -> None:
    op.create_table(
        "channel_health",
        sa.Column("channel", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("code", sa.Text(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("hint", sa.Text(), nullable=True),
        sa.Column("since", sa.BigInteger(), nullable=False),
        sa.Column("paused", sa.Boolean(), nullable=False),
        sa.Column("told_at", sa.BigInteger(), nullable=True),
        sa.Column("worker", sa.Text(), nullable=True),
        sa.Column("last_event_at", sa.BigInteger(), nullable=True),
        sa.Column("last_message_at", sa.BigInteger(), nullable=True),
        sa.Column("last_receipt_at", sa.BigInteger(), nullable=True),
        sa.Column("last_probe_at", sa.BigInteger(), nullable=True),
        sa.Column("probe_ms", sa.Integer(), nullable=True),
        sa.Column("connections", sa.Integer(), nullable=True),
        sa.Column("caught_up_at", sa.BigInteger(), nullable=True),
        sa.Column("caught_up", sa.Text(), nullable=True),
        sa.Column("findings", sa.Text(), nullable=True),
        sa.Column("wrong_codes", sa.Integer(), nullable=True),
        sa.Column("wrong_code_at", sa.BigInteger(), nullable=True),
        sa.Column("locked_until", sa.BigInteger(), nullable=True),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("channel", name=op.f("pk_channel_health")),
        sqlite_with_rowid=False,
    )
