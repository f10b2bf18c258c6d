"""Schedules, heartbeats, causes of death, and what retention and the system agents need."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_MILLIS = sa.BigInteger()


def upgrade() -> None:
    _schedules()
    _heartbeats()
    op.create_table(
        "death_causes",
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("error", sa.Text(), nullable=False),
        sa.Column("deaths", sa.Integer(), nullable=False),
        sa.Column("first_at", _MILLIS, nullable=False),
        sa.Column("last_at", _MILLIS, nullable=False),
        sa.Column("told_at", _MILLIS, nullable=True),
        sa.PrimaryKeyConstraint("fingerprint", name=op.f("pk_death_causes")),
    )
    with op.batch_alter_table("system_agents") as table:
        table.add_column(sa.Column("failures", sa.Integer(), nullable=False, server_default="0"))
        table.add_column(sa.Column("cursor", _MILLIS, nullable=False, server_default="0"))
        table.add_column(sa.Column("running_since", _MILLIS, nullable=True))
    with op.batch_alter_table("agents") as table:
        table.add_column(sa.Column("scheduling", sa.Text(), nullable=False, server_default="self"))
    # The defaults were for the rows that are there.
    with op.batch_alter_table("system_agents") as table:
        table.alter_column("failures", server_default=None)
        table.alter_column("cursor", server_default=None)
    with op.batch_alter_table("agents") as table:
        table.alter_column("scheduling", server_default=None)
    op.create_index(
        "ix_messages_archive_updated_at", "messages_archive", ["updated_at", "id"], unique=False
    )
    op.create_index(
        "ix_responses_archive_acked_at", "responses_archive", ["acked_at", "id"], unique=False
    )


def _schedules() -> None:
    op.create_table(
        "schedules",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("label", sa.Text(), nullable=True),
        sa.Column("agent", sa.Text(), nullable=True),
        sa.Column("team_id", sa.Text(), nullable=True),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("cron", sa.Text(), nullable=True),
        sa.Column("every", _MILLIS, nullable=True),
        sa.Column("at", _MILLIS, nullable=True),
        sa.Column("zone", sa.Text(), nullable=False),
        sa.Column("anchor", _MILLIS, nullable=False),
        sa.Column("channel", sa.Text(), nullable=False),
        sa.Column("sender", sa.Text(), nullable=False),
        sa.Column("sender_id", sa.Text(), nullable=True),
        sa.Column("reply_to", sa.Text(), nullable=True),
        sa.Column("missed", sa.Text(), nullable=False),
        sa.Column("overlap", sa.Text(), nullable=False),
        sa.Column("jitter", _MILLIS, nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("due_at", _MILLIS, nullable=True),
        sa.Column("made_by", sa.Text(), nullable=False),
        sa.Column("created_at", _MILLIS, nullable=False),
        sa.Column("updated_at", _MILLIS, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_schedules")),
    )
    op.create_index("uq_schedules_label", "schedules", ["label"], unique=True)
    op.create_index(
        "ix_schedules_due",
        "schedules",
        ["due_at"],
        unique=False,
        sqlite_where=sa.text("state = 'active'"),
        postgresql_where=sa.text("state = 'active'"),
    )
    op.create_table(
        "schedule_runs",
        sa.Column("id", _ID, nullable=False),
        sa.Column("schedule_id", sa.Text(), nullable=False),
        sa.Column("due_at", _MILLIS, nullable=True),
        sa.Column("until", _MILLIS, nullable=True),
        sa.Column("fired_at", _MILLIS, nullable=False),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.Column("times", sa.Integer(), nullable=False),
        sa.Column("message_id", sa.Text(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_schedule_runs")),
        sqlite_autoincrement=True,
    )
    op.create_index("uq_schedule_runs_due", "schedule_runs", ["schedule_id", "due_at"], unique=True)
    op.create_index(
        "ix_schedule_runs_schedule", "schedule_runs", ["schedule_id", "id"], unique=False
    )


def _heartbeats() -> None:
    op.create_table(
        "heartbeats",
        sa.Column("agent", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("every", _MILLIS, nullable=False),
        sa.Column("active_from", sa.Integer(), nullable=True),
        sa.Column("active_until", sa.Integer(), nullable=True),
        sa.Column("budget", sa.Integer(), nullable=False),
        sa.Column("max_silent", sa.Integer(), nullable=False),
        sa.Column("channel", sa.Text(), nullable=False),
        sa.Column("sender_id", sa.Text(), nullable=True),
        sa.Column("reply_to", sa.Text(), nullable=True),
        sa.Column("silent", sa.Integer(), nullable=False),
        sa.Column("errors", sa.Integer(), nullable=False),
        sa.Column("due_at", _MILLIS, nullable=True),
        sa.Column("last_at", _MILLIS, nullable=True),
        sa.Column("created_at", _MILLIS, nullable=False),
        sa.Column("updated_at", _MILLIS, nullable=False),
        sa.PrimaryKeyConstraint("agent", name=op.f("pk_heartbeats")),
    )
    op.create_index(
        "ix_heartbeats_due",
        "heartbeats",
        ["due_at"],
        unique=False,
        sqlite_where=sa.text("state = 'on'"),
        postgresql_where=sa.text("state = 'on'"),
    )
    op.create_table(
        "beats",
        sa.Column("id", _ID, nullable=False),
        sa.Column("agent", sa.Text(), nullable=False),
        sa.Column("due_at", _MILLIS, nullable=False),
        sa.Column("fired_at", _MILLIS, nullable=False),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.Column("message_id", sa.Text(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_beats")),
        sqlite_autoincrement=True,
    )
    op.create_index("uq_beats_message_id", "beats", ["message_id"], unique=True)
    op.create_index("ix_beats_agent", "beats", ["agent", "id"], unique=False)


def downgrade() -> None:
    op.drop_index("ix_responses_archive_acked_at", "responses_archive")
    op.drop_index("ix_messages_archive_updated_at", "messages_archive")
    with op.batch_alter_table("agents") as table:
        table.drop_column("scheduling")
    with op.batch_alter_table("system_agents") as table:
        table.drop_column("running_since")
        table.drop_column("cursor")
        table.drop_column("failures")
    for name in ("death_causes", "beats", "heartbeats", "schedule_runs", "schedules"):
        op.drop_table(name)
