"""Agents of a test's own, and work for them that is done behind the API's back."""

from __future__ import annotations

import itertools

from bullpen.core.company import add_agent
from bullpen.core.message import ErrorKind
from bullpen.core.roster.agents import HTTP, Agent
from bullpen.core.store.base import Store
from tests.api.served import Served
from tests.conformance.verbs import failed, take

NUMBERS = itertools.count(1)


def hired(store: Store, prefix: str = "agent") -> str:
    """An agent that no other test has, left to outside workers."""
    name = f"{prefix}{next(NUMBERS)}"
    with store.write() as tx:
        add_agent(tx, Agent(id=name, provider=HTTP))
    return name


def sent(served: Served, agent: str, text: str = "hello", **more: object) -> str:
    """A message from Ada; gives its id."""
    body = {"message": f"@{agent} {text}", "sender": "Ada", "senderId": "U1", **more}
    return str(served.post("/api/message", body)["messageId"])


def died(
    served: Served, store: Store, agent: str, kind: ErrorKind = ErrorKind.PERMANENT, **more: object
) -> str:
    """A message that is dead; gives its id."""
    message = sent(served, agent, **more)  # type: ignore[arg-type]
    failed(store, take(store, agent).token, kind, "it cannot be")
    return message


def held(served: Served, store: Store, agent: str) -> str:
    """A message that waits for a person; gives its id."""
    return died(served, store, agent, ErrorKind.NEEDS_PERSON)


def status(served: Served, message: str) -> str:
    """A message's state."""
    return str(served.get(f"/api/messages/{message}")["status"])
