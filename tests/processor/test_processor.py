"""The processor answers, so many at once, and stops as it should."""

from __future__ import annotations

import logging
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from bullpen.core.answers.leases import expire_leases
from bullpen.core.logs import JsonFormatter, TextFormatter
from bullpen.core.message import ErrorKind, Failure, Usage
from bullpen.core.models import ATTEMPTS, WORKERS
from bullpen.core.queue.lanes import Batching, LanePolicy
from bullpen.core.queue.manage import cancel
from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from bullpen.core.store.sqlite import SqliteStore
from bullpen.processor.children.child import Stop
from bullpen.processor.providers.base import Reply, ReportProgress, RunRequest
from bullpen.processor.providers.command_line import CliProvider
from tests.conformance.verbs import (
    do,
    events,
    hire,
    lane,
    lane_row,
    message,
    responses,
    rows,
    send,
    status,
    statuses,
    take,
)
from tests.processor.turns import CLAUDE, Place
from tests.processor.working import (
    SOON,
    Scripted,
    child,
    environ,
    eventually,
    output,
    processing,
)
from tests.stores import Stores


@pytest.fixture
def settings(stores: Stores, kind: str) -> Settings:
    """A home with a fresh database, where runs get a moment's grace."""
    return stores.settings(kind, grace_seconds=1, max_runs=3)


@pytest.fixture
def store(stores: Stores, settings: Settings) -> Iterator[Store]:
    """An empty store on the machine's own time."""
    with stores.opened(settings) as opened:
        yield opened


def completed(store: Store, count: int) -> None:
    """Wait until so many messages are completed."""
    eventually(lambda: statuses(store).get("completed") == count, f"{count} completed")


