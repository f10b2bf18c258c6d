"""The base of the fakes does each fault that it can be told, and leaves nothing open."""

from __future__ import annotations

import asyncio
import gc
import time
from pathlib import Path

import aiohttp
import pytest

from tests.channels.fakes.base import FakePlatform
from tests.channels.fakes.faults import Fault
from tests.channels.fakes.process import FakeProcess
from tests.channels.fakes.recorder import Recorder

FAILURES = {
    Fault.CLOSE: aiohttp.ServerDisconnectedError,
    Fault.RESET: aiohttp.ClientOSError,
    Fault.HALF: aiohttp.ClientPayloadError,
    Fault.HANG: TimeoutError,
}


def send(fake: Recorder | FakeProcess, text: str = "hello", seconds: float = 10) -> tuple[int, str]:
    """Post a text; the status and body of the answer."""

    async def post() -> tuple[int, str]:
        limit = aiohttp.ClientTimeout(total=seconds)
        async with (
            aiohttp.ClientSession(timeout=limit) as session,
            session.post(f"{fake.url}/send", json={"text": text}) as answer,
        ):
            return answer.status, await answer.text()

    return asyncio.run(post())


@pytest.mark.parametrize("taken", [False, True])
@pytest.mark.parametrize("fault", FAILURES)
def test_a_fault_strikes_the_requests_that_it_was_ordered_for(fault: Fault, taken: bool) -> None:
    with Recorder() as fake:
        fake.fail(fault, "POST /send", after=1, taken=taken)
        fake.fail(Fault.RESET, "POST /other", times=None)
        assert send(fake, "first")[0] == 200
        with pytest.raises(FAILURES[fault]):
            send(fake, "second", seconds=10 if fault is not Fault.HANG else 0.3)
        assert send(fake, "third")[0] == 200
        # An answer can only break off in its body if there is one.
        kept = ["second"] if taken or fault is Fault.HALF else []
        assert fake.sent == ["first", *kept, "third"]
        assert [each.json()["text"] for each in fake.requests()] == ["first", "second", "third"]


def test_answers_can_be_500_or_429_or_a_page_with_or_without_effect() -> None:
    with Recorder() as fake:
        fake.fail(Fault.ERROR, taken=True)
        fake.fail(Fault.ERROR, status=503)
        fake.fail(Fault.LIMIT, seconds=7)
        fake.fail(Fault.HTML)
        assert [send(fake)[0] for _ in range(4)] == [500, 503, 429, 200]
        assert fake.sent == ["hello"]
        fake.fail(Fault.ERROR, times=None)
        fake.heal()
        assert send(fake) == (200, '{"ok": true, "number": 2}')


def test_a_slow_answer_takes_the_time_that_was_ordered() -> None:
    with Recorder() as fake:
        fake.fail(Fault.SLOW, seconds=0.3)
        began = time.monotonic()
        assert send(fake)[0] == 200
        assert time.monotonic() - began > 0.2


def test_a_fake_that_is_gone_refuses_and_comes_back_on_its_port() -> None:
    with Recorder() as fake:
        with fake.gone(), pytest.raises(aiohttp.ClientConnectorError):
            send(fake)
        assert send(fake)[0] == 200
        fake.vanish(0.1)
        with pytest.raises(aiohttp.ClientConnectorError):
            send(fake)
        fake.wait_for(lambda: answers(fake))


def test_a_fake_that_ends_while_it_comes_back_leaves_nothing_open() -> None:
    """A socket or a task that is left fails the test, as everything does that is not closed."""
    for number in range(20):
        with Recorder() as fake:
            fake.vanish(number / 10_000)
            time.sleep(0.001)
    gc.collect()


def test_a_fake_whose_port_is_taken_fails_and_leaves_nothing_open() -> None:
    with Recorder() as fake:
        with pytest.raises(OSError, match="in use"), Recorder(fake.port):
            pass
        assert send(fake)[0] == 200
    gc.collect()


def answers(fake: Recorder) -> bool:
    try:
        return send(fake)[0] == 200
    except aiohttp.ClientConnectorError:
        return False


def test_an_event_is_pushed_twice_or_not_at_all() -> None:
    with FakePlatform() as fake:
        fake.fail(Fault.DUPLICATE, "message")
        fake.fail(Fault.SILENT, "message", times=2)
        assert [fake.copies("reaction"), *(fake.copies("message") for _ in range(4))] == [
            1, 2, 0, 0, 1,
        ]  # fmt: skip


def test_a_mistake_in_a_fake_fails_the_test() -> None:
    async def post(url: str) -> int:
        async with aiohttp.ClientSession() as session, session.post(f"{url}/broken") as answer:
            return answer.status

    with pytest.raises(AssertionError), Recorder() as fake:
        assert asyncio.run(post(fake.url)) == 500


def test_waiting_ends_with_an_error_that_names_the_requests() -> None:
    with Recorder() as fake:
        send(fake)
        assert fake.wait_for_request("POST /send").json() == {"text": "hello"}
        with pytest.raises(AssertionError, match="POST /send"):
            fake.wait_for(lambda: False, 0.1)


def test_a_killed_fake_knows_what_it_was_sent(tmp_path: Path) -> None:
    with FakeProcess("tests.channels.fakes.recorder", tmp_path / "state") as fake:
        assert send(fake)[0] == 200
        fake.kill()
        with pytest.raises(aiohttp.ClientConnectorError):
            send(fake)
        fake.start()
        assert fake.call("count") == 1
        fake.call("fail", fault="error", on="POST /send")
        assert [send(fake)[0], send(fake)[0]] == [500, 200]
        fake.call("vanish", seconds=0.1)
        assert fake.call("count") == 2
