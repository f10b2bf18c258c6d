"""bullpen demo history: its rows agree with each other, and Bullpen can work on with them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

import pytest
from sqlalchemy import text

from bullpen.core.clock import DAY
from bullpen.core.company import add_agent
from bullpen.core.errors import InTheWay
from bullpen.core.ids import ID_CHARS
from bullpen.core.message import Answer, NewMessage, Outcome
from bullpen.core.queue.claim import claim
from bullpen.core.queue.enqueue import enqueue
from bullpen.core.queue.finish import finish
from bullpen.core.queue.manage import retry
from bullpen.core.roster.agents import Agent
from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from bullpen.ops.demo.plan import HistoryPlan
from bullpen.ops.demo.rows import Rows
from bullpen.ops.demo.simulation import Simulation
from bullpen.ops.demo.write import check_empty, write_history
from bullpen.reports.facts.tables import REPORT_EVENTS
from tests.stores import FakeClock, Stores

UNTIL = 1_763_640_000_000
"""A Thursday afternoon."""
ATTEMPTS = 5000

CONTRADICTIONS: Mapping[str, str] = {
    "an attempt without the event that its message was enqueued": """
        SELECT a.message_id FROM attempts a LEFT JOIN events e
        ON e.message_id = a.message_id AND e.type = 'message_enqueued'
        AND e.created_at = a.enqueued_at WHERE e.id IS NULL""",
    "a message that was enqueued twice": """
        SELECT message_id FROM events WHERE type = 'message_enqueued'
        GROUP BY message_id HAVING count(*) > 1""",
    "an attempt that differs from the event of its message": """
        SELECT a.message_id FROM attempts a JOIN messages_and_archive m
        ON m.message_id = a.message_id
        WHERE a.agent <> m.agent OR a.channel <> m.channel OR a.sender <> m.sender
        OR coalesce(a.sender_id, '') <> coalesce(m.sender_id, '')
        OR coalesce(a.from_agent, '') <> coalesce(m.from_agent, '')
        OR coalesce(a.team_id, '') <> coalesce(m.team_id, '')
        OR a.hop <> m.hop OR a.enqueued_at <> m.created_at OR a.attempt > m.runs
        OR a.conversation_at <> m.conversation_at OR a.conversation_id <> m.conversation_id""",
    "a message that is neither stored nor dropped": """
        SELECT e.message_id FROM events e
        LEFT JOIN messages_and_archive m ON m.message_id = e.message_id
        LEFT JOIN events d ON d.message_id = e.message_id AND d.type = 'message_dropped'
        WHERE e.type = 'message_enqueued' AND (m.id IS NULL) = (d.id IS NULL)""",
    "a number of an attempt that does not rise": """
        SELECT message_id FROM (SELECT message_id, attempt, lag(attempt, 1, 0) OVER (
        PARTITION BY message_id ORDER BY id) AS before FROM attempts) x
        WHERE attempt <= before""",
    "a first attempt whose message was not due when it was enqueued": """
        SELECT a.message_id FROM attempts a JOIN messages_and_archive m
        ON m.message_id = a.message_id WHERE a.attempt = 1 AND m.crash_count = 0
        AND m.status = 'completed' AND m.runs = 1 AND a.available_at <> m.available_at""",
    "a back-off that the next attempt did not wait for": """
        SELECT message_id FROM (SELECT message_id, available_at, lag(finished_at + wait) OVER (
        PARTITION BY message_id ORDER BY id) AS due FROM attempts) x
        WHERE available_at < due""",
    "a back-off of a run that was not retried": """
        SELECT message_id FROM attempts WHERE wait IS NOT NULL
        AND (outcome <> 'failed' OR error_kind <> 'retryable' OR wait < 2000)""",
    "an attempt with an error that did not fail": """
        SELECT message_id FROM attempts WHERE (outcome IN ('failed', 'crashed'))
        <> (error IS NOT NULL AND error_kind IS NOT NULL AND fingerprint IS NOT NULL)""",
    "times out of order, or in the future": f"""
        SELECT message_id FROM attempts WHERE NOT (conversation_at <= enqueued_at
        AND enqueued_at <= available_at AND available_at <= claimed_at
        AND claimed_at <= started_at AND started_at <= finished_at AND finished_at < {UNTIL})""",
    "an event in the future": f"SELECT type FROM events WHERE created_at >= {UNTIL}",
    "two runs of one agent at once": """
        SELECT agent FROM (SELECT agent, claimed_at, lag(finished_at) OVER (
        PARTITION BY agent ORDER BY id) AS before FROM attempts) x WHERE claimed_at < before""",
    "attempts that are not in the order of time": """
        SELECT id FROM (SELECT id, finished_at, lag(finished_at) OVER (ORDER BY id) AS before
        FROM attempts) x WHERE finished_at < before""",
    "events that are not in the order of time": """
        SELECT id FROM (SELECT id, created_at, lag(created_at) OVER (ORDER BY id) AS before
        FROM events) x WHERE created_at < before""",
    "a conversation that began at two times": """
        SELECT conversation_id FROM attempts GROUP BY conversation_id
        HAVING min(conversation_at) <> max(conversation_at)""",
    "a conversation that did not begin with its first message": """
        SELECT a.message_id FROM attempts a JOIN events e
        ON e.message_id = a.conversation_id AND e.type = 'message_enqueued'
        WHERE e.created_at <> a.conversation_at""",
    "as many deaths in attempts as in events": """
        SELECT 1 WHERE (SELECT sum(dead) FROM attempts)
        <> (SELECT count(*) FROM events WHERE type = 'message_dead')""",
    "a dead message without the event": """
        SELECT m.message_id FROM messages m LEFT JOIN events e
        ON e.message_id = m.message_id AND e.type = 'message_dead'
        WHERE m.status = 'dead' AND e.id IS NULL""",
    "an outcome of a delivery that its response does not have": """
        SELECT e.response FROM response_events e LEFT JOIN responses_and_archive r
        ON r.id = e.response WHERE e.type = 'response_delivered' AND (r.id IS NULL
        OR r.status <> 'acked' OR r.acked_at <> e.created_at OR r.delivery_attempts <> e.tries
        OR r.acked_at - r.created_at <> e.waited OR r.parts_sent <> e.parts
        OR r.channel <> e.channel OR r.sender_id <> e.sender_id)""",
    "a delivered response without the event": """
        SELECT r.id FROM responses_and_archive r LEFT JOIN response_events e
        ON e.response = r.id AND e.type = 'response_delivered'
        WHERE (r.status = 'acked') <> (e.response IS NOT NULL)""",
    "a row in the archive that belongs in the live table, or the other way round": f"""
        SELECT message_id FROM messages_archive WHERE updated_at >= {UNTIL - DAY}
        UNION ALL SELECT message_id FROM messages WHERE updated_at < {UNTIL - DAY}
        AND status IN ('completed', 'cancelled', 'expired')
        UNION ALL SELECT message_id FROM responses_archive WHERE acked_at >= {UNTIL - DAY}
        UNION ALL SELECT message_id FROM responses WHERE acked_at < {UNTIL - DAY}""",
    "a message in both tables": """
        SELECT message_id FROM messages_and_archive GROUP BY message_id HAVING count(*) > 1""",
    "a message in progress, or a lane that is claimed": """
        SELECT message_id FROM messages WHERE status = 'processing'
        UNION ALL SELECT agent FROM lanes WHERE claim_token IS NOT NULL""",
    "a lane that counts other pending messages than there are": """
        SELECT l.agent FROM lanes l WHERE l.pending <> (SELECT count(*) FROM messages m
        WHERE m.agent = l.agent AND m.status = 'pending')
        OR coalesce(l.head_key, 0) <> coalesce((SELECT min(m.sort_key) FROM messages m
        WHERE m.agent = l.agent AND m.status = 'pending' AND m.ready), 0)""",
    "a sender who is not paired": """
        SELECT a.sender_id FROM attempts a LEFT JOIN senders s
        ON s.channel = a.channel AND s.sender_id = a.sender_id
        WHERE a.channel NOT IN ('chatroom', 'internal') AND s.tier IS NULL""",
    "a person who wrote before their pairing": """
        SELECT a.sender_id FROM attempts a JOIN senders s
        ON s.channel = a.channel AND s.sender_id = a.sender_id
        WHERE a.conversation_at < s.approved_at OR a.conversation_at > s.last_at""",
    "a room post without the event": """
        SELECT id FROM chat_messages WHERE id NOT IN (SELECT post FROM post_events)""",
    "a message of which the agent's history says nothing": """
        SELECT m.message_id FROM messages_and_archive m LEFT JOIN agent_messages h
        ON h.message_id = m.message_id AND h.role = 'user' AND h.agent_id = m.agent
        WHERE h.id IS NULL""",
}
"""What must not be, with SQL that finds it."""

VIEWS = (
    "CREATE TEMPORARY VIEW messages_and_archive AS SELECT {messages} FROM messages"
    " UNION ALL SELECT {messages} FROM messages_archive",
    "CREATE TEMPORARY VIEW responses_and_archive AS SELECT {responses} FROM responses"
    " UNION ALL SELECT {responses} FROM responses_archive",
    "CREATE TEMPORARY VIEW response_events AS SELECT type, created_at, {response_fields}"
    " FROM events WHERE type LIKE 'response!_%' ESCAPE '!'",
    "CREATE TEMPORARY VIEW post_events AS SELECT {post_fields} FROM events"
    " WHERE type = 'room_posted'",
)
RESPONSE_FIELDS = {"response": "bigint", "tries": "bigint", "waited": "bigint", "parts": "bigint"}
TEXT_FIELDS = {"channel": "text", "sender_id": "text"}


def plan_of(settings: Settings, attempts: int = ATTEMPTS, **changes: int) -> HistoryPlan:
    """A month for a store with these settings."""
    plan = HistoryPlan.from_settings(settings, seed=7, attempts=attempts, days=30, until=UNTIL)
    return replace(plan, **changes)


@pytest.fixture
def written(stores: Stores, settings: Settings) -> Iterator[Store]:
    """A store with a history, shortly after its end."""
    write_history(settings, plan_of(settings), lambda _: None)
    with stores.opened(settings, FakeClock(UNTIL + 1000)) as store:
        yield store


def digest(plan: HistoryPlan) -> str:
    """The same for the same rows."""
    found = hashlib.sha256()
    for rows in Simulation(plan).run():
        found.update(repr(rows).encode())
    return found.hexdigest()


def field(dialect: str, name: str, kind: str) -> str:
    """A field of an event's data as a column."""
    if dialect == "sqlite":
        return f"data ->> '$.{name}' AS {name}"
    return f"(data::json ->> '{name}')::{kind} AS {name}"


