"""Long polling: an update is confirmed after its commit, whatever happens in between."""

from __future__ import annotations

import asyncio

import pytest

from bullpen.channels.failures import ChannelDown
from bullpen.channels.inbound import ChatChange, Edited, Pressed
from bullpen.channels.telegram import polling
from tests.channels.fakes.faults import Fault
from tests.channels.fakes.telegram import TOKEN, FakeTelegram
from tests.channels.recording import RecordingIntake, until
from tests.channels.telegram.double import (
    CHAT,
    GROUP,
    PERSON,
    ask_updates,
    context,
    receiving,
    started,
)

POLL = "POST /bot*/getUpdates"


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the pauses: the fake delays requests as Telegram does."""
    monkeypatch.setattr(polling, "SAME_OFFSET_SECONDS", 0.05)
    monkeypatch.setattr(polling, "CONFLICT_SECONDS", 0.05)
    monkeypatch.setattr(polling, "MAX_PAUSE_SECONDS", 0.1)


def test_updates_arrive_in_order_and_are_confirmed_by_the_next_request(fake: FakeTelegram) -> None:
    async def work() -> None:
        async with receiving(fake) as (intake, _):
            await until(lambda: intake.connections == 1)
            for number in range(250):
                fake.say(CHAT, PERSON, str(number))
            await until(lambda: len(intake.texts) == 250)
            assert intake.texts == [str(each) for each in range(250)]
            await until(lambda: not fake.unacked())

    asyncio.run(work())
    assert "message_reaction" not in fake.requests(POLL)[-1].form()["allowed_updates"]


def test_nothing_is_confirmed_before_its_commit_and_on_stop(fake: FakeTelegram) -> None:
    async def work() -> None:
        async with receiving(fake) as (intake, task):
            intake.holds = True
            first = fake.say(CHAT, PERSON, "one")
            await until(lambda: intake.texts == ["one"])
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            assert fake.unacked() == [int(first)]
        async with receiving(fake) as (intake, _):
            await until(lambda: intake.texts == ["one"])
            await until(lambda: not fake.unacked())

    asyncio.run(work())


def test_an_update_that_was_not_stored_comes_again_with_those_after_it(fake: FakeTelegram) -> None:
    for text in ("one", "two", "three"):
        fake.say(CHAT, PERSON, text)

    async def work() -> None:
        async with started(fake) as platform:
            intake = RecordingIntake(platform.parse)
            intake.fail(times=2)
            task = asyncio.create_task(platform.receive(intake))
            await until(lambda: {"one", "two", "three"} <= set(intake.texts))
            await until(lambda: not fake.unacked())
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    asyncio.run(work())


def test_one_bad_update_does_not_stop_those_after_it(fake: FakeTelegram) -> None:
    """The SDK's own updater asks for such a batch again for ever."""
    fake.push({"message": {"message_id": "x", "chat": {}}})
    fake.push({"message": 5})
    fake.push({"a_new_kind": {"text": "hi"}})
    fake.say(CHAT, PERSON, "after")

    async def work() -> None:
        async with receiving(fake) as (intake, _):
            await until(lambda: intake.texts == ["after"])
            await until(lambda: not fake.unacked())
            assert intake.unreadable.pop()

    asyncio.run(work())


def test_ids_of_updates_may_start_anew_at_a_lower_number(fake: FakeTelegram) -> None:
    async def work() -> None:
        async with receiving(fake) as (intake, _):
            fake.say(CHAT, PERSON, "one")
            await until(lambda: intake.texts == ["one"])
            await until(lambda: not fake.unacked())
            fake._next_update = 1000
            fake.say(CHAT, PERSON, "two")
            fake.say(CHAT, PERSON, "three")
            await until(lambda: intake.texts[-1] == "three")
            await until(lambda: not fake.unacked())

    asyncio.run(work())


def test_a_lost_connection_is_reported_and_made_again(fake: FakeTelegram) -> None:
    async def work() -> None:
        async with receiving(fake) as (intake, _):
            await until(lambda: intake.connections == 1)
            with fake.gone():
                await until(lambda: intake.lost)
                fake.say(CHAT, PERSON, "meanwhile")
            await until(lambda: intake.texts == ["meanwhile"])
            assert intake.connections == 2
            assert not any(TOKEN in each for each in intake.lost)

    asyncio.run(work())


@pytest.mark.parametrize("fault", [Fault.CLOSE, Fault.RESET, Fault.HALF, Fault.ERROR, Fault.HTML])
def test_polling_goes_on_after_each_fault(fake: FakeTelegram, fault: Fault) -> None:
    fake.say(CHAT, PERSON, "one")
    fake.fail(fault, POLL, times=2)

    async def work() -> None:
        async with receiving(fake) as (intake, _):
            await until(lambda: intake.texts == ["one"])
            assert len(intake.lost) == 2
            assert intake.connections == 1

    asyncio.run(work())


