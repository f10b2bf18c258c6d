"""Lists of long texts: a page ends after some bytes, nothing is left out, and memory stays low."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import requests
from sqlalchemy import bindparam, insert, update

from bullpen.core.company import add_agent
from bullpen.core.models import AGENT_MESSAGES, CHAT_MESSAGES, MESSAGES
from bullpen.core.roster.agents import HTTP, Agent
from bullpen.core.roster.teams import Team, add_team
from bullpen.core.store.base import Store
from bullpen.core.store.statement import Statement
from tests.api.served import LIMIT, Served, serving
from tests.stores import Stores

ROWS = 16
TEXT = "x" * 800_000
PAGE_BYTES = 2 << 20
MOST_JSON = PAGE_BYTES + (1 << 16)
MOST_MEGABYTES = 400
CLIENTS = 16

HISTORY: Statement[None] = Statement(
    lambda: insert(AGENT_MESSAGES).values(
        agent_id="w",
        role="user",
        channel="api",
        sender="ann",
        message_id=bindparam("id"),
        content=bindparam("text"),
        created_at=bindparam("now"),
    )
)
POST: Statement[None] = Statement(
    lambda: insert(CHAT_MESSAGES).values(
        team_id="dev", from_agent="w", message=bindparam("text"), created_at=bindparam("now")
    )
)
ONE_CONVERSATION: Statement[None] = Statement(
    lambda: (
        update(MESSAGES).where(MESSAGES.c.agent == "v").values(conversation_id=bindparam("first"))
    )
)


@pytest.fixture(
    scope="module", params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)]
)
def full(request: pytest.FixtureRequest, stores: Stores) -> Iterator[Served]:
    """An API over many long texts."""
    settings = stores.settings(request.param)
    with stores.opened(settings) as store:
        with store.write() as tx:
            for name in ("v", "w"):
                add_agent(tx, Agent(id=name, provider=HTTP))
            add_team(tx, Team(id="dev", leader="w", members=("w",)))
        with serving(settings) as served:
            _fill(served, store)
            yield served


def _fill(served: Served, store: Store) -> None:
    sent = []
    for number in range(ROWS):
        for agent in ("v", "w"):
            body = {"message": TEXT, "agent": agent, "messageId": f"m-{agent}{number}"}
            sent.append(served.post("/api/message", body))
        served.post("/api/responses", {"message": TEXT, "channel": "web", "sender": "ann"})
        with store.write() as tx:
            values = {"id": f"h{number}", "text": TEXT, "now": tx.now}
            tx.write(HISTORY, values)
            tx.write(POST, values)
    with store.write() as tx:
        tx.write(ONE_CONVERSATION, {"first": "m-v0"})


LISTS = (
    "/api/messages?agent=w",
    "/api/messages?conversation_id=m-v0",
    "/api/conversations?agent=w",
    "/api/agent-messages?",
    "/api/agents/w/messages?",
    "/api/chatroom/dev?",
    "/api/responses?",
    "/api/responses/pending?channel=web",
)


def test_a_page_of_long_texts_ends_early_and_the_next_goes_on(full: Served) -> None:
    for path in LISTS:
        found: list[int] = []
        since = 1  # 0 is the newest, to TinyAGI's clients
        while True:
            response = full.ask("GET", f"{path}&limit=500&since_id={since}")
            assert response.status_code == 200, path
            assert len(response.content) <= MOST_JSON, path
            if not response.json():
                break
            found += [each["id"] for each in response.json()]
            since = int(response.headers["X-Next-Cursor"])
            assert since == found[-1], path
        assert len(found) == len(set(found)) >= ROWS - 1, path
        newest = full.ask("GET", f"{path}&limit=500")
        assert len(newest.content) <= MOST_JSON, path
        assert newest.headers["X-Next-Cursor"], path


def test_a_long_conversation_and_a_search_show_what_fits(full: Served) -> None:
    for path in ("/api/conversations/m-v0", "/api/history/search?text=xxx&limit=500"):
        response = full.ask("GET", path)
        assert response.status_code == 200
        assert TEXT in response.text
        assert len(response.content) <= 2 * MOST_JSON


def test_the_largest_pages_that_many_ask_for_at_once_take_little_memory(full: Served) -> None:
    paths = [f"{path}&limit=500" for path in LISTS] + ["/api/conversations/m-v0"]
    ends = time.monotonic() + 2

    def ask(number: int) -> None:
        with requests.Session() as session:
            session.headers["Authorization"] = f"Bearer {full.token}"
            while time.monotonic() < ends:
                for each in paths[number % len(paths) :] + paths[: number % len(paths)]:
                    assert session.get(full.url + each, timeout=LIMIT).status_code == 200

    most = 0.0
    with ThreadPoolExecutor(CLIENTS) as pool:
        asking = [pool.submit(ask, number) for number in range(CLIENTS)]
        while not all(each.done() for each in asking):
            sizes = [worker.memory_info().rss for worker in full.workers]
            most = max(most, *(size / (1 << 20) for size in sizes))
            time.sleep(0.05)
        for each in asking:
            each.result()
    assert most < MOST_MEGABYTES
