"""Outside workers: whether there is work is asked before it is claimed, and a token is enough."""

from __future__ import annotations

from pathlib import Path

import pytest

from bullpen.core.answers.complete import complete
from bullpen.core.answers.leases import claim_for_worker, has_work
from bullpen.core.clock import SECOND
from bullpen.core.company import remove_agent
from bullpen.core.errors import BadText, StaleToken, UnknownAgent
from bullpen.core.message import ErrorKind, RunOutput
from bullpen.core.models import MESSAGES
from bullpen.core.queue.claim import get_claim, record_start
from bullpen.core.queue.fail import release
from bullpen.core.queue.lanes import pause_lane, resume_lane
from bullpen.core.queue.manage import cancel, hold, resume
from bullpen.core.roster.agents import HTTP, Agent, allowed_roots, get_provider_name
from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from tests.conformance.verbs import (
    do,
    dump,
    events,
    failed,
    hire,
    message,
    responses,
    rows,
    send,
    status,
)
from tests.stores import FakeClock

AGENT = "remote"


@pytest.fixture(autouse=True)
def agent(store: Store) -> str:
    """An agent that is left to outside workers, and another one."""
    hire(store, "other", provider=HTTP)
    return hire(store, AGENT, provider=HTTP)


def there_is(store: Store, agent: str = AGENT) -> bool:
    """Whether there is work, looked at without writing anything."""
    before = dump(store)
    with store.read() as tx:
        found = has_work(tx, agent)
    assert dump(store) == before
    return found


def took(store: Store, lease: int | None = None) -> str | None:
    """Claim what there is; gives the token. If something is there, it was said to be."""
    said = there_is(store)
    with store.write(durable=False) as tx:
        found = claim_for_worker(tx, "w-1", AGENT, lease=lease)
    assert said or found is None
    return None if found is None else found.token


def token(store: Store, lease: int | None = None) -> str:
    """Claim what must be there."""
    found = took(store, lease)
    assert found is not None
    return found


def test_there_is_work_when_something_can_be_claimed_and_only_then(store: Store) -> None:
    assert not there_is(store)
    sent = send(store, agent=AGENT)
    assert there_is(store)
    assert not there_is(store, "other")
    do(store, pause_lane, AGENT, "lunch")
    assert not there_is(store)
    do(store, resume_lane, AGENT)
    do(store, hold, sent, "wait")
    assert not there_is(store)
    do(store, resume, sent)
    claim = token(store)
    assert not there_is(store)
    assert took(store) is None
    do(store, release, claim)
    assert there_is(store)


def test_what_becomes_due_is_work(store: Store, clock: FakeClock) -> None:
    send(store, agent=AGENT, delay=5_000)
    assert not there_is(store)
    clock.advance(5_000)
    assert there_is(store)
    claim = token(store)
    failed(store, claim, ErrorKind.RATE_LIMIT, retry_after=7_000)
    assert not there_is(store)
    clock.advance(7_000)
    assert there_is(store)
    claim = token(store)
    failed(store, claim, retry_after=9_000)
    assert took(store) is None
    clock.advance(9_000)
    assert token(store)


def test_what_a_worker_left_behind_is_work_when_its_lease_is_over(
    store: Store, clock: FakeClock
) -> None:
    sent = send(store, agent=AGENT)
    stale = token(store, lease=10 * SECOND)
    clock.advance(10 * SECOND - 1)
    assert not there_is(store)
    assert took(store) is None
    clock.advance(1)
    assert there_is(store)
    assert token(store, lease=10 * SECOND) != stale
    row = message(store, sent)
    assert (row["status"], row["crash_count"], row["retry_count"]) == ("processing", 1, 0)
    with store.read() as tx, pytest.raises(StaleToken):
        get_claim(tx, stale)


def test_another_agents_lease_is_left_to_the_upkeep(store: Store, clock: FakeClock) -> None:
    send(store, agent="other")
    with store.write() as tx:
        assert claim_for_worker(tx, "w-1", "other", lease=1) is not None
    clock.advance(1)
    assert took(store) is None
    assert status(store, rows(store, MESSAGES)[0]["message_id"]) == "processing"


