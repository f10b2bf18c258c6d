"""What Twilio's list of messages tells: what became of a part, and what was missed."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from bullpen.channels.failures import OutcomeUnknown, RateLimited
from bullpen.channels.inbound import Written
from bullpen.channels.platform import Recovered, Sending, Verdict
from bullpen.core.clock import HOUR, MINUTE, SECOND, SystemClock
from tests.channels.fakes.faults import Fault
from tests.channels.fakes.twilio import FakeTwilio, FakeWhatsApp
from tests.channels.recording import ShiftedClock, no_note
from tests.channels.twilio.accounts import ANN, a_part, a_place, receiving, started

CREATE = "POST */Messages.json"


def recover_lost(
    fake: FakeTwilio, directory: Path, part: Sending, *, taken: bool = True, **settings: str
) -> Recovered:
    """Lose the answer to a part, and look it up with another process after three minutes."""

    async def main() -> Recovered:
        fake.callbacks = ()
        async with started(fake, directory, settings) as platform:
            fake.fail(Fault.ERROR, CREATE, taken=taken)
            with pytest.raises(OutcomeUnknown):
                await platform.send(part, no_note)
        clock = ShiftedClock()
        async with started(fake, directory, settings, clock) as platform:
            clock.ahead = 3 * MINUTE
            return await platform.recover(part)

    return asyncio.run(main())


def test_a_status_callback_settles_an_unknown_part_at_once(sms: FakeTwilio, tmp_path: Path) -> None:
    part = a_part()

    async def main() -> None:
        async with receiving(sms, tmp_path) as (platform, intake):
            sms.fail(Fault.ERROR, CREATE, taken=True)
            with pytest.raises(OutcomeUnknown):
                await platform.send(part, no_note)
            await asyncio.to_thread(sms.wait_for, lambda: intake.inbound)
            (message,) = sms.sent(ANN)
            assert await platform.recover(part) == Recovered(Verdict.FOUND, message.sid)

    asyncio.run(main())
    assert not sms.requests("GET *From=*")


def test_a_part_counts_as_not_sent_only_after_the_callback_and_the_list_had_their_time(
    sms: FakeTwilio, tmp_path: Path
) -> None:
    part = a_part()
    clock = ShiftedClock()

    async def main() -> None:
        async with started(sms, tmp_path, clock=clock) as platform:
            clock.ahead = 115 * SECOND
            assert await platform.recover(part) == Recovered(Verdict.LATER)
            clock.ahead = 125 * SECOND
            assert await platform.recover(part) == Recovered(Verdict.NOT_SENT)

    asyncio.run(main())


def test_a_part_that_twilio_took_is_found_in_the_list(sms: FakeTwilio, tmp_path: Path) -> None:
    found = recover_lost(sms, tmp_path, a_part("It’s *done*"))
    (message,) = sms.sent(ANN)
    assert found == Recovered(Verdict.FOUND, message.sid)


def test_a_part_that_twilio_did_not_take_is_not_sent(sms: FakeTwilio, tmp_path: Path) -> None:
    assert recover_lost(sms, tmp_path, a_part(), taken=False) == Recovered(Verdict.NOT_SENT)


def test_a_queued_part_has_no_date_and_is_found_all_the_same(
    sms: FakeTwilio, tmp_path: Path
) -> None:
    sms.hidden_until_sent = True
    assert recover_lost(sms, tmp_path, a_part()).verdict is Verdict.FOUND


def test_the_sentence_of_a_trial_account_is_not_part_of_the_text(
    sms: FakeTwilio, tmp_path: Path
) -> None:
    sms.trial = True
    assert recover_lost(sms, tmp_path, a_part()).verdict is Verdict.FOUND


def test_an_equal_text_of_an_earlier_part_is_not_taken_for_the_part(
    sms: FakeTwilio, tmp_path: Path
) -> None:
    now = SystemClock().now()
    second = a_part("Done.", key="bABCD2.0", began_at=now - 150 * SECOND)

    async def main() -> None:
        async with started(sms, tmp_path) as platform:
            await platform.send(a_part("Done.", key="bABCD1.0"), no_note)
            # The same process knows whose it is.
            assert await platform.recover(second) == Recovered(Verdict.NOT_SENT)
        sms.sent(ANN)[0].created -= 155
        sms.sent(ANN)[0].sent = sms.sent(ANN)[0].created
        async with started(sms, tmp_path) as platform:
            # Another one goes by the time.
            assert await platform.recover(second) == Recovered(Verdict.NOT_SENT)

    asyncio.run(main())


def test_an_earlier_attempt_of_the_part_is_not_taken_for_the_present_one(
    sms: FakeTwilio, tmp_path: Path
) -> None:
    clock = ShiftedClock()

    async def main() -> None:
        async with started(sms, tmp_path, clock=clock) as platform:
            await platform.send(a_part("Done."), no_note)
            clock.ahead = HOUR  # a person has it sent again
            again = a_part("Done.", began_at=clock.now() - 3 * MINUTE)
            sms.sent(ANN)[0].created -= HOUR / SECOND
            assert await platform.recover(again) == Recovered(Verdict.NOT_SENT)

    asyncio.run(main())


def test_a_template_is_found_by_its_variable(tmp_path: Path) -> None:
    with FakeWhatsApp() as fake:
        part = a_part("One\n\ntwo", window_until=1)
        found = recover_lost(fake, tmp_path, part)
        assert found == Recovered(Verdict.FOUND, fake.sent(ANN)[0].sid)


@pytest.mark.parametrize("shift", [-2 * HOUR, 2 * HOUR])
def test_a_wrong_clock_does_not_hide_a_part(shift: int, sms: FakeTwilio, tmp_path: Path) -> None:
    clock = ShiftedClock()
    clock.ahead = shift
    part = a_part(began_at=clock.now())

    async def main() -> None:
        sms.callbacks = ()
        async with started(sms, tmp_path, clock=clock) as platform:
            sms.fail(Fault.ERROR, CREATE, taken=True)
            with pytest.raises(OutcomeUnknown):
                await platform.send(part, no_note)
        clock.ahead += 3 * MINUTE
        async with started(sms, tmp_path, clock=clock) as platform:
            assert (await platform.recover(part)).verdict is Verdict.FOUND

    asyncio.run(main())


def test_a_look_up_that_fails_decides_nothing(sms: FakeTwilio, tmp_path: Path) -> None:
    async def main() -> None:
        async with started(sms, tmp_path) as platform:
            sms.listing = False
            with pytest.raises(OSError, match="Twilio"):
                await platform.recover(a_part(began_at=0))
            with pytest.raises(OSError, match="Twilio"):
                await platform.missed(a_place(), 100)
            sms.fail(Fault.LIMIT, "GET *", seconds=7)
            with pytest.raises(RateLimited):
                await platform.missed(a_place(), 100)

    asyncio.run(main())


def texts(payloads: list[object]) -> list[str]:
    return [str(each["Body"]) for each in payloads if isinstance(each, dict)]


def test_messages_without_a_webhook_are_found_in_order_and_parsed_alike(
    sms: FakeTwilio, tmp_path: Path
) -> None:
    photo = ("x.png", "image/png", b"\x89PNG")
    now = time.time()
    for number in range(5):
        sms.say(ANN, f"message {number}", push=False, created=now - 50 + number)
    sid = sms.say(ANN, "with a photo", [photo], push=False, created=now - 40)

    async def main() -> None:
        async with started(sms, tmp_path) as platform:
            await platform.send(a_part("an answer"), no_note)
            found = await platform.missed(a_place(), 100)
            assert texts([*found]) == [
                *(f"message {number}" for number in range(5)),
                "with a photo",
            ]
            last = platform.parse(found[-1])
            assert isinstance(last, Written)
            assert last.source.keys == (sid,)
            assert abs(last.source.at - int((now - 40) * SECOND)) < 3 * SECOND
            assert [each.type for each in last.attachments] == ["image/png"]
            pushed = next(each for each in sms.messages if each.sid == sid)
            live = platform.parse(sms.form(pushed))
            assert isinstance(live, Written)
            assert live.attachments == last.attachments
            assert live.source.keys == last.source.keys

    asyncio.run(main())


def test_many_missed_messages_come_page_by_page_also_within_one_second(
    sms: FakeTwilio, tmp_path: Path
) -> None:
    now = time.time()
    for number in range(25):
        sms.say(ANN, f"message {number}", push=False, created=int(now - 60) + number // 10)

    async def main() -> None:
        async with started(sms, tmp_path) as platform:
            place, found = a_place(), []
            while page := await platform.missed(place, 10):
                assert len(page) <= 10
                found += page
                last = platform.parse(page[-1])
                assert isinstance(last, Written)
                place = a_place(place.since, last.cursor)
            assert len({str(each["MessageSid"]) for each in found}) == 25
            assert texts([*found]) == [f"message {number}" for number in range(25)]

    asyncio.run(main())


def test_more_than_a_page_of_the_api_is_read(
    sms: FakeTwilio, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bullpen.channels.twilio.api.PAGE_SIZE", 4)
    for number in range(10):
        sms.say(ANN, f"message {number}", push=False)

    async def main() -> None:
        async with started(sms, tmp_path) as platform:
            assert len(await platform.missed(a_place(), 100)) == 10

    asyncio.run(main())


def test_what_is_older_than_wanted_is_not_fetched(sms: FakeTwilio, tmp_path: Path) -> None:
    now = time.time()
    sms.say(ANN, "old", push=False, created=now - 7200)
    sms.say(ANN, "new", push=False, created=now - 60)

    async def main() -> None:
        async with started(sms, tmp_path) as platform:
            place = a_place(SystemClock().now() - HOUR)
            assert texts([*await platform.missed(place, 100)]) == ["new"]
            assert await platform.newest(place)
            assert not await platform.newest(a_place(SystemClock().now() - 30 * SECOND))

    asyncio.run(main())
