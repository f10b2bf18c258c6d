"""Bullpen: a company of AI agents on a durable SQL queue.

A library user imports from here, and nowhere else: every other module is internal. A name is
loaded when it is first used, so that `import bullpen` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bullpen.channels.base import ChannelContext
    from bullpen.core.answers.complete import complete
    from bullpen.core.answers.fail import fail
    from bullpen.core.company import add_agent, change_agent, remove_agent, remove_team
    from bullpen.core.errors import (
        BullpenError,
        CommitUnknown,
        Conflict,
        DuplicateMessage,
        InputError,
        LaneClosed,
        LaneError,
        LaneFull,
        NotFound,
        StaleToken,
        StoreBusy,
        StoreError,
        StoreUnavailable,
        UnknownAgent,
        UnknownMessage,
    )
    from bullpen.core.inspect.messages import get_message
    from bullpen.core.intake import submit
    from bullpen.core.message import (
        Accepted,
        Answer,
        Claim,
        ErrorKind,
        Failure,
        Message,
        NewMessage,
        Outcome,
        Priority,
        ReplyTo,
        RoomPost,
        RunOutput,
        Usage,
    )
    from bullpen.core.queue.claim import claim, extend
    from bullpen.core.queue.enqueue import enqueue, enqueue_many
    from bullpen.core.queue.fail import release
    from bullpen.core.queue.finish import finish
    from bullpen.core.queue.lanes import (
        Batching,
        LanePolicy,
        Ordering,
        Overflow,
        create_lane,
        drain_lane,
        pause_lane,
        resume_lane,
    )
    from bullpen.core.queue.manage import cancel, drop, hold, resume, retry
    from bullpen.core.registry import (
        AddressFormat,
        ChannelInfo,
        ChannelLimits,
        Chart,
        Credential,
        Login,
        ProviderInfo,
        ReportInfo,
    )
    from bullpen.core.roster.agents import Agent
    from bullpen.core.roster.teams import Team, add_team, change_team
    from bullpen.core.settings import Settings
    from bullpen.core.states import MessageState
    from bullpen.core.store.base import Store
    from bullpen.core.store.open import open_store
    from bullpen.core.store.transaction import Transaction
    from bullpen.processor.children.child import Launcher, Stop
    from bullpen.processor.providers.base import Reply, ReportProgress, RunRequest

__version__ = "0.1.0"

__all__ = [
    "Accepted",
    "AddressFormat",
    "Agent",
    "Answer",
    "Batching",
    "BullpenError",
    "ChannelContext",
    "ChannelInfo",
    "ChannelLimits",
    "Chart",
    "Claim",
    "CommitUnknown",
    "Conflict",
    "Credential",
    "DuplicateMessage",
    "ErrorKind",
    "Failure",
    "InputError",
    "LaneClosed",
    "LaneError",
    "LaneFull",
    "LanePolicy",
    "Launcher",
    "Login",
    "Message",
    "MessageState",
    "NewMessage",
    "NotFound",
    "Ordering",
    "Outcome",
    "Overflow",
    "Priority",
    "ProviderInfo",
    "Reply",
    "ReplyTo",
    "ReportInfo",
    "ReportProgress",
    "RoomPost",
    "RunOutput",
    "RunRequest",
    "Settings",
    "StaleToken",
    "Stop",
    "Store",
    "StoreBusy",
    "StoreError",
    "StoreUnavailable",
    "Team",
    "Transaction",
    "UnknownAgent",
    "UnknownMessage",
    "Usage",
    "add_agent",
    "add_team",
    "cancel",
    "change_agent",
    "change_team",
    "claim",
    "complete",
    "create_lane",
    "drain_lane",
    "drop",
    "enqueue",
    "enqueue_many",
    "extend",
    "fail",
    "finish",
    "get_message",
    "hold",
    "open_store",
    "pause_lane",
    "release",
    "remove_agent",
    "remove_team",
    "resume",
    "resume_lane",
    "retry",
    "submit",
]

_MODULES = {
    "Accepted": "core.message",
    "AddressFormat": "core.registry",
    "Agent": "core.roster.agents",
    "Answer": "core.message",
    "Batching": "core.queue.lanes",
    "BullpenError": "core.errors",
    "ChannelContext": "channels.base",
    "ChannelInfo": "core.registry",
    "ChannelLimits": "core.registry",
    "Chart": "core.registry",
    "Claim": "core.message",
    "CommitUnknown": "core.errors",
    "Conflict": "core.errors",
    "Credential": "core.registry",
    "DuplicateMessage": "core.errors",
    "ErrorKind": "core.message",
    "Failure": "core.message",
    "InputError": "core.errors",
    "LaneClosed": "core.errors",
    "LaneError": "core.errors",
    "LaneFull": "core.errors",
    "LanePolicy": "core.queue.lanes",
    "Launcher": "processor.children.child",
    "Login": "core.registry",
    "Message": "core.message",
    "MessageState": "core.states",
    "NewMessage": "core.message",
    "NotFound": "core.errors",
    "Ordering": "core.queue.lanes",
    "Outcome": "core.message",
    "Overflow": "core.queue.lanes",
    "Priority": "core.message",
    "ProviderInfo": "core.registry",
    "Reply": "processor.providers.base",
    "ReplyTo": "core.message",
    "ReportInfo": "core.registry",
    "ReportProgress": "processor.providers.base",
    "RoomPost": "core.message",
    "RunOutput": "core.message",
    "RunRequest": "processor.providers.base",
    "Settings": "core.settings",
    "StaleToken": "core.errors",
    "Stop": "processor.children.child",
    "Store": "core.store.base",
    "StoreBusy": "core.errors",
    "StoreError": "core.errors",
    "StoreUnavailable": "core.errors",
    "Team": "core.roster.teams",
    "Transaction": "core.store.transaction",
    "UnknownAgent": "core.errors",
    "UnknownMessage": "core.errors",
    "Usage": "core.message",
    "add_agent": "core.company",
    "add_team": "core.roster.teams",
    "cancel": "core.queue.manage",
    "change_agent": "core.company",
    "change_team": "core.roster.teams",
    "claim": "core.queue.claim",
    "complete": "core.answers.complete",
    "create_lane": "core.queue.lanes",
    "drain_lane": "core.queue.lanes",
    "drop": "core.queue.manage",
    "enqueue": "core.queue.enqueue",
    "enqueue_many": "core.queue.enqueue",
    "extend": "core.queue.claim",
    "fail": "core.answers.fail",
    "finish": "core.queue.finish",
    "get_message": "core.inspect.messages",
    "hold": "core.queue.manage",
    "open_store": "core.store.open",
    "pause_lane": "core.queue.lanes",
    "release": "core.queue.fail",
    "remove_agent": "core.company",
    "remove_team": "core.company",
    "resume": "core.queue.manage",
    "resume_lane": "core.queue.lanes",
    "retry": "core.queue.manage",
    "submit": "core.intake",
}
"""The module of each name."""

if not TYPE_CHECKING:  # a type checker knows the names above, and no others

    def __getattr__(name: str) -> object:
        """Load a name when it is first used."""
        if name not in _MODULES:
            raise AttributeError(f"module 'bullpen' has no attribute {name!r}")
        value = getattr(import_module(f"bullpen.{_MODULES[name]}"), name)
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        """All names, loaded or not."""
        return sorted({*globals(), *_MODULES})
