"""Heartbeats from end to end: the scheduler wakes an agent, a real program answers."""

from __future__ import annotations

import pytest

from bullpen.core.heartbeats.manage import change_heartbeat
from bullpen.core.models import BEATS, HEARTBEATS, SESSIONS
from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from bullpen.core.workspace.contents import write_heartbeat_text
from tests.company.office import log_of, processors, wait_until_over, write
from tests.conformance.verbs import AGENT, do, hire, responses, rows
from tests.processor.working import eventually


def beat(store: Store, text: str) -> str:
    """Let the next beat be due at once, and wait for what comes of it."""
    write_heartbeat_text(store.settings, AGENT, text)
    before = len(rows(store, BEATS))
    with store.engine.begin() as connection:
        connection.execute(HEARTBEATS.update().values(due_at=0))
    eventually(lambda: len(rows(store, BEATS)) > before, "it beats")
    wait_until_over(store)
    return str(rows(store, BEATS)[-1]["outcome"])


def sessions(settings: Settings) -> list[tuple[str, str]]:
    """Of each run: whether its session was begun anew, and which it was."""
    return [(line[3], line[4]) for line in log_of(settings) if line[2] == "began"]


@pytest.mark.one_store
def test_a_beat_has_a_session_of_its_own_and_leaves_the_agents_as_it_was(
    settings: Settings, store: Store
) -> None:
    hire(store, provider="claude")
    with processors(settings):
        write(store, "@coder !say hello")
        wait_until_over(store)
        kept = rows(store, SESSIONS)
        do(store, lambda tx: change_heartbeat(tx, AGENT, on=True))
        assert beat(store, "!say HEARTBEAT_OK") == "silent"
        assert beat(store, "!say The build is red.") == "said"
        assert beat(store, "!echo") == "said"
        assert rows(store, SESSIONS) == kept
        write(store, "@coder !echo")
        wait_until_over(store)
    (_, first), *beats, last = sessions(settings)
    assert [how for how, _ in beats] == ["anew"] * 3
    assert len({first, *(session for _, session in beats)}) == 4
    assert last == ("resumed", first)
    hello, red, beaten, told = (row["message"] for row in responses(store))
    assert (hello, red, beaten) == ("hello", "The build is red.", "!echo")
    assert "in a heartbeat you wrote to the owner: The build is red." in told
