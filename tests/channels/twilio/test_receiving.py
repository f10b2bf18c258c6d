"""What Twilio pushes: which webhooks are let in, and what each form says."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

from bullpen.channels.failures import ChannelDown
from bullpen.channels.files.fetching import FetchingClient
from bullpen.channels.inbound import ChatChange, Inbound, Proof, Written
from bullpen.core.errors import Overloaded
from bullpen.core.settings import Settings
from tests.channels.fakes.faults import Fault
from tests.channels.fakes.twilio import (
    ACCOUNT_SID,
    NUMBER,
    FakeTwilio,
    sign_form,
)
from tests.channels.recording import no_note
from tests.channels.twilio.accounts import ANN, a_part, make_platform, receiving
from tests.ports import free_port


def a_form(fake: FakeTwilio, text: str = "Hello", **fields: str) -> dict[str, str]:
    """A signed webhook's form, of a message that is not pushed."""
    sid = fake.say(ANN, text, push=False)
    return fake.form(next(each for each in fake.messages if each.sid == sid)) | fields


def parsed(fake: FakeTwilio, directory: Path, form: dict[str, str]) -> Inbound | None:
    """What a form says, without any network."""

    async def main() -> Inbound | None:
        platform = make_platform(fake, directory)
        try:
            return platform.parse({**form, "WrittenAt": 1_700_000_000_000})
        finally:
            await platform.close()

    return asyncio.run(main())


def test_a_message_is_answered_with_empty_twiml_after_the_commit(
    sms: FakeTwilio, tmp_path: Path
) -> None:
    async def main() -> None:
        async with receiving(sms, tmp_path) as (_, intake):
            intake.holds = True
            sid = await asyncio.to_thread(sms.say, ANN, "Hello")
            pending = intake.held
            await asyncio.to_thread(sms.wait_for, lambda: pending)
            assert sms.unacked() == [sid]
            pending[0].set_result(None)
            await asyncio.to_thread(sms.wait_for, lambda: not sms.unacked())
            (written,) = intake.inbound
            assert isinstance(written, Written)
            assert written.source.keys == (sid,)

    asyncio.run(main())
    (path, status, body), *_ = sms.answers
    assert (path, status) == ("/message", 200)
    assert body.endswith("<Response/>")


def test_a_message_that_is_not_stored_goes_to_the_fallback_and_stays_in_the_list(
    sms: FakeTwilio, tmp_path: Path
) -> None:
    async def main() -> None:
        async with receiving(sms, tmp_path) as (_, intake):
            intake.fail(Overloaded("the database is full"))
            await asyncio.to_thread(sms.say, ANN, "Hello")
            await asyncio.to_thread(sms.wait_for, lambda: len(sms.answers) == 2)

    asyncio.run(main())
    assert [(path, status) for path, status, _ in sms.answers] == [
        ("/message", 503),
        ("/fallback", 503),
    ]
    assert len(sms.unacked()) == 1


def test_a_refused_connection_is_tried_again_by_twilio(sms: FakeTwilio, tmp_path: Path) -> None:
    port = free_port()

    async def main() -> None:
        platform = make_platform(sms, tmp_path, {"port": str(port)})
        await platform.close()
        sms.listener = f"http://127.0.0.1:{port}"
        await asyncio.to_thread(sms.say, ANN, "Hello")
        await asyncio.sleep(0)

    asyncio.run(main())
    assert len(sms.unacked()) == 1


def test_messages_of_one_person_keep_their_order(sms: FakeTwilio, tmp_path: Path) -> None:
    async def main() -> None:
        async with receiving(sms, tmp_path) as (_, intake):
            for number in range(50):
                await asyncio.to_thread(sms.say, ANN, f"message {number}")
            await asyncio.to_thread(sms.wait_for, lambda: not sms.unacked())
            texts = intake.texts
            assert texts == [f"message {number}" for number in range(50)]

    asyncio.run(main())


def test_cve_2026_32053_a_redelivery_has_the_same_identity(sms: FakeTwilio, tmp_path: Path) -> None:
    """CVE-2026-32053: a signed request that is replayed is the same message."""

    async def main() -> None:
        async with receiving(sms, tmp_path) as (_, intake):
            sms.fail(Fault.DUPLICATE, "message")
            sid = await asyncio.to_thread(sms.say, ANN, "Hello")
            await asyncio.to_thread(sms.wait_for, lambda: len(intake.payloads) == 2)
            await asyncio.to_thread(sms.redeliver, sid, True)
            keys = [each.source.keys for each in intake.inbound if isinstance(each, Written)]
            assert keys == [(sid,)] * 3

    asyncio.run(main())


