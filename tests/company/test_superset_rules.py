"""What a system that replaces TinyAGI must do better, each rule a test of its name."""

from __future__ import annotations

import pytest

from bullpen.core.intake import submit
from bullpen.core.message import NewMessage
from bullpen.core.models import AGENT_MESSAGES, ATTEMPTS, MESSAGES
from bullpen.core.outbox.delivery import begin_part
from bullpen.core.outbox.leases import lease_responses
from bullpen.core.queue.enqueue import enqueue_many
from bullpen.core.queue.manage import cancel
from bullpen.core.roster.teams import Team, add_team
from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from tests.company.office import living, log_of, processors, wait_until_over, write
from tests.conformance.verbs import (
    do,
    events,
    hire,
    lane_row,
    message,
    responses,
    rows,
    status,
    statuses,
)
from tests.crash.processors import wait_for_workers
from tests.processor.working import eventually, processing
from tests.stores import Stores

BACKLOG = 100_000
"""TinyAGI breaks at 32 767 waiting messages of one agent."""


@pytest.mark.one_store
def test_rule_1_a_command_line_that_fails_is_tried_again_then_dead_and_never_completed(
    settings: Settings, store: Store
) -> None:
    hire(store, "coder", provider="claude")
    asked = write(store, "@coder !exit 3")
    with processors(settings, retry_base_seconds=0, max_attempts=5):
        assert wait_until_over(store) == {"dead": 1}
    row = message(store, asked)
    assert (row["retry_count"], row["crash_count"], row["error_kind"]) == (5, 0, "retryable")
    assert "status 3: told to fail" in row["last_error"]
    assert [each["outcome"] for each in rows(store, ATTEMPTS)] == ["failed"] * 5
    (told,) = responses(store)
    assert "could not answer" in told["message"]


# Rule 2 is tests/company/test_kills.py.


@pytest.mark.one_store
def test_rule_3_an_empty_answer_is_tried_again_and_seen(settings: Settings, store: Store) -> None:
    hire(store, "coder", provider="claude")
    asked = write(store, "@coder !empty")
    with processors(settings, retry_base_seconds=0):
        assert wait_until_over(store) == {"dead": 1}
    assert message(store, asked)["retry_count"] == 5
    (told,) = responses(store)
    assert "answer is empty" in told["message"]


@pytest.mark.slow
@pytest.mark.one_store
def test_rule_4_a_backlog_of_one_agent_drains(stores: Stores, kind: str) -> None:
    settings = stores.settings(kind, claim_limit=2000, durability="fast")
    with stores.opened(settings) as store:
        hire(store, "coder")
        for start in range(0, BACKLOG, 2000):
            texts = [f"{number}" for number in range(start, min(BACKLOG, start + 2000))]
            with store.write() as tx:
                enqueue_many(tx, [NewMessage(agent="coder", message=each) for each in texts])
        assert lane_row(store, "coder")["pending"] == BACKLOG
        with processing(store):
            eventually(lambda: lane_row(store, "coder")["pending"] == 0, "claimed", 200)
            eventually(lambda: lane_row(store, "coder")["claim_token"] is None, "done")
        assert statuses(store) == {"completed": BACKLOG}


def test_rule_5_one_live_run_of_an_agent_across_processes_and_whatever_it_is_called(
    settings: Settings, store: Store
) -> None:
    hire(store, "coder", provider="claude", name="The Coder")
    hire(store, "other", provider="claude")
    with store.write() as tx:
        add_team(tx, Team(id="dev", name="Builders", leader="coder", members=("coder", "other")))
    with processors(settings, 2):
        wait_for_workers(store, 2)
        for number in range(6):
            for name in ("coder", "The Coder", "dev", "Builders", "CODER"):
                write(store, f"@{name}: !sleep 0.02\n!say {number}", sender_id=f"{name}{number}")
        assert set(wait_until_over(store)) == {"completed"}
    assert {row["agent"] for row in rows(store, MESSAGES)} == {"coder"}
    log = log_of(settings)
    assert [line for line in log if line[2] == "overlap"] == []
    assert len([line for line in log if line[2] == "began"]) >= 2


@pytest.mark.one_store
def test_rule_6_a_kill_ends_one_message_and_nothing_else(settings: Settings, store: Store) -> None:
    for agent in ("coder", "other"):
        hire(store, agent, provider="claude")
    with processors(settings) as made:
        running = write(store, "@coder !tool\n!wait", sender_id="u1")
        beside = write(store, "@other !wait", sender_id="u1")
        eventually(lambda: len([x for x in log_of(settings) if x[2] == "waits"]) == 2, "both run")
        waiting = write(store, "@coder !say never", sender_id="u2")
        next_ = write(store, "@coder !say next", sender_id="u3")
        do(store, cancel, waiting)
        assert status(store, running) == "processing"
        before = len(living(settings))
        do(store, cancel, running)
        eventually(lambda: status(store, next_) == "completed", "the next one runs")
        assert status(store, beside) == "processing"
        assert len(living(settings)) < before
        do(store, cancel, beside)
        eventually(lambda: living(settings) == [], "all are ended")
        made.stop()
    assert [status(store, each) for each in (running, waiting, beside)] == ["cancelled"] * 3
    assert message(store, running)["retry_count"] == 0
    assert [row["message"] for row in responses(store)] == ["next"]
    assert [line for line in log_of(settings) if line[2] == "overlap"] == []


