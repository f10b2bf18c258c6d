"""Receiving on Slack: nothing is acknowledged before it is stored, and nothing ends for good."""

from __future__ import annotations

import asyncio
import json
import time

import aiohttp
import pytest

from bullpen.channels.failures import ChannelDown
from bullpen.channels.inbound import Edited, Pressed, Proof, Written
from bullpen.channels.listener import MAX_BODY_BYTES
from bullpen.channels.platform import Place
from bullpen.channels.slack import socket as slack_socket
from bullpen.channels.slack import webhook as slack_webhook
from bullpen.channels.slack.platform import Slack
from tests.channels.fakes.faults import Fault
from tests.channels.fakes.slack import APP_TOKEN, BOT_TOKEN, sign
from tests.channels.on_slack.account import (
    ANN,
    BOB,
    Account,
    text_part,
)
from tests.channels.recording import RecordingIntake, no_note, until
from tests.ports import free_port

OPEN = "POST /api/apps.connections.open"


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slack_socket, "FIRST_WAIT_SECONDS", 0.02)
    monkeypatch.setattr(slack_socket, "GRACE_SECONDS", 1.0)


@pytest.fixture(params=["socket", "http"])
def by(request: pytest.FixtureRequest, account: Account) -> Account:
    """The account with each transport."""
    transport: str = request.param
    if transport == "http":
        port = free_port()
        account.settings |= {
            "transport": "http",
            "public_url": f"http://127.0.0.1:{port}/slack",
            "port": str(port),
            "app_token": "",
        }
        account.fake.hook = f"http://127.0.0.1:{port}/slack/events"
    return account


def test_what_people_do_arrives_and_is_acknowledged(by: Account) -> None:
    fake = by.fake
    direct, channel = fake.new_chat(direct=True), fake.new_chat(direct=False, name="general")

    async def work(slack: Slack, intake: RecordingIntake) -> None:
        first = fake.say(direct, ANN, "hello")
        second = fake.say(channel, BOB, "do it")
        fake.edit(direct, first, "hello there")
        fake.command(channel, ANN, "/bullpen", "status")
        await until(lambda: len(intake.inbound) >= 5 and not fake.unacked())
        found = intake.inbound
        texts = sorted({each.text for each in found if isinstance(each, Written)})
        assert texts == ["/status", "do it", "hello"]
        assert [each.text for each in found if isinstance(each, Edited)] == ["hello there"]
        keys = {
            each.source.keys[0]
            for each in found
            if isinstance(each, Written) and each.text == "do it"
        }
        assert keys == {f"{channel}:{second}"}  # the message and the mention

    by.receive(work)


def test_a_post_comes_back_as_its_proof(by: Account) -> None:
    fake = by.fake
    chat = fake.new_chat(direct=True)

    async def work(slack: Slack, intake: RecordingIntake) -> None:
        receipt = await slack.send(text_part(chat), no_note)
        [proof] = await until(lambda: intake.inbound)
        assert proof == Proof(key="b0001.17.0", receipt=receipt)

    by.receive(work)


def test_a_button_arrives(by: Account) -> None:
    fake = by.fake
    chat = fake.new_chat(direct=True)
    actions = {"type": "actions", "elements": [{"type": "button", "value": "held:1:drop"}]}

    async def work(slack: Slack, intake: RecordingIntake) -> None:
        fake.say(chat, "U0FAKEBOT", "held", blocks=[actions], live=False)
        fake.press(chat, ANN, "held:1:drop")
        [pressed] = await until(lambda: intake.inbound)
        assert isinstance(pressed, Pressed)
        assert pressed.value == "held:1:drop"

    by.receive(work)


def test_what_is_not_stored_is_not_acknowledged_and_comes_again(by: Account) -> None:
    fake = by.fake
    chat = fake.new_chat(direct=True)

    async def work(slack: Slack, intake: RecordingIntake) -> None:
        intake.fail()
        sent = fake.say(chat, ANN, "hello")
        await until(lambda: intake.refused)
        await asyncio.sleep(0.05)
        assert not fake.is_acked(sent)
        intake.heal()
        await until(lambda: intake.payloads and fake.is_acked(sent))
        assert intake.texts == ["hello"]

    by.receive(work)


