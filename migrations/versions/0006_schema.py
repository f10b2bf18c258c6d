"""The first schema: queue, agents, history, archives, schedules and operations."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    _queue()
    _agents()
    _history()
    _archives()
    _time()
    _operations()


def downgrade() -> None:
    for table in (
        *("agent_messages", "agents", "api_keys", "attempts", "audit_log", "beats"),
        *("chat_messages", "custom_providers", "death_causes", "events", "gathered"),
        *("heartbeats", "holds", "lanes", "messages", "messages_archive", "receipts"),
        *("responses", "responses_archive", "schedule_runs", "schedules", "sessions"),
        *("system_agents", "team_members", "teams", "workers"),
    ):
        op.drop_table(table)


def _id(**options: bool) -> sa.Column[int]:
    number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    return sa.Column("id", number, nullable=False, **options)


def _text(name: str, *, nullable: bool = False) -> sa.Column[str]:
    return sa.Column(name, sa.Text(), nullable=nullable)


def _integer(name: str, *, nullable: bool = False) -> sa.Column[int]:
    return sa.Column(name, sa.Integer(), nullable=nullable)


def _boolean(name: str) -> sa.Column[bool]:
    return sa.Column(name, sa.Boolean(), nullable=False)


def _double(name: str, *, nullable: bool = False) -> sa.Column[float]:
    return sa.Column(name, sa.Double(), nullable=nullable)


def _millis(name: str, *, nullable: bool = False) -> sa.Column[int]:
    """A time in milliseconds since 1970."""
    return sa.Column(name, sa.BigInteger(), nullable=nullable)


def _partial_index(
    name: str, table: str, columns: list[str], where: str, *, postgresql: str = ""
) -> None:
    op.create_index(
        name,
        table,
        columns,
        sqlite_where=sa.text(where),
        postgresql_where=sa.text(postgresql or where),
    )


def _queue() -> None:
    op.create_table(
        "lanes",
        *(_text("agent"), _boolean("outside"), _text("state"), _text("reason", nullable=True)),
        *(_text("ordering"), _text("batching"), _integer("max_depth", nullable=True)),
        *(_text("overflow"), _integer("max_attempts"), _integer("pending")),
        *(_millis("head_key", nullable=True), _millis("not_before", nullable=True)),
        *(_text("claim_token", nullable=True), _text("claimed_by", nullable=True)),
        *(_millis("claimed_at"), _millis("lease_expires_at", nullable=True)),
        *(_text("batch", nullable=True), _millis("created_at"), _millis("updated_at")),
        sa.PrimaryKeyConstraint("agent", name=op.f("pk_lanes")),
    )
    _partial_index(
        "ix_lanes_claimable",
        "lanes",
        ["claimed_at", "head_key"],
        "head_key IS NOT NULL AND outside = 0",
        postgresql="head_key IS NOT NULL AND NOT outside",
    )
    _partial_index("ix_lanes_not_before", "lanes", ["not_before"], "not_before IS NOT NULL")
    op.create_table(
        "messages",
        *_message_columns(),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_messages")),
        sqlite_autoincrement=True,
    )
    _partial_index(
        "ix_messages_conversation", "messages", ["conversation_id"], "conversation_id <> message_id"
    )
    _partial_index(
        "ix_messages_deadline",
        "messages",
        ["deadline"],
        "status = 'pending' AND deadline IS NOT NULL",
    )
    _partial_index(
        "ix_messages_delayed",
        "messages",
        ["available_at"],
        "status = 'pending' AND ready = 0",
        postgresql="status = 'pending' AND NOT ready",
    )
    _partial_index(
        "ix_messages_finished",
        "messages",
        ["updated_at", "id"],
        "status IN ('completed', 'cancelled', 'expired')",
    )
    _partial_index(
        "ix_messages_ready",
        "messages",
        ["agent", "sort_key", "id", "batch_key"],
        "status = 'pending' AND ready = 1",
        postgresql="status = 'pending' AND ready",
    )
    _partial_index(
        "ix_messages_waiting_for_people",
        "messages",
        ["status", "updated_at", "id"],
        "status IN ('dead', 'held')",
    )
    op.create_index("uq_messages_message_id", "messages", ["message_id"], unique=True)
    op.create_table(
        "gathered",
        *(_id(), _text("conversation_id"), _text("message_id"), _text("agent"), _text("message")),
        *(_text("files", nullable=True), _millis("created_at")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_gathered")),
    )
    op.create_index("ix_gathered_conversation", "gathered", ["conversation_id", "id"])
    op.create_table(
        "responses",
        *_response_columns(),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_responses")),
    )
    _partial_index("ix_responses_acked", "responses", ["acked_at", "id"], "status = 'acked'")
    op.create_index("ix_responses_message_id", "responses", ["message_id"])
    _partial_index(
        "ix_responses_pending",
        "responses",
        ["channel", "available_at", "id", "expires_at"],
        "status = 'pending'",
    )
    _partial_index(
        "ix_responses_waiting_for_people",
        "responses",
        ["status", "id"],
        "status IN ('dead', 'unknown')",
    )
    op.create_table(
        "receipts",
        *(_text("channel"), _text("event_id"), _text("message_id"), _millis("created_at")),
        sa.PrimaryKeyConstraint("channel", "event_id", name=op.f("pk_receipts")),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_receipts_created_at", "receipts", ["created_at"])
    op.create_table(
        "holds",
        *(_text("name"), _text("reason"), _millis("held_at")),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_holds")),
    )


def _agents() -> None:
    op.create_table(
        "agents",
        *(_text("id"), _text("name"), _text("provider"), _text("model"), _text("directory")),
        *(_text("system_prompt"), _text("permission"), _text("context"), _integer("resets")),
        *(_millis("created_at"), _millis("updated_at"), _text("scheduling")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_agents")),
    )
    op.create_table(
        "sessions",
        *(_text("agent"), _text("context"), _text("provider"), _text("session_id")),
        *(_integer("input_tokens"), _integer("output_tokens"), _double("cost"), _text("told")),
        *(_integer("runs"), _millis("updated_at")),
        sa.PrimaryKeyConstraint("agent", "context", name=op.f("pk_sessions")),
    )
    op.create_table(
        "teams",
        *(_text("id"), _text("name"), _text("leader"), _text("delivery")),
        *(_integer("max_hops", nullable=True), _integer("max_messages", nullable=True)),
        *(_double("max_cost", nullable=True), _millis("created_at"), _millis("updated_at")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_teams")),
    )
    op.create_table(
        "team_members",
        *(_text("team_id"), _text("agent"), _integer("position")),
        sa.PrimaryKeyConstraint("team_id", "agent", name=op.f("pk_team_members")),
    )
    op.create_index("ix_team_members_agent", "team_members", ["agent"])
    op.create_table(
        "custom_providers",
        *(_text("id"), _text("name"), _text("harness"), _text("base_url"), _text("api_key")),
        *(_text("model"), _millis("created_at"), _millis("updated_at")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_custom_providers")),
    )


def _history() -> None:
    op.create_table(
        "agent_messages",
        *(_id(), _text("agent_id"), _text("role"), _text("channel"), _text("sender")),
        *(_text("message_id"), _text("content"), _millis("created_at")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_agent_messages")),
    )
    op.create_index("ix_agent_messages_agent", "agent_messages", ["agent_id", "id"])
    op.create_table(
        "chat_messages",
        *(_id(), _text("team_id"), _text("from_agent"), _text("message"), _millis("created_at")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_chat_messages")),
    )
    op.create_index("ix_chat_messages_team", "chat_messages", ["team_id", "id"])
    op.create_table(
        "events",
        *(_id(), _text("type"), _text("agent", nullable=True)),
        *(_text("conversation_id", nullable=True), _text("message_id", nullable=True)),
        *(_text("data", nullable=True), _millis("created_at")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_events")),
    )
    _partial_index("ix_events_progress", "events", ["created_at"], "type = 'agent_progress'")
    op.create_table(
        "attempts",
        *(_id(), _text("message_id"), _integer("messages"), _text("agent"), _text("worker")),
        *(_text("outcome"), _text("error_kind", nullable=True), _text("error", nullable=True)),
        *(_text("fingerprint", nullable=True), _integer("retry_count")),
        *(_text("provider", nullable=True), _text("model", nullable=True)),
        *(_integer("input_tokens"), _integer("output_tokens"), _double("cost")),
        *(_text("conversation_id"), _integer("hop"), _text("team_id", nullable=True)),
        *(_text("channel"), _millis("enqueued_at"), _millis("claimed_at"), _millis("started_at")),
        _millis("finished_at"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_attempts")),
    )
    op.create_index("ix_attempts_conversation", "attempts", ["conversation_id"])
    op.create_index("ix_attempts_message_id", "attempts", ["message_id"])
    op.create_table(
        "death_causes",
        *(_text("fingerprint"), _text("kind"), _text("error"), _integer("deaths")),
        *(_millis("first_at"), _millis("last_at"), _millis("told_at", nullable=True)),
        sa.PrimaryKeyConstraint("fingerprint", name=op.f("pk_death_causes")),
    )


def _archives() -> None:
    op.create_table(
        "messages_archive",
        *_message_columns(autoincrement=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_messages_archive")),
    )
    op.create_index("ix_messages_archive_conversation", "messages_archive", ["conversation_id"])
    op.create_index("ix_messages_archive_updated_at", "messages_archive", ["updated_at", "id"])
    op.create_index(
        "uq_messages_archive_message_id", "messages_archive", ["message_id"], unique=True
    )
    op.create_table(
        "responses_archive",
        *_response_columns(autoincrement=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_responses_archive")),
    )
    op.create_index("ix_responses_archive_acked_at", "responses_archive", ["acked_at", "id"])
    op.create_index("ix_responses_archive_message_id", "responses_archive", ["message_id"])


def _time() -> None:
    op.create_table(
        "schedules",
        *(_text("id"), _text("label", nullable=True), _text("agent", nullable=True)),
        *(_text("team_id", nullable=True), _text("message"), _text("kind")),
        *(_text("cron", nullable=True), _millis("every", nullable=True)),
        *(_millis("at", nullable=True), _text("zone"), _millis("anchor"), _text("channel")),
        *(_text("sender"), _text("sender_id", nullable=True), _text("reply_to", nullable=True)),
        *(_text("missed"), _text("overlap"), _millis("jitter"), _text("state")),
        *(_text("reason", nullable=True), _millis("due_at", nullable=True), _text("made_by")),
        *(_millis("created_at"), _millis("updated_at")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_schedules")),
    )
    _partial_index("ix_schedules_due", "schedules", ["due_at"], "state = 'active'")
    op.create_index("uq_schedules_label", "schedules", ["label"], unique=True)
    op.create_table(
        "schedule_runs",
        *(_id(), _text("schedule_id"), _millis("due_at", nullable=True)),
        *(_millis("until", nullable=True), _millis("fired_at"), _text("outcome")),
        *(_integer("times"), _text("message_id", nullable=True), _text("reason", nullable=True)),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_schedule_runs")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_schedule_runs_schedule", "schedule_runs", ["schedule_id", "id"])
    op.create_index("uq_schedule_runs_due", "schedule_runs", ["schedule_id", "due_at"], unique=True)
    op.create_table(
        "heartbeats",
        *(_text("agent"), _text("state"), _text("reason", nullable=True), _millis("every")),
        *(_integer("active_from", nullable=True), _integer("active_until", nullable=True)),
        *(_integer("budget"), _integer("max_silent"), _text("channel")),
        *(_text("sender_id", nullable=True), _text("reply_to", nullable=True), _integer("silent")),
        *(_integer("errors"), _millis("due_at", nullable=True), _millis("last_at", nullable=True)),
        *(_millis("created_at"), _millis("updated_at")),
        sa.PrimaryKeyConstraint("agent", name=op.f("pk_heartbeats")),
    )
    _partial_index("ix_heartbeats_due", "heartbeats", ["due_at"], "state = 'on'")
    op.create_table(
        "beats",
        *(_id(), _text("agent"), _millis("due_at"), _millis("fired_at"), _text("outcome")),
        *(_text("message_id", nullable=True), _text("reason", nullable=True)),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_beats")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_beats_agent", "beats", ["agent", "id"])
    op.create_index("uq_beats_message_id", "beats", ["message_id"], unique=True)


def _operations() -> None:
    op.create_table(
        "workers",
        *(_text("id"), _text("kind"), _text("host"), _integer("pid"), _text("wake", nullable=True)),
        *(_millis("started_at"), _millis("heartbeat_at")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_workers")),
    )
    op.create_table(
        "system_agents",
        *(_text("name"), _text("holder", nullable=True), _millis("lease_expires_at")),
        *(_millis("next_run_at"), _millis("last_run_at", nullable=True)),
        *(_integer("last_duration", nullable=True), _text("last_result", nullable=True)),
        *(_text("last_error", nullable=True), _integer("failures"), _millis("cursor")),
        _millis("running_since", nullable=True),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_system_agents")),
    )
    op.create_table(
        "api_keys",
        *(_text("id"), _text("kind"), _text("name"), _text("hash"), _text("scopes")),
        *(_text("agents", nullable=True), _millis("created_at")),
        *(_millis("expires_at", nullable=True), _millis("used_at", nullable=True)),
        _millis("revoked_at", nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_api_keys")),
    )
    op.create_index("uq_api_keys_hash", "api_keys", ["hash"], unique=True)
    op.create_table(
        "audit_log",
        *(_id(), _text("key_id"), _text("key_name"), _text("action"), _text("target")),
        *(_text("outcome"), _text("request_id"), _text("address"), _millis("created_at")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audit_log")),
    )


def _message_columns(**id_options: bool) -> list[sa.Column]:
    return [
        *(_id(**id_options), _text("message_id"), _text("channel"), _text("sender")),
        *(_text("sender_id", nullable=True), _text("message"), _text("agent")),
        *(_text("from_agent", nullable=True), _text("files", nullable=True), _text("status")),
        *(_integer("retry_count"), _integer("crash_count"), _text("last_error", nullable=True)),
        *(_text("error_kind", nullable=True), _text("claimed_by", nullable=True)),
        *(_text("claim_token", nullable=True), _text("conversation_id")),
        *(_text("parent_id", nullable=True), _integer("hop"), _text("team_id", nullable=True)),
        *(_text("reply_to", nullable=True), _text("batch_key", nullable=True)),
        *(_integer("priority"), _millis("sort_key"), _boolean("ready"), _millis("due_at")),
        *(_millis("available_at"), _millis("deadline", nullable=True)),
        *(_text("payload", nullable=True), _text("schema", nullable=True), _millis("created_at")),
        _millis("updated_at"),
    ]


def _response_columns(**id_options: bool) -> list[sa.Column]:
    return [
        *(_id(**id_options), _text("message_id"), _text("channel"), _text("sender")),
        *(_text("sender_id", nullable=True), _text("message"), _text("original_message")),
        *(_text("agent"), _text("files", nullable=True), _text("metadata", nullable=True)),
        *(_text("status"), _text("conversation_id"), _text("reply_to", nullable=True)),
        *(_integer("seq"), _integer("delivery_attempts"), _integer("parts_sent")),
        *(_text("part_receipts", nullable=True), _boolean("sending")),
        *(_boolean("possible_duplicate"), _text("claim_token", nullable=True)),
        *(_text("claimed_by", nullable=True), _millis("lease_expires_at", nullable=True)),
        *(_millis("available_at"), _millis("expires_at"), _text("last_error", nullable=True)),
        *(_millis("created_at"), _millis("acked_at", nullable=True)),
    ]
