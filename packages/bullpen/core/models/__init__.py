"""The tables, one noun a file; a file is loaded when one of its tables is first asked for here.

Making a table takes milliseconds, and a command needs few of them. `metadata.py` knows all.
"""

from __future__ import annotations

from importlib import import_module

from sqlalchemy import Table

FILES = {
    "agent": ("AGENTS", "SESSIONS"),
    "api_key": ("API_KEYS", "AUDIT_LOG"),
    "attempt": ("ATTEMPTS",),
    "custom_provider": ("CUSTOM_PROVIDERS",),
    "death_cause": ("DEATH_CAUSES",),
    "event": ("EVENTS",),
    "gathered": ("GATHERED",),
    "heartbeat": ("BEATS", "HEARTBEATS"),
    "history": ("AGENT_MESSAGES", "CHAT_MESSAGES"),
    "hold": ("HOLDS",),
    "lane": ("LANES",),
    "message": ("ARCHIVE", "MESSAGES"),
    "receipt": ("RECEIPTS",),
    "response": ("RESPONSES", "RESPONSES_ARCHIVE"),
    "schedule": ("SCHEDULE_RUNS", "SCHEDULES"),
    "system_agent": ("SYSTEM_AGENTS",),
    "team": ("TEAM_MEMBERS", "TEAMS"),
    "worker": ("WORKERS",),
}
_FILE_OF = {name: file for file, names in FILES.items() for name in names}


def __getattr__(name: str) -> Table:
    """The table of this name, as `from bullpen.core.models import AGENTS` asks for it."""
    if name not in _FILE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    table = getattr(import_module(f"{__name__}.{_FILE_OF[name]}"), name)
    assert isinstance(table, Table)
    globals()[name] = table  # found without this from now on
    return table
