"""What a failed send means: each fault on the wire, and each error code of Discord."""

from __future__ import annotations

import asyncio
import logging
import time

import pytest

from bullpen.channels.failures import (
    ChannelDown,
    NotSent,
    OutcomeUnknown,
    RateLimited,
    Refused,
    SendFailed,
    Undeliverable,
)
from bullpen.channels.platform import Progress, Stage
from tests.channels.discord.rig import connected, in_loop, started
from tests.channels.fakes.discord import CHANNEL, OTHER_CHANNEL, THREAD, FakeDiscord
from tests.channels.recording import until

POST = "POST */messages"


@pytest.mark.parametrize("fault", ["close", "reset", "half", "error", "html"])
@in_loop
async def test_a_send_without_an_answer_is_unknown_and_sent_once(
    fake: FakeDiscord, fault: str
) -> None:
    async with started(fake) as rig:
        fake.fail(fault, POST)
        began = time.monotonic()
        with pytest.raises(OutcomeUnknown):
            await rig.send(rig.sending(CHANNEL))
        assert time.monotonic() - began < 0.9  # the SDK's first pause would be a second
        await asyncio.sleep(0.05)
        assert len(fake.requests(POST)) == 1


@pytest.mark.parametrize("status", [500, 502, 503, 504, 524])
@in_loop
async def test_no_status_makes_the_sdk_send_again(fake: FakeDiscord, status: int) -> None:
    async with started(fake) as rig:
        fake.fail("error", POST, times=5, status=status)
        with pytest.raises(OutcomeUnknown):
            await rig.send(rig.sending(CHANNEL))
        assert len(fake.requests(POST)) == 1


@in_loop
async def test_a_refused_connection_is_not_sent(fake: FakeDiscord) -> None:
    async with started(fake) as rig:
        with fake.gone():
            await asyncio.sleep(0.05)  # else the SDK may use a connection that is being cut
            with pytest.raises(NotSent):
                await rig.send(rig.sending(CHANNEL))
        await rig.send(rig.sending(CHANNEL))
        assert fake.posts(CHANNEL) == ["hello"]


@in_loop
async def test_a_send_that_hangs_ends_with_our_deadline(fake: FakeDiscord) -> None:
    async with started(fake) as rig:
        fake.fail("hang", POST)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await rig.send(rig.sending(CHANNEL))
        assert len(fake.requests(POST)) == 1


@in_loop
async def test_a_part_that_arrived_without_an_answer_appears_once_after_the_next_attempt(
    fake: FakeDiscord,
) -> None:
    async with started(fake) as rig:
        fake.fail("error", POST, taken=True)
        with pytest.raises(OutcomeUnknown):
            await rig.send(rig.sending(CHANNEL))
        receipt = await rig.send(rig.sending(CHANNEL))
        assert [each.id for each in fake.parts(CHANNEL)] == [receipt]


@in_loop
async def test_a_part_that_arrived_and_was_deleted_counts_as_sent(fake: FakeDiscord) -> None:
    async with started(fake) as rig:
        receipt = await rig.send(rig.sending(CHANNEL))
        fake.delete(receipt)
        assert await rig.send(rig.sending(CHANNEL)) == "deleted:babcd1.0"
        assert fake.posts(CHANNEL) == []


@in_loop
async def test_a_rate_limit_is_raised_at_once_and_for_its_chat_only(fake: FakeDiscord) -> None:
    async with started(fake) as rig:
        fake.fail("limit", POST, seconds=40.0)
        began = time.monotonic()
        with pytest.raises(RateLimited) as caught:
            await rig.send(rig.sending(CHANNEL))
        assert (caught.value.seconds, caught.value.account) == (40.0, False)
        await rig.send(rig.sending(OTHER_CHANNEL, key="babcd2.0"))
        assert time.monotonic() - began < 5


@in_loop
async def test_a_chat_with_a_used_up_limit_is_not_asked_again(fake: FakeDiscord) -> None:
    async with started(fake) as rig:
        fake.buckets[CHANNEL] = (2, 30.0)
        began = time.monotonic()
        for number in range(2):
            await rig.send(rig.sending(CHANNEL, key=f"babcd{number}.0"))
        for _ in range(3):
            with pytest.raises(RateLimited) as caught:
                await rig.send(rig.sending(CHANNEL, key="babcd3.0"))
            assert 20 < caught.value.seconds <= 30
        assert time.monotonic() - began < 5, "a send waited for the window of its limit"
        assert len(fake.requests(POST)) == 2


@in_loop
async def test_messages_within_a_limit_are_sent_without_pauses(fake: FakeDiscord) -> None:
    async with started(fake) as rig:
        fake.buckets[CHANNEL] = (50, 60.0)
        for number in range(20):
            await rig.send(rig.sending(CHANNEL, str(number), key=f"babcd{number}.0"))
        assert fake.posts(CHANNEL) == [str(number) for number in range(20)]


