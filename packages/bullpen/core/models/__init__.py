"""The tables, one noun a file. Importing this package knows them all."""

from bullpen.core.models.attempt import ATTEMPTS
from bullpen.core.models.base import Base
from bullpen.core.models.event import EVENTS
from bullpen.core.models.history import AGENT_MESSAGES, CHAT_MESSAGES
from bullpen.core.models.lane import LANES
from bullpen.core.models.message import ARCHIVE, MESSAGES
from bullpen.core.models.receipt import RECEIPTS
from bullpen.core.models.response import RESPONSES, RESPONSES_ARCHIVE
from bullpen.core.models.system_agent import SYSTEM_AGENTS
from bullpen.core.models.worker import WORKERS

__all__ = [
    "AGENT_MESSAGES",
    "ARCHIVE",
    "ATTEMPTS",
    "CHAT_MESSAGES",
    "EVENTS",
    "LANES",
    "MESSAGES",
    "RECEIPTS",
    "RESPONSES",
    "RESPONSES_ARCHIVE",
    "SYSTEM_AGENTS",
    "WORKERS",
    "Base",
]
