"""kill -9 of a whole installation, its supervisor included: all runs again by itself."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from bullpen.core.models import MESSAGES, RESPONSES
from bullpen.core.settings import Settings
from bullpen.core.store.open import open_store
from tests.cli.command import Bullpen
from tests.cli.conftest import remove, stop_all
from tests.crash.account import check_integrity, rows
from tests.ports import free_port
from tests.processor.working import eventually
from tests.stores import Stores

KILLS = int(os.environ.get("CRASH_KILLS", "0")) or 6
SERVICES = ["api", "guard", "processor", "scheduler"]
SUPERVISOR = "supervisor"
LONG = 900.0
"""Longer than the longest pause of a service that was killed ten times in ten minutes."""


@pytest.fixture
def installation(stores: Stores, kind: str) -> Iterator[Bullpen]:
    """A home in which everything runs, on this store."""
    home = Path(tempfile.mkdtemp(prefix="bp-", dir="/tmp"))
    url = "" if kind == "sqlite" else stores.settings(kind).database_url
    made = Bullpen(
        home,
        {
            "BULLPEN_API_PORT": str(free_port()),
            "BULLPEN_DATABASE_URL": url,
            "BULLPEN_LEASE_SECONDS": "5",
            "BULLPEN_MAX_CRASHES": "1000",
            "BULLPEN_GRACE_SECONDS": "5",
        },
    )
    try:
        made.ok("up")
        made.ok("agent", "lane", "assistant", "--batching", "one")
        yield made
    finally:
        stop_all(home)
        remove(home)


@pytest.mark.slow
@pytest.mark.one_store
def test_killed_services_and_supervisors_run_again_and_lose_nothing(installation: Bullpen) -> None:
    chance = random.Random(os.urandom(8))
    accepted: list[str] = []
    killed: Counter[str] = Counter()
    first = [SUPERVISOR, *SERVICES]
    while killed.total() < KILLS:
        send(installation, accepted)
        victim = first.pop() if first else chance.choice([SUPERVISOR, *SERVICES])
        if kill(installation.home, victim):
            killed[victim] += 1
        time.sleep(chance.uniform(0.05, 1.0))
    eventually(lambda: all_run(installation), "all run again by themselves", LONG)
    for _ in range(3):
        send(installation, accepted)
    settings = Settings.load(installation.environment())
    eventually(lambda: at_rest(settings), "all is answered", LONG)
    store = open_store(settings)
    states = {row["message_id"]: row["status"] for row in rows(store, MESSAGES)}
    answers = Counter(row["message_id"] for row in rows(store, RESPONSES))
    check_integrity(store)
    store.close()
    assert len(accepted) > KILLS / 20
    assert {states.get(each) for each in accepted} == {"completed"}
    assert {answers[each] for each in accepted} == {1}
    assert set(killed) == {SUPERVISOR, *SERVICES}


def kill(home: Path, victim: str) -> bool:
    """Kill the main process of a service, or the supervisor, if it has one just now."""
    name = "supervisord.pid" if victim == SUPERVISOR else f"{victim}.lock"
    with contextlib.suppress(OSError, ValueError, psutil.Error):
        process = psutil.Process(int((home / "run" / name).read_text()))
        # The number may be another process's by now: of this home, and of this service?
        words = process.cmdline()
        right = "supervisord" in " ".join(words) if victim == SUPERVISOR else victim in words
        if right and process.environ().get("BULLPEN_HOME") == str(home):
            process.send_signal(signal.SIGKILL)
            return True
    return False


def send(installation: Bullpen, accepted: list[str]) -> None:
    """Post a message; one that is accepted must be answered."""
    try:
        token = (installation.home / "token").read_text().strip()
        request = urllib.request.Request(
            f"http://127.0.0.1:{installation.environ['BULLPEN_API_PORT']}/api/message",
            data=json.dumps({"message": "hello", "channel": "api"}).encode(),
            headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=5) as answer:
            accepted.append(json.loads(answer.read())["messageId"])
    except (OSError, ValueError):
        return  # refused, or not known: nothing was promised


def all_run(installation: Bullpen) -> bool:
    """Whether every service runs."""
    found = installation("status", "--json").json["services"]
    return sorted(each["name"] for each in found if each["state"] == "RUNNING") == SERVICES


def at_rest(settings: Settings) -> bool:
    """Whether no message waits or is running."""
    store = open_store(settings)
    try:
        return {"pending", "processing"}.isdisjoint(row["status"] for row in rows(store, MESSAGES))
    finally:
        store.close()