def make_views(store: Store) -> tuple[str, ...]:
    """The views of the queries above."""
    fields = {**RESPONSE_FIELDS, **TEXT_FIELDS}
    names = {
        "messages": "id, message_id, channel, sender, sender_id, agent, from_agent, status, runs,"
        " crash_count, conversation_id, hop, team_id, available_at, created_at, updated_at,"
        " conversation_at",
        "responses": "id, channel, sender_id, status, delivery_attempts, parts_sent, created_at,"
        " acked_at",
        "response_fields": ", ".join(field(store.dialect, *each) for each in fields.items()),
        "post_fields": field(store.dialect, "post", "bigint"),
    }
    return tuple(each.format(**names) for each in VIEWS)


def test_the_rows_of_a_history_agree_with_each_other(written: Store) -> None:
    with written.engine.begin() as connection:
        for view in make_views(written):
            connection.execute(text(view))
        found = {
            name: connection.execute(text(sql)).fetchmany(3) for name, sql in CONTRADICTIONS.items()
        }
    assert {name: rows for name, rows in found.items() if rows} == {}


def test_a_history_has_everything_that_reports_and_pages_show(written: Store) -> None:
    expected = {
        "SELECT DISTINCT outcome FROM attempts": {
            *("completed", "failed", "crashed", "released", "cancelled")
        },
        "SELECT DISTINCT error_kind FROM attempts WHERE error_kind IS NOT NULL": {
            *("retryable", "rate_limit", "permanent", "auth", "needs_person", "crash")
        },
        "SELECT DISTINCT channel FROM attempts": {
            *("slack", "telegram", "discord", "whatsapp", "chatroom", "internal")
        },
        "SELECT DISTINCT status FROM messages": {*("completed", "dead", "held", "pending")},
        "SELECT DISTINCT provider FROM attempts WHERE cost > 0": {"claude", "codex", "opencode"},
        "SELECT DISTINCT agent FROM attempts": None,
        "SELECT DISTINCT team_id FROM attempts WHERE team_id IS NOT NULL": {
            *("dev", "support", "research")
        },
    }
    with written.engine.begin() as connection:
        missing = {}
        for sql, values in expected.items():
            found = {row[0] for row in connection.execute(text(sql))}
            if values is None and len(found) != 10:
                missing[sql] = found
            elif values is not None and not values <= found:
                missing[sql] = values - found
        types = {row[0] for row in connection.execute(text("SELECT DISTINCT type FROM events"))}
        ids = [
            row[0]
            for row in connection.execute(
                text("SELECT message_id FROM events WHERE type = 'message_enqueued'")
            )
        ]
        (attempts,) = connection.execute(text("SELECT count(*) FROM attempts")).one()
        (people,) = connection.execute(text("SELECT count(*) FROM senders")).one()
    assert missing == {}
    assert {*REPORT_EVENTS, "lane_paused", "lane_resumed", "message_dropped"} - types == set()
    form = re.compile(rf"(?:slack|telegram|discord|whatsapp|internal|chat)_[0-9a-z]{{{ID_CHARS}}}")
    assert [each for each in ids if not form.fullmatch(each)] == []
    assert abs(attempts - ATTEMPTS) < ATTEMPTS // 20
    assert people == 400