def test_each_message_is_logged_when_its_run_begins_and_when_it_ends(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    hire(store)
    hire(store, "broken")
    send(store, "a secret wish", message_id="api_1")
    send(store, "!fail permanent", agent="broken", message_id="api_2")
    with caplog.at_level(logging.INFO), processing(store):
        completed(store, 1)
        eventually(lambda: statuses(store).get("dead") == 1, "the other is dead")
        eventually(lambda: "@broken failed api_2" in caplog.text, "it is logged")
    lines = [TextFormatter().format(each) for each in caplog.records]
    assert any("[INFO]" in line and "begins api_1 (api)" in line for line in lines)
    assert any("[INFO]" in line and "\u2713 @coder answered api_1" in line for line in lines)
    assert any("[WARN]" in line and "api_2" in line for line in lines)
    assert "a secret wish" not in caplog.text


def test_the_log_line_of_a_run_has_its_provider_time_cost_and_error(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    hire(store)
    hire(store, "broken")
    send(store, "!usage 7 0.25", message_id="api_1")
    send(store, "!fail permanent", agent="broken", message_id="api_2")
    with caplog.at_level(logging.INFO), processing(store):
        eventually(lambda: "failed api_2" in caplog.text, "a failure is logged")
        eventually(lambda: "answered api_1" in caplog.text, "a success is logged")
    for formatter in (JsonFormatter(), TextFormatter()):
        lines = [formatter.format(each) for each in caplog.records]
        (answered,) = (line for line in lines if "answered api_1" in line)
        (failed,) = (line for line in lines if "failed api_2" in line)
        for text in ("provider", "echo", "seconds", "tokens", "7", "cost", "0.25"):
            assert text in answered, (text, answered)
        assert "permanent" in failed


def test_an_attempt_whose_program_is_missing_names_its_provider(store: Store) -> None:
    class Missing:
        def run(self, request: RunRequest, stop: Stop, report: ReportProgress) -> Failure:
            return Failure(kind=ErrorKind.SETUP, error="claude is not installed")

    hire(store, provider="claude", model="opus")
    send(store)
    with processing(store, Missing()):
        eventually(lambda: rows(store, ATTEMPTS) != [], "the run has failed")
    (attempt,) = rows(store, ATTEMPTS)
    assert (attempt["provider"], attempt["model"]) == ("claude", "opus")
    assert attempt["worker"].startswith("processor_")


def test_messages_that_wait_and_messages_that_come_are_answered(store: Store) -> None:
    hire(store)
    send(store, "early", message_id="api_1")
    with processing(store):
        completed(store, 1)
        send(store, "late", message_id="api_2")
        completed(store, 2)
    assert [row["message"] for row in responses(store)] == ["early", "late"]


def test_it_enters_the_register_and_the_record_and_leaves_both_in_order(store: Store) -> None:
    with processing(store) as processor:
        (row,) = rows(store, WORKERS)
        assert (row["id"], row["kind"]) == (processor.worker, "processor")
    assert rows(store, WORKERS) == []
    assert [row["type"] for row in events(store)] == ["processor_start", "processor_stop"]


def test_it_never_runs_more_at_once_than_it_may(store: Store) -> None:
    for number in range(8):
        send(store, agent=hire(store, f"a{number}"))
    provider = Scripted()
    with processing(store, provider):
        eventually(lambda: provider.running == 3, "three run")
        assert statuses(store) == {"processing": 3, "pending": 5}
        provider.let_go.set()
        completed(store, 8)
    assert provider.most == 3
    assert len(provider.turns) == 8


def test_one_agent_has_one_run_at_a_time(store: Store) -> None:
    hire(store)
    for number in range(4):
        send(store, f"{number}", sender_id=f"U{number}")
    provider = Scripted()
    provider.let_go.set()
    with processing(store, provider):
        completed(store, 4)
    assert provider.most == 1
    assert len(provider.turns) == 4


def test_two_processors_share_the_work_and_answer_each_once(stores: Stores, store: Store) -> None:
    for number in range(10):
        send(store, f"{number}", agent=hire(store, f"a{number}"))
    with (
        processing(store),
        stores.opened(store.settings) as second,
        processing(second),
    ):
        completed(store, 10)
    assert sorted(row["message"] for row in responses(store)) == [f"{n}" for n in range(10)]


def test_a_run_that_raises_is_a_retryable_failure_that_says_why(store: Store) -> None:
    hire(store)
    send(store, message_id="api_1")
    provider = Scripted()
    provider.result = ZeroDivisionError("by a mistake")
    provider.let_go.set()
    with processing(store, provider):
        eventually(lambda: message(store, "api_1")["retry_count"] >= 1, "it failed")
    row = message(store, "api_1")
    assert row["error_kind"] == "retryable"
    assert row["last_error"] == "ZeroDivisionError: by a mistake"
    assert row["crash_count"] == 0


OUTCOMES: dict[str, Reply | Failure] = {
    "too many tokens": Reply(text="a", usage=Usage(output_tokens=10**30)),
    "no number": Reply(text="a", usage=Usage(cost=float("nan"))),
    "an error with a NUL": Failure(kind=ErrorKind.PERMANENT, error="a\0b"),
}


@pytest.mark.parametrize("what", OUTCOMES)
def test_an_outcome_that_cannot_be_stored_is_a_failed_run_not_a_crash(
    store: Store, what: str
) -> None:
    hire(store)
    send(store, message_id="api_1")
    provider = Scripted()
    provider.result = OUTCOMES[what]
    provider.let_go.set()
    with processing(store, provider):
        eventually(lambda: rows(store, ATTEMPTS) != [], "it ended")
    assert message(store, "api_1")["crash_count"] == 0


TEXTS = {"a NUL": "a\0b", "half a surrogate pair": "a\ud800b", "too long": "x" * (2 << 20)}


@pytest.mark.parametrize("what", TEXTS)
def test_an_answer_that_no_database_can_keep_is_mended_and_sent(store: Store, what: str) -> None:
    hire(store)
    send(store, message_id="api_1")
    provider = Scripted()
    provider.result = Reply(text=TEXTS[what])
    provider.let_go.set()
    with processing(store, provider):
        completed(store, 1)
    (response,) = responses(store)
    assert response["message"][0] == TEXTS[what][0]


def test_a_lane_without_an_agent_is_paused_and_the_owner_told(store: Store) -> None:
    lane(store)
    send(store, message_id="api_1")
    with processing(store):
        eventually(lambda: lane_row(store)["state"] == "paused", "it is paused")
    assert status(store, "api_1") == "pending"
    (told,) = responses(store)
    assert "agent 'coder' does not exist" in told["message"]


def test_with_one_run_at_a_time_every_agent_has_its_turn(stores: Stores, kind: str) -> None:
    """One agent's backlog does not keep the others waiting."""
    settings = stores.settings(kind, max_runs=1)
    with stores.opened(settings) as store:
        hire(store, "busy", LanePolicy(batching=Batching.ONE))
        hire(store, "other")
        for number in range(20):
            send(store, f"{number}", agent="busy")
        send(store, "me too", agent="other")
        with processing(store):
            completed(store, 21)
        order = [row["agent"] for row in rows(store, ATTEMPTS)]
        assert order.index("other") <= 1


def test_a_long_run_is_renewed_and_never_taken_for_dead(stores: Stores, kind: str) -> None:
    settings = stores.settings(kind, lease_seconds=1)
    provider = Scripted()
    with stores.opened(settings) as store, processing(store, provider):
        hire(store)
        send(store, message_id="api_1")
        eventually(lambda: len(provider.turns) == 1, "it runs")
        for _ in range(2):
            until = lane_row(store)["lease_expires_at"]
            eventually(lambda until=until: lane_row(store)["lease_expires_at"] > until, "renewed")  # type: ignore[misc]
        provider.let_go.set()
        completed(store, 1)
        row = message(store, "api_1")
        assert (row["crash_count"], row["retry_count"]) == (0, 0)
        assert [each["message"] for each in responses(store)] == ["done"]
        assert [each["outcome"] for each in rows(store, ATTEMPTS)] == ["completed"]


def lose(store: Store, how: str) -> None:
    """Let the claim on api_1 be lost."""
    if how == "cancelled":
        do(store, cancel, "api_1")
        return
    store.clock = _Later()
    with store.write() as tx:
        assert expire_leases(tx) == 1


class _Later:
    def now(self) -> int:
        """An hour from now."""
        return time.time_ns() // 1_000_000 + 3_600_000

    def monotonic(self) -> int:
        return time.monotonic_ns() // 1_000_000


@pytest.mark.parametrize("how", ["cancelled", "reaped"])
def test_a_run_whose_claim_was_lost_is_stopped_and_its_output_dropped(
    stores: Stores, kind: str, how: str
) -> None:
    settings = stores.settings(kind, lease_seconds=3, grace_seconds=1)
    provider = Scripted()
    with (
        stores.opened(settings) as store,
        stores.opened(settings) as other,
        processing(store, provider),
    ):
        hire(other)
        send(other, message_id="api_1")
        eventually(lambda: len(provider.turns) == 1, "it runs")
        lose(other, how)
        eventually(lambda: len(provider.stopped) >= 1, "it is stopped")
        assert provider.stopped[0] == provider.turns[0]
        assert responses(other) == []


def test_the_output_of_a_lost_claim_is_dropped_even_if_the_run_did_not_stop(store: Store) -> None:
    hire(store)
    send(store, message_id="api_1")
    provider = Scripted()
    with processing(store, provider):
        eventually(lambda: len(provider.turns) == 1, "it runs")
        do(store, cancel, "api_1")
        provider.let_go.set()
        eventually(lambda: provider.running == 0, "it ended")
    assert status(store, "api_1") == "cancelled"
    assert responses(store) == []


def test_a_stop_lets_runs_end_within_their_grace(stores: Stores, kind: str) -> None:
    settings = stores.settings(kind, grace_seconds=30)
    with stores.opened(settings) as store:
        hire(store)
        send(store, "!sleep 1\n!say in time", message_id="api_1")
        with processing(store):
            eventually(lambda: status(store, "api_1") != "pending", "it runs")
        assert status(store, "api_1") == "completed"


def test_a_program_is_asked_to_end_when_its_grace_is_over_and_has_time_for_it(
    stores: Stores, kind: str, place: Place
) -> None:
    settings = stores.settings(kind, grace_seconds=0)
    place.program(
        "claude",
        "trap 'sleep 0.2; echo asked > $here/ended; exit 0' INT\n"
        "echo ready > $here/ready\nwhile :; do sleep 0.05; done\n",
    )
    line = CliProvider(CLAUDE, place.launcher, settings, place.environ)
    with stores.opened(settings) as store:
        hire(store)
        send(store, message_id="api_1")
        with processing(store, line):
            eventually((place.path / "ready").exists, "it runs")
        assert (place.path / "ended").read_text() == "asked\n"
        row = message(store, "api_1")
        assert (row["status"], row["retry_count"], row["crash_count"]) == ("pending", 0, 0)


class Commits:
    """The transactions that a SQLite store commits, with what each waits for."""

    def __init__(self, store: SqliteStore) -> None:
        self._level = 2
        self._statements: list[str] = []
        self.done: list[tuple[int, str]] = []
        store.writer().set_trace_callback(self._trace)

    def _trace(self, sql: str) -> None:
        if found := re.fullmatch(r"PRAGMA synchronous = (\d)", sql):
            self._level = int(found[1])
        elif sql.startswith("BEGIN"):
            self._statements = []
        elif sql == "COMMIT":
            self.done.append((self._level, "\n".join(self._statements)))
        else:
            self._statements.append(sql)

    def of(self, table: str) -> list[int]:
        """How the commits that write into this table waited: 2 is for the disk."""
        return [level for level, text in self.done if f"INSERT INTO {table} " in text]


@pytest.mark.parametrize("kind", ["sqlite"])
def test_the_end_of_a_run_waits_for_the_disk(store: Store) -> None:
    """Else a power cut takes back an answer that was delivered, and the run is made again."""
    assert isinstance(store, SqliteStore)
    commits = Commits(store)
    hire(store)
    hire(store, "broken")
    hire(store, "slow")
    send(store, "!say done")
    send(store, "!fail permanent", agent="broken")
    with processing(store):
        completed(store, 1)
        eventually(lambda: statuses(store).get("dead") == 1, "one is dead")
    with processing(store, Scripted()):
        send(store, agent="slow")
        eventually(lambda: statuses(store).get("processing") == 1, "it runs")
    outcomes = {row["outcome"] for row in rows(store, ATTEMPTS)}
    assert outcomes == {"completed", "failed", "released"}
    assert commits.of("attempts") == [2, 2, 2]
    assert 1 in {level for level, _ in commits.done}, "a claim waits for no disk"


def test_a_stop_releases_what_does_not_end_and_counts_nothing(store: Store) -> None:
    hire(store)
    send(store, message_id="api_1")
    provider = Scripted()
    with processing(store, provider):
        eventually(lambda: len(provider.turns) == 1, "it runs")
    row = message(store, "api_1")
    assert (row["status"], row["retry_count"], row["crash_count"]) == ("pending", 0, 0)
    assert [each["outcome"] for each in rows(store, ATTEMPTS)] == ["released"]
    assert take(store).primary.message_id == "api_1"


def test_a_forgotten_processor_registers_again(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bullpen.core.background.LIVENESS_SECONDS", 0.05)
    with processing(store) as processor:
        first = processor.worker
        with store.engine.begin() as connection:
            connection.exec_driver_sql("DELETE FROM workers")
        eventually(lambda: len(rows(store, WORKERS)) == 1, "it is back")
        assert rows(store, WORKERS)[0]["id"] != first


def test_a_living_processor_keeps_its_place_in_the_register(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bullpen.core.background.LIVENESS_SECONDS", 0.02)
    with processing(store) as processor:
        (entered,) = rows(store, WORKERS)
        eventually(
            lambda: rows(store, WORKERS)[0]["heartbeat_at"] > entered["heartbeat_at"], "it beats"
        )
        assert [row["id"] for row in rows(store, WORKERS)] == [processor.worker] == [entered["id"]]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_process_with_its_runs_released_uncounted(
    store: Store, settings: Settings, number: signal.Signals
) -> None:
    hire(store)
    send(store, "!sleep 3600", message_id="api_1")
    with child(settings, BULLPEN_GRACE_SECONDS="1") as process:
        eventually(lambda: status(store, "api_1") == "processing", output(settings))
        process.send_signal(number)
        assert process.wait(SOON) == 0, output(settings)
    row = message(store, "api_1")
    assert (row["status"], row["retry_count"], row["crash_count"]) == ("pending", 0, 0)
    assert rows(store, WORKERS) == []
    assert "Traceback" not in output(settings)


def test_it_is_woken_by_another_process_and_not_only_by_its_poll(stores: Stores, kind: str) -> None:
    settings = stores.settings(kind, poll_seconds=300.0)
    with stores.opened(settings) as store:
        hire(store)
    # Another store, which has not looked yet who there is to wake.
    with stores.opened(settings) as store, child(settings, BULLPEN_POLL_SECONDS="300") as process:
        eventually(lambda: len(rows(store, WORKERS)) == 1, "it runs")
        eventually(lambda: "is ready" in output(settings), "it is ready")
        send(store, "hello", message_id="api_1")
        eventually(lambda: status(store, "api_1") == "completed", "answered")
        process.terminate()
        assert process.wait(SOON) == 0


HEARD_BY_ANOTHER_THREAD = """
import os, signal, threading, time
from bullpen.core.settings import Settings
from bullpen.core.store.open import open_store
from bullpen.processor.main import run

def kill():
    while signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        time.sleep(0.01)
    time.sleep(1)  # by then the main thread waits; if it does not yet, this asks for less
    signal.pthread_kill(threading.get_ident(), signal.SIGTERM)

threading.Thread(target=kill, daemon=True).start()
run(open_store(Settings.load(os.environ)))
"""


@pytest.mark.one_store
def test_a_signal_ends_it_even_if_the_main_thread_is_not_interrupted(settings: Settings) -> None:
    """As when it comes just before the main thread begins to wait."""
    command = [sys.executable, "-c", HEARD_BY_ANOTHER_THREAD]
    assert subprocess.run(command, env=environ(settings), timeout=SOON).returncode == 0
