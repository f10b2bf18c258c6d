"""Start, check and probe of an account on Telegram, and its files."""

from __future__ import annotations

import asyncio
import base64
import urllib.request

import pytest

from bullpen.channels.failures import ChannelDown, NotSent
from bullpen.channels.files.fetching import BadAnswer
from bullpen.channels.inbound import Attachment
from bullpen.channels.platform import Finding, Identity
from bullpen.channels.telegram import platform as telegram
from bullpen.channels.telegram.api import BotApi
from bullpen.channels.telegram.platform import Telegram
from tests.channels.fakes.faults import Fault
from tests.channels.fakes.telegram import BOT_ID, TOKEN, FakeTelegram
from tests.channels.recording import no_note, until
from tests.channels.telegram.double import CHAT, PERSON, context, part, receiving, started


def start(fake: FakeTelegram, **settings: str) -> Identity:
    """What `start` returns."""

    async def work() -> Identity:
        platform = Telegram(context(fake, **settings))
        try:
            return await platform.start()
        finally:
            await platform.close()

    return asyncio.run(work())


def check(fake: FakeTelegram, **settings: str) -> dict[str, Finding]:
    """The findings of a check, by code."""

    async def work() -> list[Finding]:
        platform = Telegram(context(fake, **settings))
        try:
            return await platform.check()
        finally:
            await platform.close()

    return {each.code: each for each in asyncio.run(work())}


def test_start_says_which_bot_this_is(fake: FakeTelegram) -> None:
    assert start(fake) == Identity(str(BOT_ID), "@bullpen_bot", "Bullpen")


@pytest.mark.parametrize(
    ("token", "code"),
    [
        ("", "token_malformed"),
        ("  ", "token_malformed"),
        ("xoxb-1-2", "token_malformed"),
        ("7000000001:AAF/../getMe", "token_malformed"),
        (f"{TOKEN}x", "token_refused"),
    ],
)
def test_a_wrong_token_is_a_state_with_a_hint(fake: FakeTelegram, token: str, code: str) -> None:
    with pytest.raises(ChannelDown) as down:
        start(fake, account="telegram-sage", bot_token=token)
    assert down.value.code == code
    assert "@BotFather" in down.value.hint
    assert not token.strip() or token not in f"{down.value.reason} {down.value.hint}"
    if code == "token_malformed":
        assert "bullpen config set telegram-sage.bot_token" in down.value.hint


@pytest.mark.parametrize("fault", [Fault.CLOSE, Fault.ERROR, Fault.HTML])
def test_a_start_without_an_answer_is_an_os_error(fake: FakeTelegram, fault: Fault) -> None:
    fake.fail(fault, "POST */getMe")
    with pytest.raises(OSError, match="Telegram"):
        start(fake)
    with fake.gone(), pytest.raises(OSError, match="not reachable"):
        start(fake)


def test_a_rate_limit_at_the_start_is_a_state_with_its_time(fake: FakeTelegram) -> None:
    fake.fail(Fault.LIMIT, "POST */getMe", seconds=5820)
    with pytest.raises(ChannelDown) as down:
        start(fake)
    assert (down.value.code, down.value.retry_seconds) == ("rate_limited", 5820)


def test_the_menu_is_only_set_when_it_has_changed(fake: FakeTelegram) -> None:
    start(fake)
    start(fake)
    assert len(fake.requests("POST */setMyCommands")) == 1
    assert {"stop", "help", "agents"} <= {each["command"] for each in fake.menu}
    fake.menu.pop()
    start(fake)
    assert len(fake.requests("POST */setMyCommands")) == 2


def test_a_start_does_not_fail_because_of_the_menu(fake: FakeTelegram) -> None:
    fake.fail(Fault.ERROR, "POST */setMyCommands")
    assert start(fake).name == "@bullpen_bot"


def test_an_own_webhook_is_deleted_before_polling_and_keeps_what_waits(fake: FakeTelegram) -> None:
    fake.webhook = "https://bots.example.org/telegram/updates"
    fake.say(CHAT, PERSON, "waiting")

    async def work() -> None:
        url = "https://bots.example.org/telegram/"
        async with receiving(fake, public_url=url) as (intake, _):
            await until(lambda: intake.texts == ["waiting"])

    asyncio.run(work())
    assert fake.webhook == ""


