"""Metrics: each is documented, true, and cheap."""

from __future__ import annotations

import re
import threading
import time
from pathlib import Path

import pytest
import requests
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from bullpen.core.access.keys import Scope
from bullpen.core.background import register_worker, unregister_worker
from bullpen.core.channels.health import Activity, ChannelState, report_activity, report_state
from bullpen.core.channels.pairing import request_pairing
from bullpen.core.channels.senders import revoke
from bullpen.core.inspect import lanes, queue
from bullpen.core.queue.claim import claim
from bullpen.core.store.base import Store
from bullpen.core.store.sqlite import SqliteStore
from bullpen.core.store.statement import Statement
from tests.api.served import Served

DOCS = Path(__file__).resolve().parents[2] / "docs" / "reference" / "metrics.md"


def scrape(served: Served) -> dict[str, list[Sample]]:
    """All samples, by the names of their families."""
    response = served.ask("GET", "/metrics")
    assert response.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    families = text_string_to_metric_families(response.text)
    return {each.name: each.samples for each in families}


def value(served: Served, name: str, **labels: str) -> float:
    """One sample."""
    family = name.removesuffix("_total")
    found = [
        each.value
        for each in scrape(served)[family]
        if each.name == name and labels.items() <= each.labels.items()
    ]
    return sum(found)


def test_every_metric_is_documented_and_nothing_else_is(served: Served) -> None:
    served.post("/api/message", {"message": "@worker hello"})
    found = set(scrape(served))
    counters = {"bullpen_requests"}
    named = {f"{name}_total" if name in counters else name for name in found}
    documented = re.findall(r"^\| `(\w+)` \|", DOCS.read_text(), flags=re.MULTILINE)
    assert named == set(documented)
    assert len(documented) == len(set(documented))


def test_the_queue_is_told_as_it_is(served: Served, inside: Store) -> None:
    before = value(served, "bullpen_messages", agent="other", state="pending")
    for number in range(3):
        served.post("/api/message", {"message": f"@other {number}", "sender": f"s{number}"})
    assert value(served, "bullpen_messages", agent="other", state="pending") == before + 3
    assert value(served, "bullpen_oldest_waiting_seconds", agent="other") >= 0
    with inside.write() as tx:
        taken = claim(tx, "me", limit=1, agent="other")
    assert taken is not None
    assert value(served, "bullpen_messages", agent="other", state="processing") == 1
    assert value(served, "bullpen_lanes", state="active") == 4
    assert value(served, "bullpen_workers", kind="api") >= 1
    assert value(served, "bullpen_info") == 1


def test_a_channel_is_up_or_not_and_its_requests_are_counted(served: Served, inside: Store) -> None:
    with inside.write() as tx:
        worker = register_worker(tx, "slack")
        report_state(tx, "slack", ChannelState.UP, worker=worker)
        report_activity(tx, "slack", Activity(last_message_at=5_000))
        request_pairing(tx, "slack", "U1", "Ann")
    assert value(served, "bullpen_channel_up", channel="slack") == 1
    assert value(served, "bullpen_pairing_requests", channel="slack") == 1
    name = "bullpen_channel_last_message_timestamp_seconds"
    assert value(served, name, channel="slack") == 5
    with inside.write() as tx:
        unregister_worker(tx, worker)
        revoke(tx, "slack", "U1", "owner")


def test_what_is_held_dead_and_to_be_delivered_is_told(served: Served) -> None:
    sent = served.post("/api/message", {"message": "@worker hold it"})["messageId"]
    before = value(served, "bullpen_held")
    served.post(f"/api/messages/{sent}/hold", {"reason": "wait"})
    assert value(served, "bullpen_held") == before + 1
    assert value(served, "bullpen_dead") == 0


def test_every_request_of_every_process_is_counted_once(served: Served) -> None:
    labels = {"endpoint": "login.me", "method": "GET", "status": "200"}
    before = value(served, "bullpen_requests_total", **labels)

    def ask() -> None:
        for _ in range(10):
            headers = {"Authorization": f"Bearer {served.token}", "Connection": "close"}
            requests.get(f"{served.url}/api/me", headers=headers, timeout=60)

    threads = [threading.Thread(target=ask) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for _ in range(4):
        assert value(served, "bullpen_requests_total", **labels) == before + 50
    seconds = value(served, "bullpen_request_seconds", endpoint="login.me", method="GET")
    assert seconds == 0  # its samples have names of their own
    found = scrape(served)["bullpen_request_seconds"]
    (count,) = (
        each.value
        for each in found
        if each.name.endswith("_count") and each.labels["endpoint"] == "login.me"
    )
    assert count >= 50


@pytest.mark.one_store
def test_streams_are_counted_whichever_process_has_them(served: Served) -> None:
    before = value(served, "bullpen_streams")
    deadline = time.monotonic() + 120
    with served.ask("GET", "/api/events/stream", stream=True) as stream:
        assert stream.status_code == 200
        # One that has it and is asked nothing else says so with its next heartbeat.
        while value(served, "bullpen_streams") != before + 1:
            assert time.monotonic() < deadline
            time.sleep(0.1)


def test_who_asks_chooses_no_names(served: Served) -> None:
    for number in range(20):
        served.ask("GET", f"/nonsense/{number}")
        served.ask(f"X{number}", "/api/me")
    found = scrape(served)["bullpen_requests"]
    assert not any("nonsense" in str(each.labels) for each in found)
    assert not any(each.labels["method"].startswith("X") for each in found)
    assert value(served, "bullpen_requests_total", endpoint="none", status="404") >= 20


def test_metrics_are_for_keys_that_reach_all(served: Served) -> None:
    assert served.refused("GET", "/metrics", token="") == (401, "no_access")
    limited = served.key(Scope.READ, agents=("coder",))
    assert served.refused("GET", "/metrics", token=limited) == (403, "out_of_reach")
    publisher = served.key(Scope.PUBLISH)
    assert served.refused("GET", "/metrics", token=publisher) == (403, "scope_too_small")
    assert served.ask("GET", "/metrics", token=served.key(Scope.READ)).status_code == 200


@pytest.fixture
def lite(inside: Store) -> SqliteStore:
    if not isinstance(inside, SqliteStore):
        pytest.skip("plans of SQLite")
    return inside


@pytest.mark.parametrize(
    "statement",
    [
        queue.SELECT_WAITING_SINCE,
        queue.COUNT_OUTGOING_BY_CHANNEL,
        queue.COUNT_DEAD_AND_HELD,
        lanes.SELECT_LANES,
    ],
)
def test_a_scrape_reads_no_table_of_messages(
    lite: SqliteStore, statement: Statement[object]
) -> None:
    with lite.engine.connect() as connection:
        rows = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement.text['sqlite']}")
        plan = "\n".join(str(row[3]) for row in rows)
    for table in ("messages", "responses"):
        assert not re.search(rf"SCAN {table}(?! USING)", plan), plan
