"""What one key has sent and nobody has answered is bounded, and keeps no other key out."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bullpen.core.access.keys import Scope
from bullpen.core.company import add_agent
from bullpen.core.roster.agents import HTTP, Agent
from bullpen.core.roster.teams import Team, add_team
from tests.api.claiming import claim
from tests.api.served import Served, serving
from tests.stores import Stores

MOST = 3
MOST_BYTES = 5000


@pytest.fixture
def bounded(stores: Stores, kind: str) -> Iterator[Served]:
    """An API where a key may have little waiting."""
    settings = stores.settings(kind)
    with stores.opened(settings) as store, store.write() as tx:
        add_agent(tx, Agent(id="w", provider=HTTP))
        add_team(tx, Team(id="dev", leader="w", members=("w",)))
    with serving(
        settings, BULLPEN_KEY_PENDING=str(MOST), BULLPEN_KEY_PENDING_BYTES=str(MOST_BYTES)
    ) as served:
        yield served


def test_a_key_with_much_waiting_is_refused_and_no_other(bounded: Served) -> None:
    greedy, other = bounded.key(Scope.PUBLISH), bounded.key(Scope.PUBLISH)
    small = {"message": "hello", "agent": "w", "sender": "ann"}
    long = {"message": "x" * (MOST_BYTES - 10), "agent": "w", "sender": "ann"}

    def refused(body: dict[str, str], path: str = "/api/message") -> None:
        response = bounded.ask("POST", path, body, token=greedy)
        assert (response.status_code, response.json()["code"]) == (429, "key_backlog")
        assert response.headers["Retry-After"]

    bounded.post("/api/message", long, token=greedy)
    refused({**small, "message": "x" * 20})
    bounded.post("/api/message", small, token=greedy)
    refused(long)
    bounded.post("/api/chatroom/dev", {"message": "hi"}, token=greedy)
    refused(small)
    refused({"message": "hi"}, "/api/chatroom/dev")
    bounded.post("/api/message", small, token=other)
    for _ in range(2 * MOST):
        bounded.post("/api/message", small)
    assert claim(bounded, "w")["messages"]
    bounded.post("/api/message", small, token=greedy)