def test_who_kills_its_worker_five_times_is_dead(
    store: Store, settings: Settings, clock: FakeClock
) -> None:
    sent = send(store, agent=AGENT)
    for _ in range(settings.max_crashes):
        assert took(store, lease=1) is not None
        clock.advance(1)
    assert took(store) is None
    assert status(store, sent) == "dead"


def test_an_agent_that_does_not_exist_has_no_work(store: Store) -> None:
    with store.read() as tx, pytest.raises(UnknownAgent):
        has_work(tx, "nobody")
    for name in ("a\0b", "\ud800"):
        with store.read() as tx, pytest.raises(BadText):
            has_work(tx, name)
        with pytest.raises(BadText):
            do(store, claim_for_worker, name, AGENT)


def test_a_token_stands_for_its_claim(store: Store) -> None:
    ids = [send(store, text, AGENT, sender_id="U1") for text in ("one", "two")]
    with store.write() as tx:
        found = claim_for_worker(tx, "w-1", AGENT)
    assert found is not None
    with store.read() as tx:
        again = get_claim(tx, found.token)
    assert again == found
    assert [each.message_id for each in again.messages] == ids
    do(store, complete, again, RunOutput(text="both"), ())
    assert [row["message"] for row in responses(store)] == ["both"]
    assert {status(store, each) for each in ids} == {"completed"}


def test_a_token_that_is_over_stands_for_nothing(store: Store) -> None:
    sent = send(store, agent=AGENT)
    claim = token(store)
    do(store, cancel, sent)
    for each in (claim, f"{AGENT}.0000", "nobody.00", "", "x", "a\0.b"):
        with store.read() as tx, pytest.raises(StaleToken):
            get_claim(tx, each)


def test_a_claim_that_ends_after_it_was_found_changes_nothing(store: Store) -> None:
    sent = send(store, agent=AGENT)
    claim = token(store)
    with store.read() as tx:
        found = get_claim(tx, claim)
    do(store, release, claim)
    before = dump(store)
    with pytest.raises(StaleToken):
        do(store, complete, found, RunOutput(text="late"), ())
    assert dump(store) == before
    assert status(store, sent) == "pending"


def test_the_beginning_of_a_run_is_told(store: Store) -> None:
    sent = send(store, agent=AGENT)
    with store.write() as tx:
        found = claim_for_worker(tx, "w-1", AGENT)
        assert found is not None
        record_start(tx, found, get_provider_name(tx, AGENT))
    (event,) = events(store, "chain_step_start")
    assert (event["agent"], event["message_id"]) == (AGENT, sent)
    assert '"provider":"http"' in event["data"]


def test_an_agent_that_was_removed_is_told_of_as_what_it_was(store: Store) -> None:
    do(store, remove_agent, AGENT)
    with store.read() as tx:
        assert get_provider_name(tx, AGENT) == HTTP


def test_files_leave_from_where_the_agent_works(settings: Settings) -> None:
    home = settings.workspace / AGENT
    assert _roots(settings) == [home, settings.files]
    assert _roots(settings, "/srv/project") == [Path("/srv/project"), home, settings.files]


def test_no_directory_lets_anything_of_the_home_leave_but_files(tmp_path: Path) -> None:
    """Whatever the owner chose as its directory, and wherever the workspace is."""
    home = tmp_path / "ann" / ".bullpen"
    (tmp_path / "way").symlink_to("ann")
    for workspace in (tmp_path / "ann" / "work", home / "work", tmp_path / "work"):
        settings = Settings(home=home, workspace=workspace)
        own = workspace / AGENT
        only = [own, settings.files]
        for directory in (
            *(home, home / "files", home / "run", home.parent, tmp_path, Path("/")),
            *(tmp_path / "way", tmp_path / "way" / ".bullpen", home / "x" / ".."),
            *(workspace, workspace.parent),
        ):
            assert _roots(settings, str(directory)) == only, directory
        assert _roots(settings, str(own / "project")) == [own / "project", *only]
    above = Settings(home=tmp_path / AGENT / ".bullpen", workspace=tmp_path)
    assert _roots(above) == [above.files]


def _roots(settings: Settings, directory: str = "") -> list[Path]:
    return [each.path for each in allowed_roots(settings, Agent(id=AGENT, directory=directory))]
