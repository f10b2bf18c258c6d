"""The webhook of Telegram: with its secret only, answered after the commit."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest

from bullpen.channels.failures import ChannelDown
from bullpen.channels.listener import MAX_BODY_BYTES
from bullpen.channels.telegram import platform as telegram
from bullpen.channels.telegram import polling
from tests.channels.fakes.faults import Fault
from tests.channels.fakes.telegram import FakeTelegram
from tests.channels.recording import RecordingIntake, until
from tests.channels.telegram.double import CHAT, PERSON, receiving, started
from tests.ports import free_port

SECRET = "a-secret_of-the-webhook"
HEADER = "X-Telegram-Bot-Api-Secret-Token"


@asynccontextmanager
async def listening(
    fake: FakeTelegram, port: int
) -> AsyncIterator[tuple[RecordingIntake, asyncio.Task[None]]]:
    """A platform that receives by webhook on this port."""
    async with receiving(fake, **settings(port)) as found:
        await until(lambda: found[0].connections or found[1].done())
        yield found


def settings(port: int, **changed: str) -> dict[str, str]:
    """The settings of a webhook; the fake posts to loopback, without a proxy."""
    return {
        "transport": "webhook",
        "webhook_secret": SECRET,
        "public_url": f"http://127.0.0.1:{port}/telegram",
        "port": str(port),
        **changed,
    }


async def post(port: int, headers: dict[str, str], body: bytes = b"{}") -> int:
    """Post to the listener as somebody else; the status."""
    headers = {"Content-Type": "application/json", **headers}
    url = f"http://127.0.0.1:{port}/telegram/updates"
    async with (
        aiohttp.ClientSession() as session,
        session.post(url, data=body, headers=headers) as answer,
    ):
        return answer.status


def test_updates_arrive_in_order_and_are_answered_after_the_commit(fake: FakeTelegram) -> None:
    async def work() -> None:
        async with listening(fake, free_port()) as (intake, _):
            intake.holds = True
            fake.say(CHAT, PERSON, "one")
            fake.say(CHAT, PERSON, "two")
            await until(lambda: intake.texts)
            await asyncio.sleep(0.2)  # the time for a wrong answer
            assert (intake.texts, fake.webhook_answers) == (["one"], [])
            intake.release()
            await until(lambda: intake.texts == ["one", "two"])
            await asyncio.to_thread(fake.wait_for, lambda: not fake.unacked())
            assert fake.webhook_answers == [200, 200]

    asyncio.run(work())
    assert "my_chat_member" in fake.requests("POST */setWebhook")[0].form()["allowed_updates"]


def test_an_update_that_was_not_stored_comes_again(fake: FakeTelegram) -> None:
    async def work() -> None:
        async with listening(fake, free_port()) as (intake, _):
            intake.fail(times=1)
            fake.say(CHAT, PERSON, "one")
            await asyncio.to_thread(fake.wait_for, lambda: fake.webhook_answers == [500, 200])
            assert intake.texts == ["one"]

    asyncio.run(work())


def test_a_post_without_the_secret_is_refused(fake: FakeTelegram) -> None:
    async def work() -> None:
        port = free_port()
        async with listening(fake, port) as (intake, _):
            for headers in ({}, {HEADER: ""}, {HEADER: "wrong"}, {HEADER: SECRET[:-1]}):
                assert await post(port, headers) == 403
            assert await post(port, {HEADER: SECRET}, b"[]") == 400
            assert await post(port, {HEADER: SECRET}, b"no json") == 400
            assert await post(port, {HEADER: SECRET}) == 200
            assert not intake.inbound

    asyncio.run(work())


@pytest.mark.parametrize("secret", ["", "  ", "with blank", "ü", "x" * 257])
def test_cve_2026_26319_a_blank_secret_stops_the_start(fake: FakeTelegram, secret: str) -> None:
    async def work() -> None:
        with pytest.raises(ChannelDown) as down:
            async with started(fake, **settings(free_port(), webhook_secret=secret)):
                pass
        assert down.value.code == "webhook_secret"
        assert "bullpen config set telegram.webhook_secret" in down.value.hint

    asyncio.run(work())
    assert not fake.webhook


def test_the_longest_update_is_taken_in(fake: FakeTelegram) -> None:
    """JSON writes each of these letters as twelve characters, and a reply has two texts."""
    longest = "\U0001f600" * 2048
    entity = {"type": "custom_emoji", "length": 2, "custom_emoji_id": "5368324170671202286"}
    original = {"message_id": 1, "text": longest, "entities": [{**entity, "offset": 0}] * 100}
    message = {
        **original,
        "message_id": 2,
        "date": 1_700_000_000,
        "chat": {"id": PERSON, "type": "private"},
        "from": {"id": PERSON, "first_name": "Ann"},
        "reply_to_message": original,
    }
    body = json.dumps({"update_id": 1, "message": message}).encode()

    async def work() -> None:
        port = free_port()
        async with listening(fake, port) as (intake, _):
            assert await post(port, {HEADER: SECRET}, body) == 200
            assert intake.texts == [longest]

    assert len(body) > MAX_BODY_BYTES
    asyncio.run(work())


@pytest.mark.parametrize("secret", ["", f"{HEADER}: wrong\r\n"])
def test_cve_2026_32980_the_secret_is_checked_before_the_body_is_read(
    fake: FakeTelegram, secret: str
) -> None:
    async def work() -> bytes:
        port = free_port()
        async with listening(fake, port):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            head = "POST /telegram/updates HTTP/1.1\r\nHost: x\r\nContent-Length: 60000\r\n"
            try:
                writer.write(f"{head}{secret}Content-Type: application/json\r\n\r\n".encode())
                async with asyncio.timeout(4):  # the body never comes
                    return await reader.readline()
            finally:
                writer.close()
                await writer.wait_closed()

    assert b" 403 " in asyncio.run(work())


def test_a_button_stops_spinning_after_the_commit(fake: FakeTelegram) -> None:
    async def work() -> None:
        async with listening(fake, free_port()):
            query = fake.press(CHAT, PERSON, "5", "x")
            await asyncio.to_thread(fake.wait_for, lambda: fake.answered == [query])

    asyncio.run(work())


def test_a_webhook_that_was_replaced_is_a_state(
    fake: FakeTelegram, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(telegram, "WEBHOOK_CHECK_SECONDS", 0.05)

    async def work() -> None:
        async with listening(fake, free_port()) as (_, task):
            fake.webhook = "https://elsewhere.example/hook"
            async with asyncio.timeout(20):
                with pytest.raises(ChannelDown) as down:
                    await task
            assert down.value.code == "webhook_replaced"

    asyncio.run(work())


def test_a_webhook_that_was_replaced_counts_as_connected_only_when_it_stays(
    fake: FakeTelegram, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two programs that replace each other's webhook are one fault, told once."""
    monkeypatch.setattr(telegram, "WEBHOOK_CHECK_SECONDS", 0.3)

    async def work() -> None:
        async with started(fake, **settings(free_port())) as platform:
            intake = RecordingIntake(platform.parse)
            for connections in (1, 1):
                task = asyncio.create_task(platform.receive(intake))
                await until(lambda: "127.0.0.1" in fake.webhook)
                await until(lambda: intake.connections == 1)
                fake.webhook = "https://elsewhere.example/hook"
                async with asyncio.timeout(20):
                    with pytest.raises(ChannelDown):
                        await task
                assert intake.connections == connections
            task = asyncio.create_task(platform.receive(intake))
            await until(lambda: intake.connections == 2)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    asyncio.run(work())


