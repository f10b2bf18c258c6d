"""Agents, teams, sessions, custom providers; lanes that outside workers answer, served in turn."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

_MILLIS = sa.BigInteger()


def upgrade() -> None:
    op.create_table(
        "agents",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("provider", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("directory", sa.Text(), nullable=False),
        sa.Column("system_prompt", sa.Text(), nullable=False),
        sa.Column("permission", sa.Text(), nullable=False),
        sa.Column("context", sa.Text(), nullable=False),
        sa.Column("resets", sa.Integer(), nullable=False),
        sa.Column("created_at", _MILLIS, nullable=False),
        sa.Column("updated_at", _MILLIS, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_agents")),
    )
    op.create_table(
        "sessions",
        sa.Column("agent", sa.Text(), nullable=False),
        sa.Column("context", sa.Text(), nullable=False),
        sa.Column("provider", sa.Text(), nullable=False),
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("input_tokens", sa.Integer(), nullable=False),
        sa.Column("output_tokens", sa.Integer(), nullable=False),
        sa.Column("cost", sa.Double(), nullable=False),
        sa.Column("told", sa.Text(), nullable=False),
        sa.Column("runs", sa.Integer(), nullable=False),
        sa.Column("updated_at", _MILLIS, nullable=False),
        sa.PrimaryKeyConstraint("agent", "context", name=op.f("pk_sessions")),
    )
    op.create_table(
        "teams",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("leader", sa.Text(), nullable=False),
        sa.Column("delivery", sa.Text(), nullable=False),
        sa.Column("max_hops", sa.Integer(), nullable=True),
        sa.Column("max_messages", sa.Integer(), nullable=True),
        sa.Column("max_cost", sa.Double(), nullable=True),
        sa.Column("created_at", _MILLIS, nullable=False),
        sa.Column("updated_at", _MILLIS, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_teams")),
    )
    op.create_table(
        "team_members",
        sa.Column("team_id", sa.Text(), nullable=False),
        sa.Column("agent", sa.Text(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("team_id", "agent", name=op.f("pk_team_members")),
    )
    op.create_index("ix_team_members_agent", "team_members", ["agent"], unique=False)
    op.create_table(
        "custom_providers",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("harness", sa.Text(), nullable=False),
        sa.Column("base_url", sa.Text(), nullable=False),
        sa.Column("api_key", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("created_at", _MILLIS, nullable=False),
        sa.Column("updated_at", _MILLIS, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_custom_providers")),
    )
    op.create_table(
        "gathered",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("conversation_id", sa.Text(), nullable=False),
        sa.Column("message_id", sa.Text(), nullable=False),
        sa.Column("agent", sa.Text(), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("files", sa.Text(), nullable=True),
        sa.Column("created_at", _MILLIS, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_gathered")),
    )
    op.create_index("ix_gathered_conversation", "gathered", ["conversation_id", "id"], unique=False)
    op.create_index("ix_attempts_conversation", "attempts", ["conversation_id"], unique=False)
    op.create_index(
        "ix_events_progress",
        "events",
        ["created_at"],
        unique=False,
        sqlite_where=sa.text("type = 'agent_progress'"),
        postgresql_where=sa.text("type = 'agent_progress'"),
    )
    _remake_lanes(
        [sa.Column("outside", sa.Boolean(), nullable=False)],
        claimed_at_nullable=False,
        fill={"outside": "false", "claimed_at": "coalesce(claimed_at, 0)"},
    )
    op.create_index(
        "ix_lanes_claimable",
        "lanes",
        ["claimed_at", "head_key"],
        unique=False,
        sqlite_where=sa.text("head_key IS NOT NULL AND outside = 0"),
        postgresql_where=sa.text("head_key IS NOT NULL AND NOT outside"),
    )


def downgrade() -> None:
    _remake_lanes([], claimed_at_nullable=True, fill={})
    op.create_index(
        "ix_lanes_claimable",
        "lanes",
        ["head_key"],
        unique=False,
        sqlite_where=sa.text("head_key IS NOT NULL"),
        postgresql_where=sa.text("head_key IS NOT NULL"),
    )
    op.drop_index("ix_attempts_conversation", "attempts")
    op.drop_index("ix_events_progress", "events")
    for table in ("gathered", "custom_providers", "team_members", "teams", "sessions", "agents"):
        op.drop_table(table)


def _remake_lanes(
    more: list[sa.Column], *, claimed_at_nullable: bool, fill: dict[str, str]
) -> None:
    """SQLite cannot change a column, so that the table is made anew, on both databases alike."""
    op.execute("CREATE TEMPORARY TABLE kept_lanes AS SELECT * FROM lanes")
    op.drop_table("lanes")
    columns = [
        sa.Column("agent", sa.Text(), nullable=False),
        *more,
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("ordering", sa.Text(), nullable=False),
        sa.Column("batching", sa.Text(), nullable=False),
        sa.Column("max_depth", sa.Integer(), nullable=True),
        sa.Column("overflow", sa.Text(), nullable=False),
        sa.Column("max_attempts", sa.Integer(), nullable=False),
        sa.Column("pending", sa.Integer(), nullable=False),
        sa.Column("head_key", _MILLIS, nullable=True),
        sa.Column("not_before", _MILLIS, nullable=True),
        sa.Column("claim_token", sa.Text(), nullable=True),
        sa.Column("claimed_by", sa.Text(), nullable=True),
        sa.Column("claimed_at", _MILLIS, nullable=claimed_at_nullable),
        sa.Column("lease_expires_at", _MILLIS, nullable=True),
        sa.Column("batch", sa.Text(), nullable=True),
        sa.Column("created_at", _MILLIS, nullable=False),
        sa.Column("updated_at", _MILLIS, nullable=False),
    ]
    names = [column.name for column in columns]
    values = ", ".join(fill.get(name, name) for name in names)
    op.create_table("lanes", *columns, sa.PrimaryKeyConstraint("agent", name=op.f("pk_lanes")))
    op.execute(f"INSERT INTO lanes ({', '.join(names)}) SELECT {values} FROM kept_lanes")  # noqa: S608
    op.execute("DROP TABLE kept_lanes")
    op.create_index(
        "ix_lanes_not_before",
        "lanes",
        ["not_before"],
        unique=False,
        sqlite_where=sa.text("not_before IS NOT NULL"),
        postgresql_where=sa.text("not_before IS NOT NULL"),
    )
