"""An agent: who it is, what answers for it, and what it may do."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypedDict

ECHO = "echo"
"""The built-in provider, which needs no account."""

HTTP = "http"
"""The provider of agents whose lane is left to outside workers."""


class Permission(StrEnum):
    """What a run may do on this machine without asking anybody."""

    READ = "read"
    EDIT = "edit"
    FULL = "full"
    """Everything: the provider's own checks are switched off."""


class Context(StrEnum):
    """Which messages share a session of the provider."""

    AGENT = "agent"
    SENDER = "sender"
    CONVERSATION = "conversation"


class Scheduling(StrEnum):
    """For whom an agent may make schedules."""

    NONE = "none"
    SELF = "self"
    TEAM = "team"
    """For itself and its teammates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """One agent. The fields are in the order of their columns."""

    id: str
    name: str = ""
    provider: str = ECHO
    model: str = ""
    """Empty is the provider's own choice."""
    directory: str = ""
    """Where it works; empty is its own directory in the workspace."""
    system_prompt: str = ""
    permission: Permission = Permission.EDIT
    context: Context = Context.AGENT
    scheduling: Scheduling = Scheduling.SELF
    resets: int = 0


class AgentChange(TypedDict, total=False):
    """What of an agent is to be changed; what is not named stays."""

    name: str
    provider: str
    model: str
    directory: str
    system_prompt: str
    permission: Permission
    context: Context
    scheduling: Scheduling