REFUSED = [
    "unsigned",
    "forged",
    "signed with another token",
    "signed for another URL",
    "a parameter more",
    "another account",
    "another number",
]


@pytest.mark.parametrize("case", REFUSED)
def test_only_webhooks_signed_for_the_public_url_account_and_number_are_let_in(
    case: str, sms: FakeTwilio, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """CVE-2026-28465: the URL is the configured one, whatever the headers say."""
    caplog.set_level(logging.INFO)

    def push() -> int:
        form = a_form(sms)
        signed = f"{sms.public_url}/message"
        match case:
            case "unsigned":
                return sms.push("/message", form, signature="")[0]
            case "forged":
                return sms.push("/message", form, signature="AAAA")[0]
            case "signed with another token":
                return sms.push("/message", form, token="another")[0]
            case "signed for another URL":
                other = "https://evil.example.org/sms/message"
                headers = {"Host": "evil.example.org", "X-Forwarded-Host": "evil.example.org"}
                signature = sign_form(other, form)
                return sms.push("/message", form, signature=signature, headers=headers)[0]
            case "a parameter more":
                signature = sign_form(signed, form)
                return sms.push("/message", form | {"Extra": "1"}, signature=signature)[0]
            case "another account":
                return sms.push("/message", form | {"AccountSid": f"AC{'9' * 32}"})[0]
            case _:
                return sms.push("/message", form | {"To": "+15559999999"})[0]

    async def main() -> None:
        async with receiving(sms, tmp_path) as (_, intake):
            assert await asyncio.to_thread(push) == 403
            assert not intake.payloads

    asyncio.run(main())
    assert "refused" in caplog.text
    assert ANN not in caplog.text


def test_a_body_over_64_kib_is_refused_before_it_is_read(sms: FakeTwilio, tmp_path: Path) -> None:
    """CVE-2026-32980."""

    async def main() -> None:
        async with receiving(sms, tmp_path) as (_, intake):
            form = a_form(sms) | {"Body": "x" * 70_000}
            status, _ = await asyncio.to_thread(sms.push, "/message", form)
            assert status == 413
            assert not intake.payloads

    asyncio.run(main())


@pytest.mark.parametrize("token", ["", "   "])
def test_a_blank_auth_token_stops_the_start(token: str, sms: FakeTwilio, tmp_path: Path) -> None:
    """CVE-2026-26319, GHSA-xh72-v6v9-mwhc."""

    async def main() -> None:
        platform = make_platform(sms, tmp_path, {"auth_token": token})
        try:
            with pytest.raises(ChannelDown) as caught:
                await platform.start()
            assert "auth_token" in caught.value.hint
        finally:
            await platform.close()

    asyncio.run(main())
    assert not sms.requests()


def test_the_port_or_public_url_of_somebody_else_is_a_state_with_a_hint(
    sms: FakeTwilio, tmp_path: Path
) -> None:
    async def main() -> None:
        with pytest.raises(ChannelDown) as caught:
            async with receiving(sms, tmp_path, {"port": str(sms.port)}):
                pass
        assert "sms.port" in caught.value.hint
        for url in ("http://bots.example.org", "bots", "https://bots.example.org/?a=1"):
            platform = make_platform(sms, tmp_path, {"public_url": url})
            with pytest.raises(ChannelDown) as caught:
                await platform.start()
            await platform.close()
            assert "sms.public_url" in caught.value.hint

    asyncio.run(main())


def test_the_public_url_may_be_written_in_another_form(sms: FakeTwilio, tmp_path: Path) -> None:
    async def main() -> None:
        async with receiving(
            sms, tmp_path, {"public_url": "https://BOTS.example.org:443/sms/"}
        ) as (
            platform,
            intake,
        ):
            await platform.send(a_part(), no_note)
            await asyncio.to_thread(sms.wait_for, lambda: len(intake.payloads) == 2)
            status, _ = await asyncio.to_thread(sms.push, "/message", a_form(sms))
            assert status == 200

    asyncio.run(main())


def test_status_callbacks_prove_a_part(sms: FakeTwilio, tmp_path: Path) -> None:
    async def main() -> None:
        async with receiving(sms, tmp_path) as (platform, intake):
            sid = await platform.send(a_part(key="bABCD17.2"), no_note)
            await asyncio.to_thread(sms.wait_for, lambda: len(intake.payloads) == 2)
            assert intake.inbound == [
                Proof(key="bABCD17.2", receipt=sid, keys=(f"{sid}:sent",)),
                Proof(key="bABCD17.2", receipt=sid, keys=(f"{sid}:delivered",)),
            ]

    asyncio.run(main())


def test_a_status_callback_for_another_part_is_not_signed(sms: FakeTwilio, tmp_path: Path) -> None:
    """The path names the part, and the signature covers the path."""

    async def main() -> None:
        async with receiving(sms, tmp_path) as (platform, intake):
            sms.callbacks = ()
            sid = await platform.send(a_part(key="bABCD17.2"), no_note)
            form = {
                "AccountSid": ACCOUNT_SID,
                "From": NUMBER,
                "MessageSid": sid,
                "MessageStatus": "delivered",
                "To": ANN,
            }
            signature = sign_form(f"{sms.public_url}/status/bABCD17.2", form)

            def push() -> int:
                return sms.push("/status/bABCD18.0", form, signature=signature)[0]

            assert await asyncio.to_thread(push) == 403
            assert not intake.payloads

    asyncio.run(main())


def test_a_status_never_goes_back(sms: FakeTwilio, tmp_path: Path) -> None:
    async def main() -> None:
        async with receiving(sms, tmp_path) as (platform, intake):
            sms.callbacks = ("sent", "delivered", "sending", "sent", "delivered", "read", "odd")
            sid = await platform.send(a_part(), no_note)
            await asyncio.to_thread(sms.wait_for, lambda: len(sms.answers) == 7)
            assert [each.keys for each in intake.inbound if isinstance(each, Proof)] == [
                (f"{sid}:sent",),
                (f"{sid}:delivered",),
                (f"{sid}:read",),
            ]
            assert {status for _, status, _ in sms.answers} == {200}

    asyncio.run(main())


def test_a_status_that_was_not_stored_counts_when_it_comes_again(
    sms: FakeTwilio, tmp_path: Path
) -> None:
    async def main() -> None:
        async with receiving(sms, tmp_path) as (platform, intake):
            sms.callbacks = ()
            sid = await platform.send(a_part(), no_note)
            intake.fail(Overloaded("the database is full"))
            assert await asyncio.to_thread(sms.report, sid, "delivered") == 503
            intake.heal()
            assert await asyncio.to_thread(sms.report, sid, "delivered") == 200
            assert len(intake.payloads) == 1

    asyncio.run(main())


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (30003, "off or out of reach"),
        (30005, "does not exist"),
        (30006, "landline"),
        (30007, "spam"),
        (30034, "A2P"),
        (63016, "24 hours"),
        (21610, "STOP"),
        (30002, "suspended"),
        (12345, "12345"),
    ],
)
def test_an_undelivered_part_is_a_proof_with_the_reason(
    code: int, reason: str, sms: FakeTwilio, tmp_path: Path
) -> None:
    async def main() -> None:
        async with receiving(sms, tmp_path) as (platform, intake):
            sms.fail_number(ANN, callback=code)
            sid = await platform.send(a_part(), no_note)
            await asyncio.to_thread(sms.wait_for, lambda: intake.inbound)
            (proof,) = intake.inbound
            assert isinstance(proof, Proof)
            assert (proof.key, proof.receipt) == ("bABCD7.0", sid)
            assert reason in proof.failed
            assert str(code) in proof.failed

    asyncio.run(main())