def test_a_webhook_that_could_not_be_checked_is_connected_again_after_it(
    fake: FakeTelegram, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(telegram, "WEBHOOK_CHECK_SECONDS", 0.05)

    async def work() -> None:
        async with listening(fake, free_port()) as (intake, _):
            fake.fail(Fault.ERROR, "POST */getWebhookInfo", times=1)
            await until(lambda: intake.lost)
            await until(lambda: intake.connections == 2)

    asyncio.run(work())


def test_registering_the_webhook_is_tried_again(
    fake: FakeTelegram, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(polling, "MAX_PAUSE_SECONDS", 0.1)
    fake.fail(Fault.ERROR, "POST */setWebhook", times=2)

    async def work() -> None:
        async with listening(fake, free_port()) as (intake, _):
            assert len(intake.lost) == 2
            assert intake.connections == 1

    asyncio.run(work())


def test_a_port_in_use_and_a_bad_url_are_states(fake: FakeTelegram) -> None:
    async def end(**changed: str) -> ChannelDown:
        async with receiving(fake, **settings(fake.port, **changed)) as (_, task):
            with pytest.raises(ChannelDown) as down:
                await task
            return down.value

    assert "in use" in asyncio.run(end()).reason
    assert "https" in asyncio.run(end(public_url="http://bots.example.org")).reason
