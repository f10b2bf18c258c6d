"""The worker of the documentation serves an agent, and its death loses nothing."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bullpen.core.access.keys import Scope
from bullpen.core.company import add_agent
from bullpen.core.roster.agents import HTTP, Agent
from bullpen.core.store.open import open_store
from tests.api.served import Served, serving
from tests.cli.command import Bullpen
from tests.stores import Stores

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "answer-over-http.md"
LIMIT = 60.0


def _worker() -> str:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(code.strip().splitlines()) <= 35
    return str(code)


@contextmanager
def _running(served: Served, code: str) -> Iterator[subprocess.Popen[bytes]]:
    home = served.settings.home
    (home / "counter.key").write_text(served.key(Scope.CLAIM, agents=("counter",)))
    environ = Bullpen(home).environment(BULLPEN_API_PORT=served.url.rpartition(":")[2])
    process = subprocess.Popen([sys.executable, "-c", code], env=environ, cwd=home)
    try:
        yield process
    finally:
        process.kill()
        process.wait(LIMIT)


def _answer(served: Served, message_id: str) -> str:
    deadline = time.monotonic() + LIMIT
    while time.monotonic() < deadline:
        for each in served.get("/api/responses"):
            if each["messageId"] == message_id:
                return str(each["message"])
        time.sleep(0.05)
    raise AssertionError(served.get(f"/api/messages/{message_id}"))


@pytest.fixture
def office(stores: Stores, kind: str) -> Iterator[Served]:
    """An API, and an agent whom a worker outside answers for. There is no processor."""
    settings = stores.settings(kind)
    store = open_store(settings)
    with store.write() as tx:
        add_agent(tx, Agent(id="counter", provider=HTTP))
    store.close()
    with serving(settings) as served:
        yield served


def test_the_worker_of_the_documentation_answers(office: Served) -> None:
    with _running(office, _worker()):
        first = office.post("/api/message", {"message": "@counter one two three"})["messageId"]
        assert _answer(office, first) == "3 words"
        second = office.post("/api/message", {"message": "@counter four"})["messageId"]
        assert _answer(office, second) == "1 words"


@pytest.mark.one_store
def test_a_worker_that_is_killed_leaves_its_message_to_the_next(office: Served) -> None:
    code = _worker()
    last = '        call("complete"'
    assert last in code
    assert "lease=60" in code
    mortal = code.replace(last, f"        os.kill(os.getpid(), 9)\n{last}")
    mortal = mortal.replace("lease=60", "lease=1")
    sent = office.post("/api/message", {"message": "@counter one two"})["messageId"]
    with _running(office, mortal) as process:
        assert process.wait(LIMIT) == -signal.SIGKILL
    assert office.get(f"/api/messages/{sent}")["status"] in ("processing", "pending")
    with _running(office, code):
        assert _answer(office, sent) == "2 words"
    found = office.get(f"/api/messages/{sent}")
    assert (found["status"], found["crash_count"], found["retry_count"]) == ("completed", 1, 0)
    answers = [each for each in office.get("/api/responses") if each["messageId"] == sent]
    assert len(answers) == 1
