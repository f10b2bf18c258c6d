"""The tables, one noun a file. Each is built when it is first used: importing builds none."""

from __future__ import annotations

from bullpen.core.models.agent import AGENTS, SESSIONS
from bullpen.core.models.api_key import API_KEYS, AUDIT_LOG
from bullpen.core.models.attempt import ATTEMPTS
from bullpen.core.models.custom_provider import CUSTOM_PROVIDERS
from bullpen.core.models.death_cause import DEATH_CAUSES
from bullpen.core.models.event import EVENTS
from bullpen.core.models.gathered import GATHERED
from bullpen.core.models.heartbeat import BEATS, HEARTBEATS
from bullpen.core.models.history import AGENT_MESSAGES, CHAT_MESSAGES
from bullpen.core.models.hold import HOLDS
from bullpen.core.models.lane import LANES
from bullpen.core.models.message import MESSAGES, MESSAGES_ARCHIVE
from bullpen.core.models.receipt import RECEIPTS
from bullpen.core.models.response import RESPONSES, RESPONSES_ARCHIVE
from bullpen.core.models.schedule import SCHEDULE_RUNS, SCHEDULES
from bullpen.core.models.system_agent import SYSTEM_AGENTS
from bullpen.core.models.team import TEAM_MEMBERS, TEAMS
from bullpen.core.models.worker import WORKERS

__all__ = [
    "AGENTS",
    "AGENT_MESSAGES",
    "API_KEYS",
    "ATTEMPTS",
    "AUDIT_LOG",
    "BEATS",
    "CHAT_MESSAGES",
    "CUSTOM_PROVIDERS",
    "DEATH_CAUSES",
    "EVENTS",
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
    "SESSIONS",
    "SYSTEM_AGENTS",
    "TEAMS",
    "TEAM_MEMBERS",
    "WORKERS",
]
