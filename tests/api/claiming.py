"""A worker outside of Bullpen, as the tests play it."""

from __future__ import annotations

import itertools
from typing import Any

from bullpen.core.company import add_agent
from bullpen.core.roster.agents import HTTP, Agent
from bullpen.core.store.base import Store
from tests.api.served import Served

Document = dict[str, Any]

NUMBERS = itertools.count(1)
EMPTY: Document = {"token": None, "lease_expires_at": None, "messages": []}


def own_agent(store: Store) -> str:
    """A new agent, left to outside workers; gives its id."""
    name = f"w{next(NUMBERS)}"
    hire(store, name)
    return name


def hire(store: Store, name: str, **more: Any) -> None:  # noqa: ANN401
    """Take on an agent that is left to outside workers."""
    with store.write() as tx:
        add_agent(tx, Agent(id=name, provider=HTTP, **more))


def send(served: Served, agent: str, text: str, **more: object) -> str:
    """A message for this agent; gives its id."""
    body = {"message": f"@{agent} {text}", "sender": "Ada", "senderId": "ada", **more}
    return str(served.post("/api/message", body)["messageId"])


def claim(served: Served, agent: str, **more: Any) -> Document:  # noqa: ANN401
    """Ask for work."""
    keep = {key: more.pop(key) for key in ("token", "timeout") if key in more}
    found: Document = served.post("/api/queue/claim", {"agent": agent, **more}, **keep)
    return found


def claimed_at(served: Served, agent: str) -> int:
    """When the claim began that is under way."""
    return int(served.get(f"/api/lanes/{agent}")["claimed_at"])


def ids(found: Document) -> list[str]:
    """The messages of a claim."""
    return [each["message_id"] for each in found["messages"]]
