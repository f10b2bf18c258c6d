"""What Twilio sends, and what each failure means: seen on the wire, through the real SDK."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from bullpen.channels.failures import (
    ChannelDown,
    NotSent,
    OptedOut,
    OutcomeUnknown,
    RateLimited,
    Refused,
    Undeliverable,
    WindowClosed,
)
from bullpen.channels.platform import Address, Progress, Stage
from bullpen.channels.text.plain import render_sms, segments
from bullpen.channels.text.tree import Document
from bullpen.channels.twilio import api as twilio_api
from bullpen.channels.twilio.platform import MAX_SEGMENTS
from bullpen.core.answers.attachments import OpenFile
from bullpen.core.clock import HOUR, SECOND, SystemClock
from tests.channels.fakes.faults import Fault
from tests.channels.fakes.twilio import (
    API_KEY,
    API_SECRET,
    AUTH_TOKEN,
    NUMBER,
    SERVICE_SID,
    TEMPLATE,
    FakeTwilio,
)
from tests.channels.recording import no_note
from tests.channels.twilio.accounts import ANN, NOTHING, a_part, receiving, started

CREATE = "POST */Messages.json"


def send_one(fake: FakeTwilio, directory: Path, settings: Mapping[str, str] = NOTHING) -> str:
    """Send one part."""

    async def main() -> str:
        async with started(fake, directory, settings) as platform:
            return await platform.send(a_part(), no_note)

    return asyncio.run(main())


UNKNOWN = {
    "closed": (Fault.CLOSE, False),
    "reset": (Fault.RESET, False),
    "half": (Fault.HALF, True),
    "hang": (Fault.HANG, False),
    "error500": (Fault.ERROR, False),
    "taken_then_500": (Fault.ERROR, True),
    "html": (Fault.HTML, False),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_a_send_without_a_valid_answer_is_unknown_and_is_not_resent_by_the_sdk(
    name: str, sms: FakeTwilio, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(twilio_api, "API_SECONDS", 1.0)
    fault, taken = UNKNOWN[name]
    sms.fail(fault, CREATE, taken=taken)
    began = time.monotonic()
    with pytest.raises(OutcomeUnknown):
        send_one(sms, tmp_path)
    assert time.monotonic() - began < 5, "it slept, or waited for ever"
    assert len(sms.requests(CREATE)) == 1


def test_a_send_to_a_closed_port_is_not_sent(sms: FakeTwilio, tmp_path: Path) -> None:
    async def main() -> None:
        async with started(sms, tmp_path) as platform:
            with sms.gone(), pytest.raises(NotSent) as caught:
                await platform.send(a_part(), no_note)
            assert not isinstance(caught.value, RateLimited)

    asyncio.run(main())


def test_a_name_without_an_address_and_a_false_certificate_are_not_sent() -> None:
    import ssl

    import requests
    from urllib3.exceptions import MaxRetryError, NameResolutionError
    from urllib3.exceptions import SSLError as PoolError

    from bullpen.channels.twilio.errors import failure

    name = NameResolutionError("api.twilio.com", None, OSError())  # type: ignore[arg-type]
    certificate = PoolError(ssl.SSLCertVerificationError("self-signed"))
    for reason in (name, certificate):
        error = MaxRetryError(None, "/?To=%2B15551000001", reason)  # type: ignore[arg-type]
        found = failure(requests.ConnectionError(error), "sms")
        assert isinstance(found, NotSent), reason
        assert "1555" not in str(found)
    assert isinstance(failure(requests.ConnectTimeout(), "sms"), NotSent)
    broken = failure(requests.exceptions.SSLError(ssl.SSLEOFError("EOF")), "sms")
    assert isinstance(broken, OutcomeUnknown)


def test_the_sdk_retries_nothing_over_tls_either(sms: FakeTwilio, tmp_path: Path) -> None:
    async def main() -> int:
        async with started(sms, tmp_path) as platform:
            adapter = platform._api._http.session.get_adapter("https://api.twilio.com")
            return int(adapter.max_retries.total)

    assert asyncio.run(main()) == 0


def test_a_connection_is_never_used_for_a_second_request(sms: FakeTwilio, tmp_path: Path) -> None:
    """An idle connection that the server closes would make an unknown outcome."""
    send_one(sms, tmp_path)
    assert {each.headers["connection"] for each in sms.requests()} == {"close"}


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (20003, ChannelDown),
        (20403, ChannelDown),
        (21606, ChannelDown),
        (21609, ChannelDown),
        (21701, ChannelDown),
        (63007, ChannelDown),
        (70051, ChannelDown),
        (21211, Undeliverable),
        (21408, Undeliverable),
        (21608, Undeliverable),
        (21612, Undeliverable),
        (21614, Undeliverable),
        (21610, OptedOut),
        (63016, WindowClosed),
        (21617, Refused),
        (30034, Refused),
        (99999, Refused),
        (20429, RateLimited),
        (21611, RateLimited),
        (63018, RateLimited),
    ],
)
def test_each_error_code_has_its_failure(
    code: int, kind: type[Exception], sms: FakeTwilio, tmp_path: Path
) -> None:
    sms.next_codes.append(code)
    with pytest.raises(kind) as caught:
        send_one(sms, tmp_path)
    assert type(caught.value) is kind
    assert ANN not in str(caught.value)
    if isinstance(caught.value, ChannelDown):
        assert "bullpen config" in caught.value.hint or "Twilio" in caught.value.hint
        assert "{" not in caught.value.hint
    assert len(sms.requests(CREATE)) == 1


def test_a_rate_limit_waits_as_long_as_twilio_asks_and_is_not_slept(
    sms: FakeTwilio, tmp_path: Path
) -> None:
    sms.fail(Fault.LIMIT, CREATE, seconds=90)
    began = time.monotonic()
    with pytest.raises(RateLimited) as caught:
        send_one(sms, tmp_path)
    assert caught.value.seconds == 90
    assert not caught.value.account
    assert time.monotonic() - began < 5


def test_revoked_credentials_take_the_channel_down(sms: FakeTwilio, tmp_path: Path) -> None:
    async def main() -> None:
        async with started(sms, tmp_path) as platform:
            sms.revoked = True
            with pytest.raises(ChannelDown) as caught:
                await platform.send(a_part(), no_note)
            assert caught.value.code == "credentials_refused"

    asyncio.run(main())


def test_an_answer_of_a_proxy_in_between_is_unknown(sms: FakeTwilio, tmp_path: Path) -> None:
    from twilio.base.exceptions import TwilioRestException

    from bullpen.channels.twilio.errors import failure

    for status in (404, 408, 413, 502):
        error = TwilioRestException(status, "/Messages.json", "", status)
        assert isinstance(failure(error, "sms"), OutcomeUnknown), status


def test_a_part_has_its_own_status_callback_and_lives_no_longer_than_the_response(
    sms: FakeTwilio, tmp_path: Path
) -> None:
    async def main() -> str:
        async with started(sms, tmp_path) as platform:
            part = a_part("*Hello* — “you”…", key="bABCD17.2", life=600 * SECOND)
            return await platform.send(part, no_note)

    sid = asyncio.run(main())
    form = sms.wait_for_request(CREATE).form()
    assert form["To"] == ANN
    assert form["From"] == NUMBER
    assert form["Body"] == 'Hello - "you"...'
    assert form["StatusCallback"] == "https://bots.example.org/sms/status/bABCD17.2"
    assert 590 <= int(form["ValidityPeriod"]) <= 600
    assert [each.sid for each in sms.sent(ANN)] == [sid]


@pytest.mark.parametrize(("life", "seconds"), [(-5 * SECOND, 1), (48 * HOUR, 36_000)])
def test_the_validity_is_within_the_limits_of_twilio(
    life: int, seconds: int, sms: FakeTwilio, tmp_path: Path
) -> None:
    async def main() -> None:
        async with started(sms, tmp_path) as platform:
            await platform.send(a_part(life=life), no_note)

    asyncio.run(main())
    assert sms.wait_for_request(CREATE).form()["ValidityPeriod"] == str(seconds)


def test_a_messaging_service_and_an_api_key_are_used(sms: FakeTwilio, tmp_path: Path) -> None:
    send_one(
        sms,
        tmp_path,
        {"messaging_service": SERVICE_SID, "api_key": API_KEY, "api_secret": API_SECRET},
    )
    request = sms.wait_for_request(CREATE)
    assert request.form()["MessagingServiceSid"] == SERVICE_SID
    assert request.form()["From"] == NUMBER, "answers would come from any number of the service"
    import base64

    login = base64.b64encode(f"{API_KEY}:{API_SECRET}".encode()).decode()
    assert request.headers["authorization"] == f"Basic {login}"


def test_an_sms_part_has_at_most_ten_segments(sms: FakeTwilio, tmp_path: Path) -> None:
    async def main() -> None:
        async with started(sms, tmp_path) as platform:
            assert platform.fits(Document.parse("a" * 153 * MAX_SEGMENTS))
            assert not platform.fits(Document.parse("a" * 153 * MAX_SEGMENTS + "a"))
            assert platform.fits(Document.parse("語" * 67 * MAX_SEGMENTS))
            assert not platform.fits(Document.parse("語" * 67 * MAX_SEGMENTS + "語"))

    asyncio.run(main())
    assert segments(render_sms(Document.parse("it’s"))) == 1


def test_a_text_without_a_visible_character_is_refused_here(
    sms: FakeTwilio, tmp_path: Path
) -> None:
    async def main() -> None:
        async with started(sms, tmp_path) as platform:
            with pytest.raises(Refused):
                await platform.send(a_part("\u200b \n"), no_note)

    asyncio.run(main())
    assert not sms.requests(CREATE)


def test_an_mms_is_fetched_by_a_url_of_its_own(sms: FakeTwilio, tmp_path: Path) -> None:
    path = tmp_path / "chart.png"
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"x" * 1000)

    async def main() -> None:
        async with receiving(sms, tmp_path) as (platform, _):
            with path.open("rb") as file:
                part = a_part(file=OpenFile("chart.png", path.stat().st_size, file))
                await platform.send(part, no_note)
            await asyncio.to_thread(
                sms.wait_for, lambda: [each.status for each in sms.sent(ANN)] == ["delivered"]
            )

    asyncio.run(main())
    form = sms.wait_for_request(CREATE).form()
    assert form["MediaUrl"].startswith("https://bots.example.org/sms/files/")
    assert len(form["MediaUrl"]) > 80
    assert "Body" not in form
    (message,) = sms.sent(ANN)
    assert [sms.media[each] for each in message.media] == [
        ("chart.png", "image/png", path.read_bytes())
    ]


def test_a_file_is_refused_in_words_or_waits_for_the_listener(
    sms: FakeTwilio, tmp_path: Path
) -> None:
    path = tmp_path / "big.bin"
    path.write_bytes(b"x")

    async def main() -> None:
        with path.open("rb") as file:
            big, small = OpenFile("big.bin", 5_000_001, file), OpenFile("big.bin", 1, file)
            async with started(sms, tmp_path) as platform:
                with pytest.raises(Refused, match="more than 5 MB"):
                    await platform.send(a_part(file=big), no_note)
                with pytest.raises(NotSent):
                    await platform.send(a_part(file=small), no_note)
            async with started(sms, tmp_path, {"public_url": ""}) as platform:
                with pytest.raises(Refused, match="public URL"):
                    await platform.send(a_part(file=small), no_note)

    asyncio.run(main())
    assert not sms.requests(CREATE)


def test_whatsapp_text_goes_to_its_addresses(whatsapp: FakeTwilio, tmp_path: Path) -> None:
    async def main() -> None:
        async with started(whatsapp, tmp_path) as platform:
            await platform.send(a_part("**Hello** _you_"), no_note)

    asyncio.run(main())
    form = whatsapp.wait_for_request(CREATE).form()
    assert (form["From"], form["To"]) == (f"whatsapp:{NUMBER}", f"whatsapp:{ANN}")
    assert form["Body"] == "*Hello* _you_"


def test_after_the_window_a_template_is_sent_and_nothing_else(
    whatsapp: FakeTwilio, tmp_path: Path
) -> None:
    whatsapp.window_open = False
    now = SystemClock().now()

    async def main() -> None:
        async with started(whatsapp, tmp_path) as platform:
            await platform.send(a_part("One\n\ntwo    three", window_until=now - 1), no_note)
            await platform.send(a_part("word " * 300, window_until=now - 1), no_note)

    asyncio.run(main())
    first, second = (each.form() for each in whatsapp.requests(CREATE))
    assert first["ContentSid"] == TEMPLATE
    assert "Body" not in first
    assert json.loads(first["ContentVariables"]) == {"1": "One two three"}
    assert json.loads(second["ContentVariables"])["1"].endswith("word …")
    assert len(json.loads(second["ContentVariables"])["1"]) <= 900


def test_within_the_window_no_template_is_sent(whatsapp: FakeTwilio, tmp_path: Path) -> None:
    now = SystemClock().now()

    async def main() -> None:
        async with started(whatsapp, tmp_path) as platform:
            for until in (0, now + HOUR):
                await platform.send(a_part(window_until=until), no_note)

    asyncio.run(main())
    assert all("Body" in each.form() for each in whatsapp.requests(CREATE))


def test_a_template_is_sent_after_63016(whatsapp: FakeTwilio, tmp_path: Path) -> None:
    whatsapp.next_codes.append(63016)
    send_one(whatsapp, tmp_path)
    first, second = (each.form() for each in whatsapp.requests(CREATE))
    assert "Body" in first
    assert second["ContentSid"] == TEMPLATE


def test_without_a_template_the_window_is_closed(whatsapp: FakeTwilio, tmp_path: Path) -> None:
    now = SystemClock().now()

    async def main() -> None:
        async with started(whatsapp, tmp_path, {"template": ""}) as platform:
            with pytest.raises(WindowClosed):
                await platform.send(a_part(window_until=now - 1), no_note)

    asyncio.run(main())
    assert not whatsapp.requests(CREATE)


def test_typing_is_shown_below_the_message_on_whatsapp_only(
    whatsapp: FakeTwilio, sms: FakeTwilio, tmp_path: Path
) -> None:
    def progress(sid: str, stage: Stage) -> Progress:
        return Progress(to=Address(chat=ANN, message=sid, person=ANN), stage=stage)

    async def main(fake: FakeTwilio, sid: str) -> None:
        async with started(fake, tmp_path) as platform:
            for stage in (Stage.WORKING, Stage.DONE):
                await platform.show(progress(sid, stage))

    sid = whatsapp.say(ANN, "Hi", push=False)
    asyncio.run(main(whatsapp, sid))
    assert whatsapp.typing == [sid]
    asyncio.run(main(sms, sms.say(ANN, "Hi", push=False)))
    assert not sms.requests("*Typing*")


def test_sixteen_sends_go_on_beside_each_other(sms: FakeTwilio, tmp_path: Path) -> None:
    """A hanging send to one person holds up nobody else."""
    sms.fail(Fault.HANG, CREATE, times=15)

    async def main() -> None:
        async with started(sms, tmp_path) as platform:
            hanging = [
                asyncio.create_task(platform.send(a_part(key=f"bABCD{each}.0"), no_note))
                for each in range(15)
            ]
            await asyncio.to_thread(sms.wait_for_request, CREATE, 15)
            async with asyncio.timeout(10):
                await platform.send(a_part(key="bABCD99.0", to="+15551000002"), no_note)
            sms._loop.call_soon_threadsafe(sms.faults.released.set)
            await asyncio.gather(*hanging, return_exceptions=True)

    asyncio.run(main())
    assert sms.posts("+15551000002") == ["Hello"]


def test_numbers_texts_and_secrets_never_reach_the_log(
    sms: FakeTwilio, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)

    async def main() -> None:
        async with receiving(sms, tmp_path) as (platform, _):
            await asyncio.to_thread(sms.say, ANN, "a private text")
            await platform.send(a_part("an answer that is private"), no_note)
            sms.fail(Fault.ERROR, CREATE)
            with pytest.raises(OutcomeUnknown):
                await platform.send(a_part("an answer that is private"), no_note)
            with sms.gone(), pytest.raises(NotSent):
                await platform.send(a_part("an answer that is private"), no_note)
            await platform.recover(a_part("an answer that is private", began_at=0))
            await asyncio.to_thread(sms.wait_for, lambda: not sms.unacked())

    asyncio.run(main())
    for secret in (ANN[1:], NUMBER[1:], AUTH_TOKEN, "private"):
        assert secret not in caplog.text, secret