@pytest.mark.parametrize("order", [("delivered", "undelivered"), ("failed", "delivered")])
def test_two_different_ends_of_a_part_are_a_conflict(
    order: tuple[str, str], sms: FakeTwilio, tmp_path: Path
) -> None:
    async def main() -> None:
        async with receiving(sms, tmp_path) as (platform, intake):
            sms.callbacks = order
            await platform.send(a_part(), no_note)
            await asyncio.to_thread(sms.wait_for, lambda: len(intake.payloads) == 2)
            last = intake.inbound[-1]
            assert isinstance(last, Proof)
            assert last.failed == f"Twilio reported both {order[0]} and {order[1]}"

    asyncio.run(main())


@pytest.mark.parametrize("word", ["STOP", " stop ", "Unsubscribe", "END", "cancel", "QUIT"])
def test_a_stop_word_opts_out_and_is_never_a_prompt(
    word: str, sms: FakeTwilio, tmp_path: Path
) -> None:
    form = a_form(sms, word)
    change = parsed(sms, tmp_path, form)
    assert isinstance(change, ChatChange)
    assert (change.chat.id, change.opted_out, change.keys) == (ANN, True, (form["MessageSid"],))


def test_start_opts_in_again_and_other_words_are_messages(sms: FakeTwilio, tmp_path: Path) -> None:
    for word in ("START", "unstop"):
        change = parsed(sms, tmp_path, a_form(sms, word))
        assert isinstance(change, ChatChange)
        assert change.opted_out is False
    for text in ("yes", "/stop", "stop it", "the end", "help"):
        assert isinstance(parsed(sms, tmp_path, a_form(sms, text)), Written), text


