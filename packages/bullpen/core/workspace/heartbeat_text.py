"""An agent's heartbeat.md: what it is told when nobody asks it anything."""

from __future__ import annotations

from pathlib import Path

from bullpen.core.errors import UnknownFile
from bullpen.core.settings import Settings
from bullpen.core.text import check_text
from bullpen.core.workspace.confined import read_inside, write_inside
from bullpen.core.workspace.templates import templates

HEARTBEAT_FILE = "heartbeat.md"


def heartbeat_path(settings: Settings, agent: str) -> Path:
    """Where it is."""
    return settings.workspace / agent / HEARTBEAT_FILE


def read_heartbeat_text(settings: Settings, agent: str) -> str:
    """What it says; nothing if somebody removed it, the shipped one if the agent never ran."""
    if not (settings.workspace / agent).exists():
        return dict(templates())[HEARTBEAT_FILE]
    try:
        return read_inside(settings.workspace, (agent, HEARTBEAT_FILE)).text
    except UnknownFile:
        return ""


def write_heartbeat_text(settings: Settings, agent: str, text: str) -> None:
    """Replace what it says; empty, the agent is woken no more."""
    check_text(text, settings.message_bytes, "the text")
    write_inside(settings.workspace, (agent, HEARTBEAT_FILE), text)