@pytest.mark.parametrize("kind", ["global", "cloudflare"])
@in_loop
async def test_a_limit_of_the_account_holds_up_all_chats(fake: FakeDiscord, kind: str) -> None:
    async with started(fake) as rig:
        fake.limit_kind = kind
        fake.fail("limit", POST, seconds=40.0)
        for chat in (CHANNEL, OTHER_CHANNEL):
            with pytest.raises(RateLimited) as caught:
                await rig.send(rig.sending(chat))
            assert caught.value.account
            assert 30 < caught.value.seconds <= 40
        assert len(fake.requests(POST)) == 1


@pytest.mark.parametrize("code", [50007, 50001, 50013, 10003])
@in_loop
async def test_a_chat_without_a_way_in_is_undeliverable(fake: FakeDiscord, code: int) -> None:
    async with started(fake) as rig:
        fake.closed[CHANNEL] = code
        with pytest.raises(Undeliverable) as caught:
            await rig.send(rig.sending(CHANNEL))
        assert caught.value.code == str(code)


@in_loop
async def test_an_invalid_message_is_refused(fake: FakeDiscord) -> None:
    async with started(fake) as rig:
        with pytest.raises(Refused) as caught:
            await rig.send(rig.sending(CHANNEL, "x" * 2_001))
        assert caught.value.code == "50035"
        assert not isinstance(caught.value, Undeliverable)


@pytest.mark.parametrize("code", [160005, 50083])
@in_loop
async def test_a_closed_thread_is_answered_in_its_channel(fake: FakeDiscord, code: int) -> None:
    async with connected(fake) as rig:
        fake.closed[THREAD] = code
        await rig.send(rig.sending(THREAD))
        assert fake.posts(CHANNEL) == ["hello"]
        assert rig.notes == [CHANNEL], "recovery would look for it in the thread"


@in_loop
async def test_a_closed_thread_that_the_gateway_did_not_tell_of_is_asked_for(
    fake: FakeDiscord,
) -> None:
    async with started(fake) as rig:
        fake.closed[THREAD] = 160005
        await rig.send(rig.sending(THREAD))
        assert fake.posts(CHANNEL) == ["hello"]


@in_loop
async def test_a_revoked_token_ends_a_send_and_the_start_at_the_first_answer(
    fake: FakeDiscord,
) -> None:
    async with started(fake) as rig:
        fake.token = "another.token.now"
        with pytest.raises(ChannelDown) as caught:
            await rig.send(rig.sending(CHANNEL))
        assert caught.value.code == "token_invalid"
        assert "discord.bot_token" in caught.value.hint
        asked = len(fake.requests())
        with pytest.raises(ChannelDown) as caught:
            await rig.discord.start()
        assert caught.value.code == "token_invalid"
        assert len(fake.requests()) == asked + 1


@in_loop
async def test_a_platform_that_is_gone_at_the_start_is_an_error_of_the_connection(
    fake: FakeDiscord,
) -> None:
    async with started(fake) as rig:
        with fake.gone(), pytest.raises(OSError, match=r"."):
            await rig.discord.start()
        for fault in ("close", "error", "html", "half"):
            fake.fail(fault, "GET */users/@me", times=None)
            with pytest.raises(OSError, match=r"."):
                await rig.discord.start()
            fake.heal()
        await rig.discord.start()


@in_loop
async def test_a_direct_chat_that_could_not_be_opened_leaves_nothing_unknown(
    fake: FakeDiscord,
) -> None:
    person = fake.person(7)["id"]
    async with started(fake) as rig:
        fake.fail("close", "POST */users/@me/channels")
        with pytest.raises(NotSent):
            await rig.send(rig.sending(person=person))
        await rig.send(rig.sending(person=person))
        assert fake.posts(fake.direct_chat(person)) == ["hello"]


@in_loop
async def test_reads_and_progress_that_fail_raise_no_error_of_a_send(fake: FakeDiscord) -> None:
    async with started(fake) as rig:
        fake.fail("error", "POST */typing")
        progress = Progress(to=rig.sending(CHANNEL).to, stage=Stage.WORKING)
        with pytest.raises(OSError, match=r"."):
            await rig.discord.show(progress)
        await rig.discord.show(progress)
        assert fake.typing == [CHANNEL]


@in_loop
async def test_every_error_of_a_send_is_one_of_failures(fake: FakeDiscord) -> None:
    async with started(fake) as rig:
        for fault in ("close", "reset", "half", "error", "html", "limit"):
            fake.fail(fault, POST)
            with pytest.raises(SendFailed):
                await rig.send(rig.sending(CHANNEL))
            rig.discord._limits._until.clear()


@in_loop
async def test_logs_have_no_token_and_no_text(
    fake: FakeDiscord, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with connected(fake) as rig:
        person = fake.person(1)["id"]
        fake.fail("limit", "POST */callback")
        fake.command(CHANNEL, person, "status")
        fake.say(fake.direct_chat(person), person, "a private text")
        fake.fail("error", POST)
        with pytest.raises(OutcomeUnknown) as caught:
            await rig.send(rig.sending(CHANNEL, "a private answer"))
        await until(lambda: fake.requests("POST */callback"))
        fake.token = "revoked"
        fake.drop_connections()
        await rig.down()
        logged = caplog.text + repr(caught.value) + str(caught.value.__cause__)
        for secret in ("fake.discord.token", "interaction-token", "a private"):
            assert secret not in logged
