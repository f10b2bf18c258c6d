"""What each failed request to Telegram means, through python-telegram-bot, on the wire."""

from __future__ import annotations

import asyncio
import logging
import time

import pytest

from bullpen.channels.failures import (
    ChannelDown,
    ChatMoved,
    NotSent,
    OutcomeUnknown,
    RateLimited,
    Refused,
    SendFailed,
    Undeliverable,
)
from bullpen.channels.telegram import api as telegram_api
from tests.channels.fakes.faults import Fault
from tests.channels.fakes.telegram import SEND, TOKEN, FakeTelegram
from tests.channels.recording import no_note
from tests.channels.telegram.double import CHAT, GROUP, part, started

SLOWEST_SECONDS = 5.0


def failure(fake: FakeTelegram, chat: str = CHAT) -> Exception:
    """The error of sending one part."""

    async def send() -> Exception:
        async with started(fake) as telegram:
            began = time.monotonic()
            try:
                await telegram.send(part(chat=chat), no_note)
            except (SendFailed, ChannelDown) as error:
                assert time.monotonic() - began < SLOWEST_SECONDS, "the SDK slept"
                return error
            raise AssertionError("it was sent")

    return asyncio.run(send())


@pytest.mark.parametrize("fault", [Fault.CLOSE, Fault.RESET, Fault.HALF, Fault.ERROR, Fault.HTML])
@pytest.mark.parametrize("taken", [False, True])
def test_a_lost_answer_is_unknown_and_nothing_is_sent_again(
    fake: FakeTelegram, fault: Fault, taken: bool
) -> None:
    fake.fail(fault, SEND, taken=taken)
    assert type(failure(fake)) is OutcomeUnknown
    assert len(fake.requests(SEND)) == 1
    assert len(fake.parts(CHAT)) == (taken or fault is Fault.HALF)


def test_a_hanging_server_is_unknown_after_the_read_timeout(
    fake: FakeTelegram, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(telegram_api, "READ_SECONDS", 0.3)
    fake.fail(Fault.HANG, SEND)
    assert type(failure(fake)) is OutcomeUnknown
    assert len(fake.requests(SEND)) == 1


def test_a_refused_connection_is_not_sent(fake: FakeTelegram) -> None:
    async def send() -> None:
        async with started(fake) as telegram:
            with fake.gone(), pytest.raises(NotSent) as caught:
                await telegram.send(part(), no_note)
            assert type(caught.value) is NotSent
            await telegram.send(part(), no_note)

    asyncio.run(send())
    assert fake.posts(CHAT) == ["hello"]


def test_an_idle_connection_is_not_used_again(fake: FakeTelegram) -> None:
    """A server that closes an idle connection at the next send would make it unknown."""

    async def send() -> None:
        async with started(fake) as telegram:
            pool = telegram._api.request._client._transport._pool  # type: ignore[attr-defined]
            assert pool._keepalive_expiry <= 2

    asyncio.run(send())


@pytest.mark.parametrize(
    ("code", "description", "kind"),
    [
        (400, "Bad Request: message is too long", Refused),
        (400, "Bad Request: BUTTON_DATA_INVALID", Refused),
        (400, "Bad Request: chat not found", Undeliverable),
        (400, "Bad Request: group chat was deactivated", Undeliverable),
        (400, "Bad Request: have no rights to send a message", Undeliverable),
        (400, "Bad Request: not enough rights to send text messages to the chat", Undeliverable),
        (400, "Bad Request: CHAT_WRITE_FORBIDDEN", Undeliverable),
        (400, "Bad Request: TOPIC_CLOSED", Undeliverable),
        (403, "Forbidden: bot was blocked by the user", Undeliverable),
        (403, "Forbidden: user is deactivated", Undeliverable),
        (403, "Forbidden: bot was kicked from the group chat", Undeliverable),
        (403, "Forbidden: bots can't send messages to bots", Undeliverable),
        (401, "Unauthorized", ChannelDown),
        (404, "Not Found", ChannelDown),
        (413, "Request Entity Too Large", Refused),
        (500, "Internal Server Error", OutcomeUnknown),
        (502, "Bad Gateway", OutcomeUnknown),
    ],
)
def test_an_error_of_the_api_is_classified_by_its_cause(
    fake: FakeTelegram, code: int, description: str, kind: type[Exception]
) -> None:
    fake.refuse(code, description)
    error = failure(fake)
    assert type(error) is kind
    assert len(fake.requests(SEND)) == 1
    if isinstance(error, Refused | OutcomeUnknown):
        assert error.code == str(code)


@pytest.mark.parametrize("seconds", [7, 97 * 60])
def test_ha_91969_a_rate_limit_is_raised_at_once_with_its_time(
    fake: FakeTelegram, seconds: int
) -> None:
    fake.fail(Fault.LIMIT, SEND, seconds=seconds)
    error = failure(fake)
    assert isinstance(error, RateLimited)
    assert error.seconds == seconds
    assert not error.account
    assert len(fake.requests(SEND)) == 1


def test_a_group_that_became_a_supergroup_has_moved(fake: FakeTelegram) -> None:
    fake.migrate(GROUP, "-1002000000002", quietly=True)
    error = failure(fake, GROUP)
    assert isinstance(error, ChatMoved)
    assert error.to == "-1002000000002"


@pytest.mark.parametrize("status", [403, 404, 413, 429])
def test_a_page_of_something_in_between_is_no_answer_of_telegram(
    fake: FakeTelegram, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A proxy may answer for Telegram; only the API's own answers say that nothing was sent."""
    from aiohttp import web

    page = f"<h1>/bot{TOKEN}/sendMessage</h1>"
    monkeypatch.setattr(
        fake, "failed", lambda request, status: web.Response(status=status, text=page)
    )
    fake.fail(Fault.ERROR, SEND, status=status)
    error = failure(fake)
    assert type(error) is (Refused if status == 413 else OutcomeUnknown)
    assert TOKEN not in repr(error)


@pytest.mark.parametrize("fault", [Fault.CLOSE, Fault.RESET, Fault.HTML, Fault.ERROR, None])
def test_oc_106562_the_token_is_in_no_error_and_in_no_log(
    fake: FakeTelegram, fault: Fault | None, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    logging.getLogger("bullpen").setLevel(logging.DEBUG)
    if fault is None:
        fake.token = "another"
        with pytest.raises(ChannelDown) as down:
            failure(fake)
        error: BaseException | None = down.value
    else:
        fake.fail(fault, SEND)
        error = failure(fake)
    assert error is not None
    while error is not None:
        assert TOKEN not in f"{error!r} {error}"
        assert error.__suppress_context__ or error.__context__ is None
        error = error.__cause__
    assert TOKEN not in caplog.text
    secret = TOKEN.partition(":")[2]
    assert secret not in caplog.text


def test_oc_106562_an_answer_that_repeats_the_token_is_scrubbed(fake: FakeTelegram) -> None:
    fake.refuse(400, f"Bad Request: no such path /bot{TOKEN}/sendMessage")
    error = failure(fake)
    assert type(error) is Refused
    assert str(error) == "no such path /bot…/sendMessage (400)"


def test_oc_24353_a_text_that_is_too_long_is_refused_and_not_tried_for_ever(
    fake: FakeTelegram,
) -> None:
    async def send() -> None:
        async with started(fake) as telegram:
            with pytest.raises(Refused, match="too long"):
                await telegram.send(part("a" * 5000), no_note)

    asyncio.run(send())
    assert len(fake.requests(SEND)) == 1
