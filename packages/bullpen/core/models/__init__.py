"""The tables. Each is built when it is first used, so that importing this package is fast."""

from __future__ import annotations

from functools import cache

from sqlalchemy import MetaData

from bullpen.core.models.agents import (
    AGENTS,
    CUSTOM_PROVIDERS,
    LANES,
    SESSIONS,
    TEAM_MEMBERS,
    TEAMS,
)
from bullpen.core.models.base import METADATA, TABLES
from bullpen.core.models.channels import CHANNEL_HEALTH, CHATS, SENDERS
from bullpen.core.models.events import AGENT_MESSAGES, CHAT_MESSAGES, EVENTS
from bullpen.core.models.files import FILE_USES, STORED_FILES
from bullpen.core.models.messages import (
    ATTEMPTS,
    DEATH_CAUSES,
    GATHERED,
    MESSAGES,
    MESSAGES_ARCHIVE,
    RECEIPTS,
)
from bullpen.core.models.operations import (
    API_KEYS,
    AUDIT_LOG,
    STORE_IDENTITY,
    SYSTEM_AGENTS,
    WORKERS,
)
from bullpen.core.models.responses import HOLDS, RESPONSES, RESPONSES_ARCHIVE
from bullpen.core.models.schedules import BEATS, HEARTBEATS, SCHEDULE_RUNS, SCHEDULES

__all__ = [
    "AGENTS",
    "AGENT_MESSAGES",
    "API_KEYS",
    "ATTEMPTS",
    "AUDIT_LOG",
    "BEATS",
    "CHANNEL_HEALTH",
    "CHATS",
    "CHAT_MESSAGES",
    "CUSTOM_PROVIDERS",
    "DEATH_CAUSES",
    "EVENTS",
    "FILE_USES",
    "GATHERED",
    "HEARTBEATS",
    "HOLDS",
    "LANES",
    "MESSAGES",
    "MESSAGES_ARCHIVE",
    "RECEIPTS",
    "RESPONSES",
    "RESPONSES_ARCHIVE",
    "SCHEDULES",
    "SCHEDULE_RUNS",
    "SENDERS",
    "SESSIONS",
    "STORED_FILES",
    "STORE_IDENTITY",
    "SYSTEM_AGENTS",
    "TEAMS",
    "TEAM_MEMBERS",
    "WORKERS",
]


@cache
def whole_schema() -> MetaData:
    """All tables, with the index options of each dialect."""
    for table in TABLES:
        for index in table.indexes:
            index.dialect_kwargs.update(index.info)
    return METADATA
