"""SQLite on `durable`: what somebody was told survives a power cut; `fast` says that it may not."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bullpen.core.models import AGENTS, LANES, MESSAGES, RESPONSES
from bullpen.core.settings import Durability
from bullpen.core.store.base import Store
from bullpen.core.store.open import open_store
from tests.api.served import Served, serving, start_api
from tests.cli.command import PROGRAM, Bullpen
from tests.crash.account import rows
from tests.crash.children import until
from tests.crash.power_cut import PowerCut, compile_library
from tests.crash.processors import ROOT, processing
from tests.stores import Stores

ROUNDS = 5
"""A commit that was not waited for is lost only until the next one that was."""

COMMIT = """
import os, sys
from pathlib import Path
from bullpen.core.message import NewMessage
from bullpen.core.queue.enqueue import enqueue
from bullpen.core.queue.lanes import create_lane
from bullpen.core.settings import Durability, Settings
from bullpen.core.store.open import open_store
store = open_store(Settings(home=Path(sys.argv[1]), durability=Durability(sys.argv[2])))
with store.write() as tx:
    create_lane(tx, "alpha")
with store.write(durable=sys.argv[3] == "wait") as tx:
    enqueue(tx, NewMessage(agent="alpha", message="hello", message_id="mine"))
os._exit(0)
"""


@pytest.fixture
def kind() -> str:
    """PostgreSQL is always waited for."""
    return "sqlite"


@pytest.fixture
def home(stores: Stores, tmp_path: Path) -> PowerCut:
    """A home of its own, whose power is cut."""
    return PowerCut(stores.settings("sqlite"), compile_library(tmp_path))


@pytest.fixture
def store(home: PowerCut) -> Store:
    """What the processes have committed, whether or not it is on the disk."""
    return open_store(home.settings)


def _messages(store: Store) -> dict[str, str]:
    return {str(row["message_id"]): str(row["status"]) for row in rows(store, MESSAGES)}


@pytest.mark.parametrize(
    ("durability", "waits", "kept"),
    [
        (Durability.DURABLE, "wait", True),
        (Durability.DURABLE, "no", False),
        (Durability.FAST, "wait", False),
    ],
)
def test_a_commit_survives_a_power_cut_if_it_was_waited_for_and_only_then(
    home: PowerCut, durability: Durability, waits: str, kept: bool
) -> None:
    command = [sys.executable, "-c", COMMIT, str(home.settings.home), durability.value, waits]
    environ = Bullpen(home.settings.home).environment(**home.environ)
    subprocess.run(command, check=True, cwd=ROOT, env=environ)
    with home.survivor() as found:
        assert ("mine" in _messages(found)) is kept


def test_what_the_api_and_the_processor_have_said_is_done_survives_a_power_cut(
    home: PowerCut, store: Store
) -> None:
    """Accepted, answered, and each step of a delivery."""
    with (
        serving(home.settings, start_api, **home.environ) as served,
        processing(home.settings, 1, home.environ),
    ):
        served.ok("PUT", "/api/agents/echoer", {"name": "Echo", "provider": "echo"})
        for number in range(ROUNDS):
            _answered(home, store, served, f"mine-{number}")
            _delivered(home, served)
    store.close()


def _answered(home: PowerCut, store: Store, served: Served, message_id: str) -> None:
    body = {
        "message": "@echoer hello",
        "messageId": message_id,
        "channel": "slack",
        "senderId": "U1",
    }
    served.post("/api/message", body)
    with home.survivor() as found:
        assert message_id in _messages(found)
    until(lambda: _messages(store)[message_id] == "completed", "it is answered")
    with home.survivor() as found:
        assert _messages(found)[message_id] == "completed"
        assert message_id in {row["message_id"] for row in rows(found, RESPONSES)}


def _delivered(home: PowerCut, served: Served) -> None:
    asked = {"channel": "slack", "worker": "me"}
    (leased,) = served.post("/api/responses/lease", asked)["responses"]
    steps: list[tuple[str, dict[str, object], Callable[[dict[str, Any]], bool]]] = [
        ("begin-part", {}, lambda row: row["sending"]),
        ("end-part", {"receipt": "first"}, lambda row: row["parts_sent"] == 1),
        ("ack-leased", {}, lambda row: row["status"] == "acked"),
    ]
    for verb, more, done in steps:
        served.post(f"/api/responses/{verb}", {"token": leased["token"], **more})
        with home.survivor() as found:
            (row,) = [each for each in rows(found, RESPONSES) if each["id"] == leased["id"]]
            assert done(row), (verb, row)


def test_what_a_person_orders_survives_a_power_cut(home: PowerCut, store: Store) -> None:
    """Beside another process: the last one that closes a database syncs it all."""
    rows(store, AGENTS)

    def run(*args: str) -> None:
        environ = Bullpen(home.settings.home).environment(**home.environ)
        subprocess.run([*PROGRAM, *args], check=True, cwd=ROOT, env=environ)

    run("agent", "add", "coder", "--provider", "echo")
    with home.survivor() as found:
        assert [row["id"] for row in rows(found, AGENTS)] == ["coder"]
    run("queue", "pause", "coder")
    with home.survivor() as found:
        assert [row["state"] for row in rows(found, LANES)] == ["paused"]
    run("send", "--no-wait", "@coder hello")
    with home.survivor() as found:
        assert set(_messages(found).values()) == {"pending"}
    store.close()