def test_nothing_connects_after_the_end(fake: FakeTelegram) -> None:
    async def work() -> None:
        async with started(fake) as platform:
            await platform.start()
        with pytest.raises(NotSent, match="closed"):
            await platform.send(part(), no_note)

    asyncio.run(work())
    assert not fake.parts(CHAT)


@pytest.fixture
def short_check(monkeypatch: pytest.MonkeyPatch) -> None:
    """A check that does not wait long for another poller."""
    monkeypatch.setattr(telegram, "CHECK_POLL_SECONDS", 0)


@pytest.mark.usefixtures("short_check")
def test_a_check_speaks_in_telegrams_terms(fake: FakeTelegram) -> None:
    found = check(fake)
    assert list(found) == ["privacy_mode", "poll"]
    assert all(each.ok for each in found.values())
    fake.say(CHAT, PERSON, "waiting")  # the next polls need not wait
    assert "privacy mode is on" in found["privacy_mode"].text
    assert "/setprivacy" in found["privacy_mode"].hint
    fake.me["can_read_all_group_messages"] = True
    assert check(fake)["privacy_mode"].text == "privacy mode is off"
    fake.me["can_join_groups"] = False
    assert "/setjoingroups" in check(fake)["groups"].hint


@pytest.mark.usefixtures("short_check")
def test_a_check_finds_a_webhook_another_poller_and_a_wrong_token(fake: FakeTelegram) -> None:
    fake.webhook = "https://elsewhere.example/hook"
    fake.webhook_error = "Wrong response from the webhook: 502 Bad Gateway"
    fake.say(CHAT, PERSON, "waiting")
    found = check(fake)
    assert not found["webhook_set"].ok
    assert "502" in found["webhook_failing"].text
    assert found["pending"].text == "1 updates wait at Telegram"
    fake.webhook = ""
    fake.other_poller()
    assert not check(fake)["conflict"].ok
    fake.revoked = True
    assert not check(fake)["token_refused"].ok
    with fake.gone():
        assert not check(fake)["unreachable"].ok


def test_a_check_confirms_nothing(fake: FakeTelegram) -> None:
    message = fake.say(CHAT, PERSON, "waiting")
    assert check(fake)["poll"].ok
    assert fake.unacked() == [int(message)]


def test_a_check_while_receiving_does_not_poll(fake: FakeTelegram) -> None:
    async def work() -> None:
        async with started(fake) as platform:
            platform._receiving = True
            assert [each.code for each in await platform.check()] == ["privacy_mode"]

    asyncio.run(work())


def test_a_probe_says_whether_drafts_work(fake: FakeTelegram) -> None:
    async def probe() -> list[Finding]:
        async with started(fake) as platform:
            return await platform.probe(CHAT)

    assert asyncio.run(probe())[0].text == "progress is shown as a draft"
    fake.without.add("sendmessagedraft")
    assert "as typing" in asyncio.run(probe())[0].text


def test_a_file_is_located_on_telegrams_own_host_and_its_url_is_in_no_repr(
    fake: FakeTelegram,
) -> None:
    content = base64.b64encode(b"bytes of the file").decode()
    fake.say(CHAT, PERSON, "look", files=[("a.txt", content)])

    async def work() -> bytes:
        async with started(fake) as platform:
            found = await platform.locate(Attachment(name="a.txt", source="file1"))
            assert found.hosts == (fake.url,)
            assert found.url.startswith(fake.url)
            assert TOKEN not in repr(found)
            with urllib.request.urlopen(found.url) as answer:
                data: bytes = answer.read()
            with pytest.raises(BadAnswer, match="Telegram refused it: wrong file_id"):
                await platform.locate(Attachment(name="b", source="nothing"))
            with fake.gone(), pytest.raises(OSError, match="not reachable"):
                await platform.locate(Attachment(name="b", source="file1"))
            return data

    assert asyncio.run(work()) == b"bytes of the file"


def test_a_file_is_only_fetched_from_the_host_of_the_api() -> None:
    found = BotApi(TOKEN, "https://api.telegram.org").download("documents/a b.txt")
    assert found.hosts == ("api.telegram.org",)
    assert found.url == f"https://api.telegram.org/file/bot{TOKEN}/documents/a%20b.txt"