def test_a_burst_keeps_its_order_and_is_acknowledged_in_time(account: Account) -> None:
    fake = account.fake
    chat = fake.new_chat(direct=True)

    async def work(slack: Slack, intake: RecordingIntake) -> None:
        await until(lambda: fake.connections() == 2)
        await asyncio.to_thread(lambda: [fake.say(chat, ANN, str(each)) for each in range(200)])
        await until(lambda: len(intake.payloads) == 200 and not fake.unacked())
        assert all(each.attempts == 0 for each in fake.deliveries)
        texts = intake.texts
        assert texts == [str(each) for each in range(200)]

    account.receive(work)


def test_there_are_two_connections_and_one_stays_while_the_other_is_renewed(
    account: Account,
) -> None:
    fake = account.fake
    chat = fake.new_chat(direct=True)

    async def work(slack: Slack, intake: RecordingIntake) -> None:
        await until(lambda: fake.connections() == 2)
        await asyncio.to_thread(fake.disconnect, "warning", 1)
        await until(lambda: len(fake.requests(OPEN)) == 3 and fake.connections() == 2)
        sent = fake.say(chat, ANN, "hello")
        await until(lambda: fake.is_acked(sent))
        assert (intake.calls, intake.open_connections) == (["connected"], 2)

    account.receive(work)


def test_a_connection_that_is_renewed_still_takes_its_acknowledgements(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slack_socket, "CONNECTIONS", 1)
    fake = account.fake
    chat = fake.new_chat(direct=True)

    async def work(slack: Slack, intake: RecordingIntake) -> None:
        intake.holds = True
        sent = fake.say(chat, ANN, "hello")
        await until(lambda: intake.held)
        await asyncio.to_thread(fake.disconnect, "warning", 1)
        await until(lambda: fake.connections() == 1)
        intake.held[0].set_result(None)
        await until(lambda: fake.is_acked(sent))
        assert len(intake.payloads) == 1

    account.receive(work)


def test_lost_connections_are_opened_again_and_told(account: Account) -> None:
    fake = account.fake
    chat = fake.new_chat(direct=True)

    async def work(slack: Slack, intake: RecordingIntake) -> None:
        await until(lambda: fake.connections() == 2)
        await asyncio.to_thread(fake.drop_connections)
        await until(lambda: intake.connections == 2)
        assert intake.calls[1] in intake.lost
        await until(lambda: fake.connections() == 2)
        sent = fake.say(chat, ANN, "hello")
        await until(lambda: fake.is_acked(sent))

    account.receive(work)


def test_slack_may_be_gone_for_a_while(account: Account) -> None:
    fake = account.fake

    async def work(slack: Slack, intake: RecordingIntake) -> None:
        await until(lambda: fake.connections() == 2)
        await asyncio.to_thread(fake.vanish, 0.5)
        await until(lambda: intake.connections == 2)

    account.receive(work)


def test_a_connection_without_a_greeting_does_not_count(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slack_socket, "HELLO_SECONDS", 0.2)
    account.fake.keep_greeting = True

    async def main(slack: Slack) -> None:
        intake = RecordingIntake(slack.parse)
        task = asyncio.create_task(slack.receive(intake))
        await until(lambda: len(account.fake.requests(OPEN)) >= 4)
        assert intake.calls == []
        task.cancel()
        await asyncio.wait({task})

    account.run(main)


@pytest.mark.parametrize(
    "code", ["invalid_auth", "token_revoked", "account_inactive", "not_allowed_token_type"]
)
def test_a_wrong_app_token_ends_in_a_state_and_not_in_a_loop(account: Account, code: str) -> None:
    account.fake.app_token_error = code

    async def work(slack: Slack, intake: RecordingIntake) -> None:
        raise AssertionError("it is connected")

    with pytest.raises(ChannelDown) as caught:
        account.receive(work)
    assert caught.value.code == code
    assert "app-level token" in caught.value.reason
    assert "connections:write" in caught.value.hint
    assert len(account.fake.requests(OPEN)) <= slack_socket.CONNECTIONS