def test_bullpen_works_on_with_a_history(written: Store) -> None:
    """New rows get new ids, and what waits can be retried and answered."""
    with written.write() as tx:
        row = tx.fetch("SELECT message_id, agent FROM messages WHERE status = 'dead' LIMIT 1")
        assert row is not None
        dead, agent = map(str, row)
        retry(tx, dead)
        enqueue(tx, NewMessage(agent="assistant", message="hello", channel="api", sender="ada"))
    for each in (agent, "assistant"):
        with written.write() as tx:
            claimed = claim(tx, "processor_test", agent=each)
            assert claimed is not None
            finish(tx, claimed, Outcome(answers=(Answer(message="done"),)))


def test_the_same_plan_gives_the_same_rows(stores: Stores) -> None:
    settings = stores.settings("sqlite")
    plan = plan_of(settings, 1000)
    assert digest(plan) == digest(plan)
    assert digest(plan) != digest(replace(plan, seed=8))


def test_an_interrupted_history_leaves_an_empty_store(stores: Stores, settings: Settings) -> None:
    calls = []
    file = settings.home / "bullpen.db"
    size = file.stat().st_size if file.exists() else 0

    def interrupt(now: int) -> None:
        calls.append(now)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_history(settings, plan_of(settings), interrupt)
    assert calls
    assert not file.exists() or file.stat().st_size <= size
    with stores.opened(settings) as store:
        check_empty(store)
    assert write_history(settings, plan_of(settings, 500), lambda _: None).rows["attempts"]


def test_a_store_with_data_of_an_owner_is_refused(stores: Stores, settings: Settings) -> None:
    with stores.opened(settings) as store:
        with store.write() as tx:
            add_agent(tx, Agent(id="mine"))
        with pytest.raises(InTheWay, match=r"not empty: it has rows in agents") as refused:
            write_history(settings, plan_of(settings, 500), lambda _: None)
        with store.read() as tx:
            assert tx.fetch("SELECT id FROM agents") == ("mine",)
    assert "BULLPEN_HOME" in str(refused.value.hint)


def test_what_is_kept_at_once_does_not_grow_with_the_size(stores: Stores) -> None:
    """A part of the rows, whatever the number of attempts."""
    settings = stores.settings("sqlite")

    def largest(attempts: int) -> int:
        parts: Iterator[Rows] = Simulation(plan_of(settings, attempts)).run()
        return max(sum(map(len, each.tables.values())) for each in parts)

    assert largest(12_000) < 1.2 * largest(6_000)