def test_the_words_of_advanced_opt_out_are_those_of_the_account(
    sms: FakeTwilio, tmp_path: Path
) -> None:
    stop = parsed(sms, tmp_path, a_form(sms, "Arrêt", OptOutType="STOP"))
    start = parsed(sms, tmp_path, a_form(sms, "YES", OptOutType="START"))
    assert isinstance(stop, ChatChange)
    assert stop.opted_out is True
    assert isinstance(start, ChatChange)
    assert start.opted_out is False
    assert parsed(sms, tmp_path, a_form(sms, "Aide", OptOutType="HELP")) is None


def test_a_message_says_who_wrote_it(whatsapp: FakeTwilio, tmp_path: Path) -> None:
    form = a_form(whatsapp, "Hello\nyou")
    found = parsed(whatsapp, tmp_path, form)
    assert isinstance(found, Written)
    assert found.text == "Hello\nyou"
    assert found.addressed
    source = found.source
    assert (source.chat.id, source.person.id, source.chat.direct) == (ANN, ANN, True)
    assert source.person.name == "Person 01"
    assert (source.message, source.keys) == (form["MessageSid"], (form["MessageSid"],))
    assert source.at == 1_700_000_000_000


def test_who_cannot_be_answered_and_who_says_nothing_is_ignored(
    sms: FakeTwilio, tmp_path: Path
) -> None:
    assert parsed(sms, tmp_path, a_form(sms, From="12345")) is None
    assert parsed(sms, tmp_path, a_form(sms, From="BANK")) is None
    assert parsed(sms, tmp_path, a_form(sms, From=NUMBER)) is None
    assert parsed(sms, tmp_path, a_form(sms, " ")) is None
    assert parsed(sms, tmp_path, {"Body": "no SID", "From": ANN}) is None


def test_a_location_is_text(whatsapp: FakeTwilio, tmp_path: Path) -> None:
    fields = {"Latitude": "52.5", "Longitude": "13.4", "Label": "Office", "Address": "Street 1"}
    found = parsed(whatsapp, tmp_path, a_form(whatsapp, "", **fields))
    assert isinstance(found, Written)
    assert found.text == "Location: 52.5, 13.4, Office, Street 1"


def test_a_file_is_fetched_by_its_sids_with_credentials(
    sms: FakeTwilio, tmp_path: Path, settings: Settings
) -> None:
    photo = ("x.jpg", "image/jpeg", b"\xff\xd8\xff" + b"p" * 500)

    async def main() -> None:
        async with receiving(sms, tmp_path) as (platform, intake):
            await asyncio.to_thread(sms.say, ANN, "Look", [photo])
            await asyncio.to_thread(sms.wait_for, lambda: intake.inbound)
            (written,) = intake.inbound
            assert isinstance(written, Written)
            (attachment,) = written.attachments
            assert (attachment.name, attachment.type) == ("attachment-1.jpg", "image/jpeg")
            download = await platform.locate(attachment)
            assert "fake-auth-token" not in repr(download)
            async with FetchingClient(settings, allowed=lambda address: True) as client:
                fetched = await client.fetch(download, attachment.name)
                assert fetched.size == len(photo[2])
                fetched.drop()

    asyncio.run(main())
    assert "authorization" in sms.wait_for_request("GET */Media/*").headers


def test_media_elsewhere_never_gets_the_credentials(sms: FakeTwilio, tmp_path: Path) -> None:
    """CVE-2026-28467: the URL is made of the SIDs, and hosts are Twilio's."""
    evil = f"https://evil.example.org/Messages/MM{'a' * 32}/Media/ME{'b' * 32}"
    form = a_form(sms, "Look", NumMedia="1", MediaUrl0=evil, MediaContentType0="image/png")
    found = parsed(sms, tmp_path, form)
    assert isinstance(found, Written)

    async def main() -> None:
        platform = make_platform(sms, tmp_path)
        try:
            download = await platform.locate(found.attachments[0])
        finally:
            await platform.close()
        assert download.url.startswith(f"{sms.url}/2010-04-01/Accounts/{ACCOUNT_SID}/")
        assert download.hosts == (sms.url, ".twilio.com", ".twiliocdn.com")

    asyncio.run(main())


def test_without_a_public_url_the_list_is_read_regularly(
    sms: FakeTwilio, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bullpen.channels.twilio.platform.POLL_SECONDS", 0.05)

    async def main() -> None:
        async with receiving(sms, tmp_path, {"public_url": ""}) as (platform, intake):
            await asyncio.to_thread(sms.wait_for, lambda: intake.connections >= 3)
            await platform.send(a_part(), no_note)

    asyncio.run(main())
    assert "StatusCallback" not in sms.wait_for_request("POST */Messages.json").form()