def test_a_rate_limit_of_polling_is_waited_for(fake: FakeTelegram) -> None:
    fake.fail(Fault.LIMIT, POLL, seconds=1)

    async def work() -> None:
        async with receiving(fake) as (intake, _):
            await until(lambda: intake.connections == 1)
            assert intake.lost == ["the platform asks to wait 1 s"]

    asyncio.run(work())


def ended(fake: FakeTelegram) -> ChannelDown:
    """How receiving ends."""

    async def work() -> ChannelDown:
        async with receiving(fake) as (_, task):
            async with asyncio.timeout(20):
                with pytest.raises(ChannelDown) as down:
                    await task
            return down.value

    return asyncio.run(work())


def test_another_poller_is_a_state_that_says_so(fake: FakeTelegram) -> None:
    fake.other_poller()
    down = ended(fake)
    assert (down.code, down.reason) == ("conflict", "another process polls the updates of this bot")


def test_one_conflict_is_survived(fake: FakeTelegram, monkeypatch: pytest.MonkeyPatch) -> None:
    """A check, or one request by hand, is not another process."""
    monkeypatch.setattr(polling, "CONFLICT_SECONDS", 0.5)
    monkeypatch.setattr(polling, "CONTESTED_MS", 1000)
    monkeypatch.setattr(polling, "CONTESTED_POLL_SECONDS", 1)

    async def work() -> None:
        async with receiving(fake) as (intake, task), started(fake) as other:
            await until(lambda: intake.connections == 1)
            await until(lambda: len(fake.requests(POLL)) == 2)
            request = asyncio.create_task(ask_updates(other, 3))
            await until(lambda: intake.lost)
            request.cancel()
            await until(lambda: intake.connections == 2)
            fake.say(CHAT, PERSON, "after")
            await until(lambda: intake.texts == ["after"])
            assert not task.done()
            await asyncio.gather(request, return_exceptions=True)

    asyncio.run(work())


def test_a_webhook_of_another_program_is_a_state_that_says_so(fake: FakeTelegram) -> None:
    fake.webhook = "https://elsewhere.example/hook"
    down = ended(fake)
    assert down.code == "webhook_set"
    assert "webhook" in down.reason
    assert fake.webhook, "it is not deleted"


def test_a_revoked_token_is_a_state_and_not_a_loop(fake: FakeTelegram) -> None:
    async def work() -> ChannelDown:
        async with receiving(fake) as (intake, task):
            await until(lambda: intake.connections == 1)
            fake.revoked = True
            fake.drop_connections()
            async with asyncio.timeout(20):
                with pytest.raises(ChannelDown) as down:
                    await task
            return down.value

    assert asyncio.run(work()).code == "token_refused"


def test_edits_buttons_and_changes_of_chats_arrive(fake: FakeTelegram) -> None:
    async def work() -> None:
        async with receiving(fake) as (intake, _):
            await until(lambda: intake.connections)  # the kinds are asked for
            message = fake.say(CHAT, PERSON, "one")
            fake.edit(CHAT, message, "two")
            fake.block(GROUP)
            fake.migrate("-5", "-1009")
            query = fake.press(CHAT, PERSON, "555", "held:17:resume")
            await until(lambda: len(intake.inbound) == 5)
            kinds = [type(each) for each in intake.inbound]
            assert kinds[1:] == [Edited, ChatChange, ChatChange, Pressed]
            await until(lambda: fake.answered == [query])

    asyncio.run(work())


def test_a_button_spins_until_its_commit(fake: FakeTelegram) -> None:
    async def work() -> None:
        async with receiving(fake) as (intake, _):
            intake.holds = True
            query = fake.press(CHAT, PERSON, "555", "held:17:resume")
            await until(lambda: intake.inbound)
            assert not fake.answered
            intake.release()
            await until(lambda: fake.answered == [query])

    asyncio.run(work())


def test_newest_says_whether_updates_wait(fake: FakeTelegram) -> None:
    from bullpen.channels.platform import Place

    place = Place(chat=CHAT, direct=True, cursor="", since=0)

    async def work() -> list[bool]:
        async with started(fake) as platform:
            before = await platform.newest(place)
            fake.say(CHAT, PERSON, "one")
            return [before, await platform.newest(place)]

    assert asyncio.run(work()) == [False, True]


def test_a_batch_of_one_hundred_is_one_request(fake: FakeTelegram) -> None:
    for number in range(100):
        fake.say(CHAT, PERSON, str(number))

    async def work() -> None:
        async with receiving(fake) as (intake, _):
            await until(lambda: len(intake.texts) == 100)

    asyncio.run(work())
    assert len(fake.requests(POLL)) <= 2
    assert context(fake).account == "telegram"
