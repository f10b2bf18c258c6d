"""Whoever reads by numbers loses no row that commits late.

Each test holds transactions open on connections of its own, so that nothing depends on luck.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import Connection, insert, select

from bullpen.core.models import AGENT_MESSAGES, CHAT_MESSAGES
from bullpen.core.store import committed
from bullpen.core.store.base import Store
from bullpen.core.store.committed import committed_up_to
from tests.stores import FakeClock, Stores

ROW = {"team_id": "dev", "from_agent": "Ada", "message": "hello", "created_at": 1}


def post(connection: Connection) -> int:
    """Write a row; gives its number."""
    return int(
        connection.execute(
            insert(CHAT_MESSAGES).values(ROW).returning(CHAT_MESSAGES.c.id)
        ).scalar_one()
    )


def post_now(store: Store) -> int:
    """Write a row and commit it."""
    with store.engine.begin() as connection:
        return post(connection)


@pytest.fixture
def pg(stores: Stores, clock: FakeClock) -> Iterator[Store]:
    """A store on PostgreSQL."""
    with stores.opened(stores.settings("postgresql"), clock) as opened:
        yield opened


def test_where_nobody_writes_it_is_the_last_number(store: Store) -> None:
    assert committed_up_to(store, CHAT_MESSAGES) == 0
    numbers = [post_now(store) for _ in range(3)]
    assert committed_up_to(store, CHAT_MESSAGES) == numbers[-1]
    assert committed_up_to(store, AGENT_MESSAGES) == 0


@pytest.mark.postgres
def test_a_lower_number_that_commits_late_is_waited_for(
    pg: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(committed, "MAX_WRITER_WAIT_SECONDS", 60.0)
    found: list[int] = []
    with pg.engine.connect() as late:
        first = post(late)
        second = post_now(pg)
        assert first < second
        reader = threading.Thread(target=lambda: found.append(committed_up_to(pg, CHAT_MESSAGES)))
        reader.start()
        reader.join(0.3)
        assert reader.is_alive()
        late.commit()
    reader.join(60)
    assert found == [second]
    with pg.engine.connect() as connection:
        rows = connection.execute(select(CHAT_MESSAGES.c.id).where(CHAT_MESSAGES.c.id <= second))
        assert sorted(rows.scalars()) == [first, second]


@pytest.mark.postgres
def test_who_begins_later_is_not_waited_for(pg: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(committed, "MAX_WRITER_WAIT_SECONDS", 60.0)
    number = post_now(pg)
    looks = iter([frozenset({"first"}), frozenset({"first", "second"}), frozenset({"second"})])
    monkeypatch.setattr(committed, "active_writers", lambda *_: next(looks))
    assert committed_up_to(pg, CHAT_MESSAGES) == number


@pytest.mark.postgres
def test_who_begins_while_others_are_waited_for_is_not_passed_over(
    pg: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The number is noted before the wait: later writers may commit out of order."""
    number = post_now(pg)
    wait_for_writers = committed.wait_for_writers
    with pg.engine.connect() as late:

        def wait_and_be_overtaken(*arguments: Any) -> bool:  # noqa: ANN401
            ended = wait_for_writers(*arguments)
            assert post(late) < post_now(pg)
            return ended

        monkeypatch.setattr(committed, "wait_for_writers", wait_and_be_overtaken)
        assert committed_up_to(pg, CHAT_MESSAGES) == number
        late.commit()


@pytest.mark.postgres
def test_one_that_writes_for_too_long_keeps_nobody_for_ever(
    pg: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(committed, "MAX_WRITER_WAIT_SECONDS", 0.2)
    post_now(pg)
    with pg.engine.connect() as endless:
        post(endless)
        began = time.monotonic()
        assert committed_up_to(pg, CHAT_MESSAGES) == 0
        assert 0.2 <= time.monotonic() - began < 60
        endless.rollback()


@pytest.mark.postgres
def test_those_who_write_elsewhere_delay_nobody(pg: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(committed, "MAX_WRITER_WAIT_SECONDS", 0.0)
    number = post_now(pg)
    row = {"agent_id": "a", "role": "user", "channel": "cli", "sender": "", "message_id": ""}
    with pg.engine.connect() as other:
        other.execute(insert(AGENT_MESSAGES).values(content="", created_at=1, **row))
        assert committed_up_to(pg, CHAT_MESSAGES) == number
        other.rollback()