def test_rule_7_the_hop_limit_ends_a_ping_pong_with_a_notice(
    settings: Settings, store: Store
) -> None:
    """Each answers what it is told with the same for the other: nobody but the limit ends it."""
    hire(store, "ping")
    hire(store, "pong")
    again = "!say [@pong: !say [@ping: {}]]"
    text = "!say over"
    for _ in range(20):
        text = again.replace("{}", text)
    asked = write(store, f"@ping {text}")
    with processors(settings):
        found = wait_until_over(store)
    assert found["held"] == 1
    assert found["completed"] == 1 + store.settings.max_hops
    (held,) = (row for row in rows(store, MESSAGES) if row["status"] == "held")
    assert held["hop"] == store.settings.max_hops + 1
    (notice,) = (each for each in responses(store) if "to other agents are held" in each["message"])
    assert f"bullpen queue resume --conversation {asked}" in notice["message"]
    assert f"bullpen queue cancel --conversation {asked}" in notice["message"]


def test_rule_7_a_room_that_answers_itself_stops_at_the_limit(
    settings: Settings, store: Store
) -> None:
    hire(store, "a")
    hire(store, "b")
    with store.write() as tx:
        add_team(tx, Team(id="dev", leader="a", members=("a", "b"), max_hops=100))
    text = "over"
    for _ in range(200):
        text = f"!say [#dev: {text}]"
    write(store, f"[#dev: {text}]")
    with processors(settings):
        found = wait_until_over(store)
    assert found["held"] >= 1
    assert found["completed"] <= store.settings.max_messages
    notices = [each for each in responses(store) if "to other agents are held" in each["message"]]
    assert len(notices) == 1
    assert (notices[0]["channel"], notices[0]["sender"]) == ("cli", "owner")


@pytest.mark.one_store
def test_rule_8_two_tags_to_one_agent_both_arrive_and_a_stray_bracket_loses_nothing(
    settings: Settings, store: Store
) -> None:
    hire(store, "lead", provider="claude")
    hire(store, "coder", provider="claude")
    answer = "!say [@coder: use [a-z to match] [@coder: !say two] and [nothing is lost"
    write(store, f"@lead {answer}")
    with processors(settings, retry_base_seconds=0, max_attempts=1):
        wait_until_over(store)
    told = [row["message"] for row in rows(store, MESSAGES) if row["from_agent"] == "lead"]
    assert len(told) == 2
    assert told[0].endswith("use [a-z to match")
    assert told[1].endswith("!say two")
    assert all("and [nothing is lost" in each for each in told)
    shown = responses(store)[0]["message"]
    assert "@lead → @coder: use [a-z to match" in shown
    assert "and [nothing is lost" in shown


def test_rule_9_an_answer_that_comes_while_another_is_delivered_is_sent_within_one_poll(
    settings: Settings, store: Store
) -> None:
    hire(store, "coder")
    with processors(settings):
        do(store, submit, _from_ann("@coder !say one"))
        eventually(lambda: len(responses(store)) == 1, "the first answer")
        with store.write() as tx:
            (first,) = lease_responses(tx, "slack", "client")
            assert first.claim_token is not None
            begin_part(tx, first.claim_token)
        do(store, submit, _from_ann("@coder !say two"))
        eventually(lambda: len(responses(store)) == 2, "the second answer")
        with store.write() as tx:
            (second,) = lease_responses(tx, "slack", "client")
    assert second.message == "two"


def _from_ann(text: str) -> NewMessage:
    return NewMessage(agent="", message=text, channel="slack", sender="Ann", sender_id="U1")


def test_rule_15_a_file_outside_of_the_allowed_directories_is_refused_and_both_are_told(
    settings: Settings, store: Store
) -> None:
    hire(store, "coder", provider="claude")
    secret = settings.home / "secret.txt"
    secret.write_text("a secret")
    write(store, f"@coder !say here it is [send_file: {secret}]")
    with processors(settings):
        wait_until_over(store)
        (response,) = responses(store)
        assert response["files"] is None
        assert "was not sent" in response["message"]
        (event,) = events(store, "file_refused")
        assert str(secret) in event["data"]
        write(store, "@coder !say again")
        wait_until_over(store)
    notes = [row for row in rows(store, AGENT_MESSAGES) if row["role"] == "note"]
    assert [str(secret) in row["content"] for row in notes] == [True]