def test_a_token_that_is_revoked_later_ends_in_a_state(account: Account) -> None:
    fake = account.fake

    async def work(slack: Slack, intake: RecordingIntake) -> None:
        await until(lambda: fake.connections() == 2)
        fake.app_token_error = "token_revoked"
        await asyncio.to_thread(fake.drop_connections)
        await asyncio.sleep(20)

    with pytest.raises(ChannelDown, match="revoked"):
        account.receive(work)


@pytest.mark.parametrize("reason", ["link_disabled", "too_many_websockets"])
def test_socket_mode_that_is_switched_off_ends_in_a_state(account: Account, reason: str) -> None:
    fake = account.fake

    async def work(slack: Slack, intake: RecordingIntake) -> None:
        await until(lambda: fake.connections() == 2)
        await asyncio.to_thread(fake.disconnect, reason, 1)
        await asyncio.sleep(20)

    with pytest.raises(ChannelDown) as caught:
        account.receive(work)
    assert caught.value.code == reason
    assert caught.value.hint


@pytest.mark.parametrize(
    ("event", "code"),
    [
        ({"type": "app_uninstalled"}, "app_uninstalled"),
        ({"type": "tokens_revoked", "tokens": {"bot": ["U0FAKEBOT"]}}, "token_revoked"),
    ],
)
def test_a_removed_app_is_a_state_and_its_event_is_acknowledged(
    by: Account, event: dict[str, object], code: str
) -> None:
    fake = by.fake

    async def work(slack: Slack, intake: RecordingIntake) -> None:
        fake.push_event(str(event["type"]), dict(event))
        await asyncio.sleep(20)

    with pytest.raises(ChannelDown) as caught:
        by.receive(work)
    assert caught.value.code == code
    fake.wait_for(lambda: not fake.unacked())


def test_another_process_on_the_app_is_told(
    account: Account, caplog: pytest.LogCaptureFixture
) -> None:
    account.fake.extra_connections = 2

    async def work(slack: Slack, intake: RecordingIntake) -> None:
        await until(lambda: account.fake.connections() == 2)
        await until(lambda: "other connections use" in caplog.text)

    account.receive(work)
    assert "other connections use the app-level token" in caplog.text


def test_oc_17847_connections_that_bring_nothing_are_no_proof(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slack_socket, "SWEEP_SECONDS", 0.05)

    async def work(slack: Slack, intake: RecordingIntake) -> None:
        await until(lambda: intake.connections >= 3)
        assert not intake.lost

    account.receive(work)


def test_alone_on_the_app_nothing_is_told(
    account: Account, caplog: pytest.LogCaptureFixture
) -> None:
    async def work(slack: Slack, intake: RecordingIntake) -> None:
        await until(lambda: account.fake.connections() == 2)

    account.receive(work)
    assert "other connections" not in caplog.text


