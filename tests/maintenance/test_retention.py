"""What is kept for so long, and no longer."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from sqlalchemy import Table, insert

from bullpen.core.clock import DAY, HOUR, SECOND
from bullpen.core.events.append import append_event
from bullpen.core.events.company import AgentAdded
from bullpen.core.events.tail import EventTail
from bullpen.core.maintenance.retention import BATCH_ROWS, run_retention
from bullpen.core.maintenance.unused_files import delete_unused_files
from bullpen.core.models import (
    AGENT_MESSAGES,
    ATTEMPTS,
    BEATS,
    CHAT_MESSAGES,
    DEATH_CAUSES,
    EVENTS,
    MESSAGES,
    MESSAGES_ARCHIVE,
    RESPONSES,
    RESPONSES_ARCHIVE,
    SCHEDULE_RUNS,
)
from bullpen.core.states import ResponseState
from bullpen.core.store.base import Store
from tests.conformance.verbs import done, lane, rows, send, take
from tests.outbox.outgoing import answer, put_into
from tests.stores import FakeClock, Stores

DAYS = 5


@dataclass(frozen=True)
class Kept:
    """A table whose rows are kept for so many days."""

    table: Table
    at: str
    setting: str
    job: str
    row: Mapping[str, object]


ATTEMPT = {
    **dict.fromkeys(("agent", "worker", "outcome", "conversation_id", "channel"), "x"),
    **dict.fromkeys(("messages", "retry_count", "input_tokens", "output_tokens", "hop"), 0),
    **dict.fromkeys(("enqueued_at", "claimed_at", "started_at"), 0),
    **{"message_id": "m", "cost": 0.0},
}
SAID = dict.fromkeys(("agent_id", "role", "channel", "sender", "message_id", "content"), "x")
POSTED = dict.fromkeys(("team_id", "from_agent", "message"), "x")

KEPT = {
    "events": Kept(EVENTS, "created_at", "event_days", "events", {"type": "x"}),
    "attempts": Kept(ATTEMPTS, "finished_at", "attempt_days", "attempts", ATTEMPT),
    "said": Kept(AGENT_MESSAGES, "created_at", "history_days", "history", SAID),
    "posted": Kept(CHAT_MESSAGES, "created_at", "history_days", "history", POSTED),
    "runs": Kept(
        *(SCHEDULE_RUNS, "fired_at", "schedule_days", "due_times"),
        {"schedule_id": "s", "outcome": "x", "times": 1},
    ),
    "beats": Kept(BEATS, "fired_at", "schedule_days", "due_times", {"agent": "a", "outcome": "x"}),
}


@pytest.fixture(params=KEPT)
def kept(request: pytest.FixtureRequest) -> Kept:
    """Each of them."""
    return KEPT[request.param]


@pytest.fixture
def store(
    stores: Stores, kind: str, clock: FakeClock, request: pytest.FixtureRequest
) -> Iterator[Store]:
    """An empty store that keeps everything for five days."""
    names = ("archive", "history", "event", "attempt", "schedule", "file")
    settings = stores.settings(kind, **{f"{name}_days": DAYS for name in names})
    with stores.opened(settings, clock) as opened:
        yield opened


def fill(store: Store, kept: Kept, times: list[int]) -> None:
    """A row for each of these moments."""
    unique = kept.table is BEATS
    with store.engine.begin() as connection:
        connection.execute(
            insert(kept.table),
            [
                {**kept.row, kept.at: at, **({"due_at": number} if unique else {})}
                for number, at in enumerate(times)
            ],
        )


def moments(store: Store, kept: Kept) -> list[int]:
    """When the rows that are left are of."""
    return sorted(int(str(row[kept.at])) for row in rows(store, kept.table))


def test_a_row_goes_when_its_days_are_over_and_not_before(
    store: Store, clock: FakeClock, kept: Kept
) -> None:
    start = clock.now()
    fill(store, kept, [start, start + HOUR, start + 2 * HOUR])
    clock.advance(DAYS * DAY - 1)
    run_retention(store, kept.job)
    assert len(moments(store, kept)) == 3
    clock.advance(1)
    run_retention(store, kept.job)
    assert moments(store, kept) == [start + HOUR, start + 2 * HOUR]
    clock.advance(HOUR)
    run_retention(store, kept.job)
    assert moments(store, kept) == [start + 2 * HOUR]


def test_the_newest_row_stays_so_that_its_id_is_never_given_again(
    store: Store, clock: FakeClock, kept: Kept
) -> None:
    start = clock.now()
    fill(store, kept, [start, start])
    (_, newest) = sorted(int(str(row["id"])) for row in rows(store, kept.table))
    clock.advance(100 * DAY)
    run_retention(store, kept.job)
    run_retention(store, kept.job)
    assert [row["id"] for row in rows(store, kept.table)] == [newest]


def test_many_rows_go_in_batches_until_none_is_left(
    store: Store, clock: FakeClock, kept: Kept
) -> None:
    start = clock.now()
    fill(store, kept, [start] * (2 * BATCH_ROWS + 1) + [start + DAYS * DAY])
    clock.advance(DAYS * DAY)
    assert str(2 * BATCH_ROWS + 1) in run_retention(store, kept.job)
    assert moments(store, kept) == [start + DAYS * DAY]


def test_a_row_of_a_wrong_clock_does_not_keep_those_behind_it(
    store: Store, clock: FakeClock, kept: Kept
) -> None:
    start = clock.now()
    fill(store, kept, [start + 50 * DAY, start, start])
    clock.advance(DAYS * DAY)
    run_retention(store, kept.job)
    assert moments(store, kept) == [start, start + 50 * DAY]


def test_zero_is_for_ever(stores: Stores, clock: FakeClock, store: Store, kept: Kept) -> None:
    fill(store, kept, [clock.now()] * 3)
    clock.advance(10_000 * DAY)
    settings = replace(store.settings, **{kept.setting: 0})  # type: ignore[arg-type]
    with stores.opened(settings, clock) as opened:
        assert run_retention(opened, kept.job) == "kept forever"
        assert len(moments(opened, kept)) == 3


def test_archived_messages_and_responses_go_in_their_time(store: Store, clock: FakeClock) -> None:
    lane(store)
    send(store, message_id="api_1")
    done(store, take(store).token)
    put_into(store, ResponseState.ACKED)
    answer(store, "slack_newest")
    clock.advance(DAY)
    run_retention(store, "archive")
    assert (len(rows(store, MESSAGES_ARCHIVE)), len(rows(store, RESPONSES_ARCHIVE))) == (1, 1)
    clock.advance((DAYS - 1) * DAY - 1)
    assert run_retention(store, "archived") == "0 messages, 0 responses deleted"
    clock.advance(1)
    assert run_retention(store, "archived") == "1 message, 1 response deleted"
    assert (len(rows(store, MESSAGES_ARCHIVE)), len(rows(store, RESPONSES_ARCHIVE))) == (0, 0)


def test_many_archived_messages_go_in_batches(store: Store, clock: FakeClock) -> None:
    lane(store)
    send(store)
    done(store, take(store).token)
    (row,) = rows(store, MESSAGES)
    with store.engine.begin() as connection:
        connection.execute(
            insert(MESSAGES_ARCHIVE),
            [{**row, "id": number, "message_id": f"m{number}"} for number in range(10, 1110)],
        )
    clock.advance(DAYS * DAY)
    assert run_retention(store, "archived") == "1100 messages, 0 responses deleted"


def test_the_archive_is_kept_for_ever_if_it_is_to_be(
    stores: Stores, store: Store, clock: FakeClock
) -> None:
    lane(store)
    send(store)
    done(store, take(store).token)
    clock.advance(DAY)
    run_retention(store, "archive")
    clock.advance(10_000 * DAY)
    with stores.opened(replace(store.settings, archive_days=0), clock) as opened:
        assert run_retention(opened, "archived") == "kept forever"
        assert len(rows(opened, MESSAGES_ARCHIVE)) == 1


def test_a_cause_of_death_is_forgotten_with_the_events_of_its_time(
    store: Store, clock: FakeClock
) -> None:
    cause = {"kind": "x", "error": "x", "deaths": 1, "first_at": 0, "told_at": None}
    with store.engine.begin() as connection:
        connection.execute(
            insert(DEATH_CAUSES),
            [
                {**cause, "fingerprint": "old", "last_at": clock.now()},
                {**cause, "fingerprint": "new", "last_at": clock.now() + 1},
            ],
        )
    clock.advance(DAYS * DAY)
    assert run_retention(store, "events") == "0 events, 1 failure cause deleted"
    assert [row["fingerprint"] for row in rows(store, DEATH_CAUSES)] == ["new"]


def test_a_reader_whose_place_was_deleted_goes_on_with_what_is_left(
    store: Store, clock: FakeClock
) -> None:
    def happen(name: str) -> None:
        with store.write() as tx:
            append_event(tx, AgentAdded(agent=name))

    happen("old")
    tail = EventTail(store, position=0)
    happen("old too")
    clock.advance(DAYS * DAY)
    happen("new")
    assert run_retention(store, "events").startswith("2 events")
    assert [each.agent for each in tail.read()] == ["new"]


@pytest.fixture
def directory(store: Store) -> Path:
    """Where files lie."""
    store.settings.files.mkdir()
    return store.settings.files


def put(directory: Path, name: str, clock: FakeClock, age: int) -> Path:
    """A file that was stored so long ago."""
    path = directory / name
    path.write_bytes(b"12345")
    at = (clock.now() - age) / SECOND
    os.utime(path, (at, at))
    return path


def test_files_that_nothing_names_go_in_their_time(
    store: Store, clock: FakeClock, directory: Path
) -> None:
    old = put(directory, "old.txt", clock, DAYS * DAY)
    new = put(directory, "new.txt", clock, DAYS * DAY - SECOND)
    hidden = put(directory, ".hidden", clock, 2 * DAYS * DAY)
    (directory / "link").symlink_to(new)
    assert delete_unused_files(store) == "1 file deleted (5 bytes); 0 old but in use"
    assert not old.exists()
    assert new.exists()
    assert hidden.exists()
    assert (directory / "link").is_symlink()


def test_a_file_that_a_message_or_a_response_names_stays(
    store: Store, clock: FakeClock, directory: Path
) -> None:
    sent, answered = (put(directory, name, clock, 9 * DAY) for name in ("sent.txt", "é 1.txt"))
    free = put(directory, "free.txt", clock, 9 * DAY)
    lane(store)
    send(store, files=(str(sent),))
    answer(store, "slack_1")
    with store.engine.begin() as connection:
        connection.execute(RESPONSES.update().values(files=f'["{answered}"]'))
    assert delete_unused_files(store) == "1 file deleted (5 bytes); 2 old but in use"
    assert sent.exists()
    assert answered.exists()
    assert not free.exists()
    done(store, take(store).token)
    clock.advance(DAY)
    run_retention(store, "archive")
    delete_unused_files(store)
    assert not sent.exists()


def test_files_are_kept_for_ever_if_they_are_to_be(
    stores: Stores, store: Store, clock: FakeClock, directory: Path
) -> None:
    old = put(directory, "old.txt", clock, 9_000 * DAY)
    with stores.opened(replace(store.settings, file_days=0), clock) as opened:
        assert delete_unused_files(opened) == "kept forever"
    assert old.exists()


def test_a_home_without_files_has_none_to_delete(store: Store) -> None:
    assert delete_unused_files(store).startswith("0 files deleted")
