"""Bullpen: a company of AI agents on a durable SQL queue.

Import from this module only, and from `bullpen.channels` if you add a channel: all other modules
are internal. Names are loaded when they are first
used, so that `import bullpen` is fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # what type checkers and editors read; a test compares it with the names below
    from bullpen.core.answers.attachments import OpenFile as OpenFile
    from bullpen.core.answers.attachments import RefusedFile as RefusedFile
    from bullpen.core.answers.complete import complete as complete
    from bullpen.core.answers.complete import fail as fail
    from bullpen.core.company import add_agent as add_agent
    from bullpen.core.company import change_agent as change_agent
    from bullpen.core.company import remove_agent as remove_agent
    from bullpen.core.company import remove_team as remove_team
    from bullpen.core.errors import BullpenError as BullpenError
    from bullpen.core.errors import CommitUnknown as CommitUnknown
    from bullpen.core.errors import Conflict as Conflict
    from bullpen.core.errors import DuplicateMessage as DuplicateMessage
    from bullpen.core.errors import InputError as InputError
    from bullpen.core.errors import LaneClosed as LaneClosed
    from bullpen.core.errors import LaneError as LaneError
    from bullpen.core.errors import LaneFull as LaneFull
    from bullpen.core.errors import NotFound as NotFound
    from bullpen.core.errors import StaleToken as StaleToken
    from bullpen.core.errors import StoreBusy as StoreBusy
    from bullpen.core.errors import StoreError as StoreError
    from bullpen.core.errors import StoreUnavailable as StoreUnavailable
    from bullpen.core.errors import UnknownAgent as UnknownAgent
    from bullpen.core.errors import UnknownMessage as UnknownMessage
    from bullpen.core.inspect.messages import get_message as get_message
    from bullpen.core.intake import submit as submit
    from bullpen.core.message import Accepted as Accepted
    from bullpen.core.message import Answer as Answer
    from bullpen.core.message import Claim as Claim
    from bullpen.core.message import ErrorKind as ErrorKind
    from bullpen.core.message import Failure as Failure
    from bullpen.core.message import Message as Message
    from bullpen.core.message import NewMessage as NewMessage
    from bullpen.core.message import Outcome as Outcome
    from bullpen.core.message import Priority as Priority
    from bullpen.core.message import ReplyTo as ReplyTo
    from bullpen.core.message import RoomPost as RoomPost
    from bullpen.core.message import RunOutput as RunOutput
    from bullpen.core.message import Usage as Usage
    from bullpen.core.queue.claim import claim as claim
    from bullpen.core.queue.claim import extend as extend
    from bullpen.core.queue.enqueue import enqueue as enqueue
    from bullpen.core.queue.enqueue import enqueue_many as enqueue_many
    from bullpen.core.queue.fail import release as release
    from bullpen.core.queue.finish import finish as finish
    from bullpen.core.queue.lanes import Batching as Batching
    from bullpen.core.queue.lanes import LanePolicy as LanePolicy
    from bullpen.core.queue.lanes import Ordering as Ordering
    from bullpen.core.queue.lanes import Overflow as Overflow
    from bullpen.core.queue.lanes import create_lane as create_lane
    from bullpen.core.queue.lanes import drain_lane as drain_lane
    from bullpen.core.queue.lanes import pause_lane as pause_lane
    from bullpen.core.queue.lanes import resume_lane as resume_lane
    from bullpen.core.queue.manage import cancel as cancel
    from bullpen.core.queue.manage import drop as drop
    from bullpen.core.queue.manage import hold as hold
    from bullpen.core.queue.manage import resume as resume
    from bullpen.core.queue.manage import retry as retry
    from bullpen.core.registry import AddressFormat as AddressFormat
    from bullpen.core.registry import ChannelInfo as ChannelInfo
    from bullpen.core.registry import ChannelLimits as ChannelLimits
    from bullpen.core.registry import ChannelSetting as ChannelSetting
    from bullpen.core.registry import Credential as Credential
    from bullpen.core.registry import Login as Login
    from bullpen.core.registry import ProviderInfo as ProviderInfo
    from bullpen.core.registry import ReportInfo as ReportInfo
    from bullpen.core.roster.agents import Agent as Agent
    from bullpen.core.roster.teams import Team as Team
    from bullpen.core.roster.teams import add_team as add_team
    from bullpen.core.roster.teams import change_team as change_team
    from bullpen.core.settings import Settings as Settings
    from bullpen.core.states import MessageState as MessageState
    from bullpen.core.store.base import Store as Store
    from bullpen.core.store.open import open_store as open_store
    from bullpen.core.store.transaction import Transaction as Transaction
    from bullpen.processor.children.child import Launcher as Launcher
    from bullpen.processor.children.child import Stop as Stop
    from bullpen.processor.providers.base import Reply as Reply
    from bullpen.processor.providers.base import ReportProgress as ReportProgress
    from bullpen.processor.providers.base import RunRequest as RunRequest

__version__ = "0.1.0"

_NAMES_BY_MODULE = {
    "core.answers.attachments": ["OpenFile", "RefusedFile"],
    "core.answers.complete": ["complete", "fail"],
    "core.company": ["add_agent", "change_agent", "remove_agent", "remove_team"],
    "core.errors": [
        "BullpenError",
        "CommitUnknown",
        "Conflict",
        "DuplicateMessage",
        "InputError",
        "LaneClosed",
        "LaneError",
        "LaneFull",
        "NotFound",
        "StaleToken",
        "StoreBusy",
        "StoreError",
        "StoreUnavailable",
        "UnknownAgent",
        "UnknownMessage",
    ],
    "core.inspect.messages": ["get_message"],
    "core.intake": ["submit"],
    "core.message": [
        "Accepted",
        "Answer",
        "Claim",
        "ErrorKind",
        "Failure",
        "Message",
        "NewMessage",
        "Outcome",
        "Priority",
        "ReplyTo",
        "RoomPost",
        "RunOutput",
        "Usage",
    ],
    "core.queue.claim": ["claim", "extend"],
    "core.queue.enqueue": ["enqueue", "enqueue_many"],
    "core.queue.fail": ["release"],
    "core.queue.finish": ["finish"],
    "core.queue.lanes": [
        "Batching",
        "LanePolicy",
        "Ordering",
        "Overflow",
        "create_lane",
        "drain_lane",
        "pause_lane",
        "resume_lane",
    ],
    "core.queue.manage": ["cancel", "drop", "hold", "resume", "retry"],
    "core.registry": [
        "AddressFormat",
        "ChannelInfo",
        "ChannelLimits",
        "ChannelSetting",
        "Credential",
        "Login",
        "ProviderInfo",
        "ReportInfo",
    ],
    "core.roster.agents": ["Agent"],
    "core.roster.teams": ["Team", "add_team", "change_team"],
    "core.settings": ["Settings"],
    "core.states": ["MessageState"],
    "core.store.base": ["Store"],
    "core.store.open": ["open_store"],
    "core.store.transaction": ["Transaction"],
    "processor.children.child": ["Launcher", "Stop"],
    "processor.providers.base": ["Reply", "ReportProgress", "RunRequest"],
}

_MODULES = {name: module for module, names in _NAMES_BY_MODULE.items() for name in names}

__all__ = sorted(_MODULES)

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
