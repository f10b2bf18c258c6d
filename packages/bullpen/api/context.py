"""The context of a request: the store, the caller, and audited transactions."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum, auto

from flask import current_app, g, request
from pydantic import BaseModel

from bullpen.api.long_poll import LongPoll
from bullpen.api.streams.hub import Hub
from bullpen.api.streams.replay import Replays
from bullpen.core.access.audit import record_audit
from bullpen.core.access.keys import INVALID, Key, Scope
from bullpen.core.access.owner import OwnerToken
from bullpen.core.clock import MINUTE
from bullpen.core.errors import MachineOnly, NoAccess, OutOfReach, ScopeTooSmall
from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from bullpen.core.store.group_commit import GroupCommit
from bullpen.core.store.transaction import Transaction
from bullpen.ops.services.supervisor import Supervisor

EXTENSION = "bullpen"

MAX_FAILURES_PER_MINUTE = 10
"""Wrong tokens from one address within a minute that get 401; further ones get 429."""

MAX_ADDRESSES = 1024


class Failures:
    """Counts the failed attempts of the latest addresses within the last minute."""

    def __init__(self) -> None:
        self._counts: OrderedDict[str, tuple[int, int]] = OrderedDict()
        self._lock = threading.Lock()

    def too_many(self, address: str, now: int) -> bool:
        """Whether this address has reached the limit."""
        since, count = self._counts.get(address, (now, 0))
        return now - since < MINUTE and count >= MAX_FAILURES_PER_MINUTE

    def add(self, address: str, now: int) -> bool:
        """Count a failed attempt; true if it reaches the limit."""
        with self._lock:
            since, count = self._counts.pop(address, (now, 0))
            if now - since >= MINUTE:
                since, count = now, 0
            self._counts[address] = (since, count + 1)
            while len(self._counts) > MAX_ADDRESSES:
                self._counts.popitem(last=False)
        return count + 1 == MAX_FAILURES_PER_MINUTE


@dataclass(frozen=True, slots=True)
class Api:
    """The objects that all requests of this process share."""

    store: Store
    hub: Hub
    replays: Replays
    long_poll: LongPoll
    supervisor: Supervisor
    owner: OwnerToken
    group_commit: GroupCommit
    failures: Failures = field(default_factory=Failures)
    started_at: int = 0

    @property
    def settings(self) -> Settings:
        """The settings."""
        return self.store.settings


def api() -> Api:
    """Return the objects that all requests of this process share."""
    shared = current_app.extensions[EXTENSION]
    assert isinstance(shared, Api)
    return shared


def caller() -> Key:
    """The key of this request."""
    key = g.caller
    assert isinstance(key, Key)
    return key


def require_valid(tx: Transaction) -> None:
    """Refuse a caller whose key was revoked, or has expired, since the request began."""
    if not api().owner.still_valid(tx, caller()):
        raise NoAccess(INVALID)


def require_scope(scope: Scope) -> None:
    """Refuse a caller without this scope."""
    if not caller().has_scope(scope):
        raise ScopeTooSmall(f"key {caller().name!r} does not have the scope {scope.value}")


class ChangedBy(Enum):
    """Who may change a field of a request's body, in addition to the scope of the route.

    It marks fields that could give access to the machine: `field: Annotated[Type, ChangedBy.…]`.
    """

    ALL_AGENTS = auto()
    """Keys that reach all agents."""
    MACHINE = auto()
    """The command line on the machine itself."""


def require_changes(body: type[BaseModel], changed: Collection[str]) -> None:
    """Refuse a caller who may not change these fields of a body."""
    for name in changed:
        marks = body.model_fields[name].metadata
        if ChangedBy.MACHINE in marks:
            raise MachineOnly(f"{name} cannot be changed over the API")
        if ChangedBy.ALL_AGENTS in marks and not caller().can_reach(None):
            raise OutOfReach(
                f"key {caller().name!r} may not change {name}",
                hint="Use a key that reaches all agents.",
            )


def require_reach(agent: str | None) -> None:
    """Refuse a caller whose key is for other agents."""
    check_reach(caller(), agent)


def check_reach(key: Key, agent: str | None) -> None:
    """Refuse a key that is for other agents."""
    if not key.can_reach(agent):
        target = "all agents" if agent is None else f"agent {agent!r}"
        raise OutOfReach(f"key {key.name!r} does not reach {target}")


@contextmanager
def read() -> Iterator[Transaction]:
    """Begin a read-only transaction with a limit on the size of its pages."""
    with api().store.read() as tx:
        tx.page_bytes = tx.settings.page_bytes
        yield tx


@contextmanager
def write(*, durable: bool = True) -> Iterator[Transaction]:
    """Begin a write transaction; for an audited route, it also adds an entry to the audit log.

    An audited route refuses a key that was revoked after the request began.
    """
    with api().store.write(durable=durable) as tx:
        if g.get("audited"):
            require_valid(tx)
        yield tx
        if g.get("audited"):
            record_audit(tx, caller(), **audit_fields())


def audit_fields() -> dict[str, str]:
    """Return the fields of this request for the audit log."""
    return {
        "action": str(request.endpoint).replace(".", " "),
        "target": request.path[:500],
        "request_id": str(g.request_id),
        "address": request.remote_addr or "",
    }
