"""What a request has at hand: the store, the caller, and audited transactions."""

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
"""Wrong tokens of one address that are checked in a minute; more are refused."""

MAX_ADDRESSES = 1024


class Failures:
    """Failed attempts of each address in the last minute, for the latest addresses."""

    def __init__(self) -> None:
        self._counts: OrderedDict[str, tuple[int, int]] = OrderedDict()
        self._lock = threading.Lock()

    def too_many(self, address: str, now: int) -> bool:
        """Whether this address has failed so often that its next wrong token is refused."""
        since, count = self._counts.get(address, (now, 0))
        return now - since < MINUTE and count >= MAX_FAILURES_PER_MINUTE

    def add(self, address: str, now: int) -> bool:
        """Count one more; true if it is the one that reaches the limit."""
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
    """What all requests of this process share."""

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
    """What all requests of this process share."""
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
        raise ScopeTooSmall(f"the key {caller().name!r} has not the scope {scope.value}")


class ChangedBy(Enum):
    """Who changes a field of a request's body, besides what the scope of its route says.

    A field that may open the machine is marked with it: `field: Annotated[Type, ChangedBy.…]`.
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
            raise MachineOnly(f"{name} is not changed over the API")
        if ChangedBy.ALL_AGENTS in marks and not caller().can_reach(None):
            raise OutOfReach(
                f"the key {caller().name!r} does not change {name}",
                hint="Use a key that reaches all agents.",
            )


def require_reach(agent: str | None) -> None:
    """Refuse a caller whose key is for other agents."""
    check_reach(caller(), agent)


def check_reach(key: Key, agent: str | None) -> None:
    """Refuse a key that is for other agents."""
    if not key.can_reach(agent):
        raise OutOfReach(f"the key {key.name!r} does not reach this")


@contextmanager
def read() -> Iterator[Transaction]:
    """A transaction that only reads; the bytes of its pages are bounded."""
    with api().store.read() as tx:
        tx.page_bytes = tx.settings.page_bytes
        yield tx


@contextmanager
def write(*, durable: bool = True) -> Iterator[Transaction]:
    """A transaction that writes; of an audited route, with its line in the audit log.

    What such a route does, a key that was revoked since its request began does no more.
    """
    with api().store.write(durable=durable) as tx:
        if g.get("audited"):
            require_valid(tx)
        yield tx
        if g.get("audited"):
            record_audit(tx, caller(), **audit_fields())


def audit_fields() -> dict[str, str]:
    """What this request does, for the audit log."""
    return {
        "action": str(request.endpoint).replace(".", " "),
        "target": request.path[:500],
        "request_id": str(g.request_id),
        "address": request.remote_addr or "",
    }