def test_the_ticket_of_a_connection_is_in_no_log(
    account: Account, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    account.fake.fail(Fault.ERROR, "GET /link", times=2, status=403)

    async def work(slack: Slack, intake: RecordingIntake) -> None:
        await until(lambda: account.fake.connections() == 2)

    account.receive(work)
    assert "ticket" not in caplog.text
    assert APP_TOKEN not in caplog.text
    assert BOT_TOKEN not in caplog.text


def place(chat: str, cursor: str = "", *, direct: bool = False) -> Place:
    return Place(chat=chat, direct=direct, cursor=cursor, since=0)


def texts(slack: Slack, payloads: object) -> list[str]:
    assert isinstance(payloads, list)
    found = [slack.parse(each) for each in payloads]
    return [each.text for each in found if isinstance(each, Written)]


def test_what_was_missed_is_fetched_in_order_and_page_by_page(account: Account) -> None:
    fake = account.fake
    chat = fake.new_chat(direct=True)
    seen = fake.say(chat, ANN, "seen", live=False)
    for number in range(7):
        fake.say(chat, ANN, str(number), live=False)
    fake.max_page = 2

    async def work(slack: Slack) -> None:
        await slack.send(text_part(chat), no_note)
        found = await slack.missed(place(chat, seen, direct=True), 5)
        assert texts(slack, found) == ["0", "1", "2", "3", "4"]
        last = slack.parse(found[-1])
        assert isinstance(last, Written)
        rest = await slack.missed(place(chat, last.cursor, direct=True), 5)
        assert texts(slack, rest) == ["5", "6"]
        assert await slack.newest(place(chat, last.cursor, direct=True))
        end = slack.parse(rest[-1])
        assert isinstance(end, Written)
        assert not await slack.newest(place(chat, end.cursor, direct=True))

    account.run(work)


def test_replies_are_fetched_from_their_thread(account: Account) -> None:
    fake = account.fake
    chat = fake.new_chat(direct=False)
    root = fake.say(chat, ANN, "root", live=False)
    fake.say(chat, ANN, "reply", thread=root, live=False)
    fake.say(chat, ANN, "next", live=False)

    async def work(slack: Slack) -> None:
        assert texts(slack, await slack.missed(place(chat, root), 9)) == ["next"]
        [reply] = await slack.missed(place(f"{chat}/{root}", root), 9)
        found = slack.parse(reply)
        assert isinstance(found, Written)
        assert (found.text, found.source.chat.id, found.source.thread) == ("reply", chat, root)
        assert found.cursor_chat == f"{chat}/{root}"

    account.run(work)


def test_what_is_refused_in_a_shared_channel_is_not_taken_in_from_its_history(
    account: Account,
) -> None:
    """An event names a channel that is shared with another workspace; the history does not."""
    fake = account.fake
    chat = fake.new_chat(direct=False)
    fake.chats[chat].shared = True
    fake.say(chat, ANN, "hello", live=False)

    async def work(slack: Slack) -> None:
        await slack.chats()
        assert texts(slack, await slack.missed(place(chat), 9)) == []
        fake.chats[chat].shared = False
        await slack.chats()
        assert texts(slack, await slack.missed(place(chat), 9)) == ["hello"]

    account.run(work)


def test_the_past_before_the_limit_is_not_fetched(account: Account) -> None:
    chat = account.fake.new_chat(direct=True)
    account.fake.say(chat, ANN, "old", live=False)

    async def work(slack: Slack) -> None:
        since = slack.context.clock.now() + 1_000
        assert await slack.missed(Place(chat=chat, direct=True, cursor="", since=since), 9) == []

    account.run(work)


def test_a_chat_that_cannot_be_read_stops_no_other(account: Account) -> None:
    chat = account.fake.new_chat(direct=True)
    account.fake.say(chat, ANN, "hello", live=False)

    async def work(slack: Slack) -> None:
        assert await slack.missed(place("C0GONE0001"), 9) == []
        assert len(await slack.missed(place(chat, direct=True), 9)) == 1
        account.fake.look_ups = False
        with pytest.raises(ConnectionError):
            await slack.missed(place(chat, direct=True), 9)

    account.run(work)


def test_the_chats_of_the_bot_are_listed(account: Account) -> None:
    fake = account.fake
    direct, channel = fake.new_chat(direct=True), fake.new_chat(direct=False, name="general")

    async def work(slack: Slack) -> None:
        found = await slack.chats()
        assert found is not None
        assert [(each.id, each.direct, each.name) for each in found] == [
            (direct, True, ""),
            (channel, False, "general"),
        ]
        assert await slack.person_name(ANN) == ANN.lower()
        assert await slack.person_name(ANN) == ANN.lower()
        assert len(fake.requests("* /api/users.info")) == 1

    account.run(work)


async def post(account: Account, body: str, headers: dict[str, str]) -> int:
    """Post to the listener as Slack does; returns the status."""
    headers = {"Content-Type": "application/json", **headers}
    async with (
        aiohttp.ClientSession() as session,
        session.post(account.fake.hook, data=body, headers=headers) as answer,
    ):
        return answer.status


def http(account: Account) -> Account:
    """The account with HTTP events."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    account.settings |= {"transport": "http", "public_url": url, "port": str(port)}
    account.fake.hook = f"{url}/events"
    return account


def test_http_events_need_a_valid_signature(account: Account) -> None:
    """Blank, foreign, old, hostile and replayed with another body (CVE-2026-26319, -32980)."""
    body = json.dumps({"type": "event_callback", "event": {"type": "team_join"}})
    hostile = [
        {},
        sign(body, secret="another"),
        sign(body, at=time.time() - 301),
        sign(body + " "),
        {**sign(body), "X-Slack-Request-Timestamp": "soon"},
        {**sign(body), "X-Slack-Request-Timestamp": "9" * 400},
        {"X-Slack-Signature": sign(body)["X-Slack-Signature"]},
    ]

    async def work(slack: Slack, intake: RecordingIntake) -> None:
        for headers in hostile:
            assert await post(account, body, headers) == 403
        assert intake.payloads == []
        assert await post(account, body, sign(body)) == 200
        assert len(intake.payloads) == 1

    http(account).receive(work)


def test_with_http_the_history_is_read_now_and_then(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An outage of the proxy is seen by nobody, and Slack sends again for six minutes only."""
    monkeypatch.setattr(slack_webhook, "SWEEP_SECONDS", 0.05)

    async def work(slack: Slack, intake: RecordingIntake) -> None:
        await until(lambda: intake.connections >= 3)

    http(account).receive(work)


def test_a_blank_signing_secret_stops_the_start(account: Account) -> None:
    http(account).settings["signing_secret"] = ""

    async def work(slack: Slack, intake: RecordingIntake) -> None:
        raise AssertionError("it receives")

    with pytest.raises(ChannelDown, match="signing_secret"):
        account.receive(work)


def test_the_url_is_verified_by_its_challenge(account: Account) -> None:
    body = json.dumps({"type": "url_verification", "challenge": "c1"})

    async def work(slack: Slack, intake: RecordingIntake) -> None:
        headers = {"Content-Type": "application/json", **sign(body)}
        async with (
            aiohttp.ClientSession() as session,
            session.post(account.fake.hook, data=body, headers=headers) as answer,
        ):
            assert (answer.status, await answer.text()) == (200, "c1")
        assert intake.payloads == []

    http(account).receive(work)


@pytest.mark.parametrize("body", ["", "{", "[]", "\ud7ff", "[" * 5000])
def test_a_signed_body_of_any_form_is_answered(account: Account, body: str) -> None:
    async def work(slack: Slack, intake: RecordingIntake) -> None:
        assert await post(account, body, sign(body)) in (200, 400)

    http(account).receive(work)


def test_the_longest_message_of_a_person_arrives_by_http(account: Account) -> None:
    """Slack has a text twice in each event, and writes each letter of most scripts as six bytes."""
    longest = "\u65e5" * 12_000
    blocks = [{"type": "rich_text", "elements": [{"type": "text", "text": longest}]}]
    event = {
        "type": "message",
        "channel": "D1",
        "channel_type": "im",
        "user": ANN,
        "ts": "1700000000.000200",
        "text": longest,
        "blocks": blocks,
    }
    body = json.dumps({"type": "event_callback", "event": event})

    async def work(slack: Slack, intake: RecordingIntake) -> None:
        assert await post(account, body, sign(body)) == 200
        assert intake.texts == [longest]

    assert len(body) > MAX_BODY_BYTES
    http(account).receive(work)


def test_retries_of_slack_are_not_ignored(account: Account) -> None:
    """What a retry header names may never have been stored (vercel/chat#666)."""
    body = json.dumps({"type": "event_callback", "event": {"type": "team_join"}})
    headers = {**sign(body), "X-Slack-Retry-Num": "3", "X-Slack-Retry-Reason": "http_timeout"}

    async def work(slack: Slack, intake: RecordingIntake) -> None:
        assert await post(account, body, headers) == 200
        assert len(intake.payloads) == 1

    http(account).receive(work)
