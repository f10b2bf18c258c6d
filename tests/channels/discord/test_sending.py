"""What the bot posts: one message a part under its nonce, no mentions, files, buttons, replies."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Mapping
from dataclasses import replace

import pytest

from bullpen.channels.failures import OutcomeUnknown, Refused
from bullpen.channels.platform import Button, Progress, Stage, Verdict
from bullpen.core.answers.attachments import OpenFile
from tests.channels.discord.rig import connected, in_loop, started
from tests.channels.fakes.discord import CHANNEL, THREAD, FakeDiscord

POST = "POST */messages"
MINUTE = 60_000


def opened(name: str, data: bytes) -> OpenFile:
    """A file of a response. Read-only in memory, as `open` gives it."""
    return OpenFile(name, len(data), io.BytesIO(data))


def body(fake: FakeDiscord) -> Mapping[str, object]:
    return fake.wait_for_request(POST).json()


@in_loop
async def test_each_part_has_its_key_as_an_enforced_nonce(fake: FakeDiscord) -> None:
    async with started(fake) as rig:
        await rig.send(rig.sending(CHANNEL, key="babcd12.3"))
        sent = body(fake)
        assert (sent["nonce"], sent["enforce_nonce"]) == ("babcd12.3", True)
        again = await rig.send(rig.sending(CHANNEL, key="babcd12.3"))
        assert [each.id for each in fake.parts(CHANNEL)] == [again]


@pytest.mark.parametrize(
    "text", ["@everyone look", "@here", "<@500000000000000001>", "<@&1>", "hi @everyone\n`x`"]
)
@in_loop
async def test_text_of_a_model_mentions_nobody(fake: FakeDiscord, text: str) -> None:
    async with started(fake) as rig:
        await rig.send(rig.sending(CHANNEL, text))
        assert body(fake)["allowed_mentions"] == {"parse": [], "replied_user": False}
        assert not any(each.pings for each in fake.parts(CHANNEL))


@in_loop
async def test_links_get_no_previews(fake: FakeDiscord) -> None:
    async with started(fake) as rig:
        await rig.send(rig.sending(CHANNEL, "https://example.org"))
        assert body(fake)["flags"] == 4


@in_loop
async def test_the_first_part_in_a_server_refers_to_its_message(fake: FakeDiscord) -> None:
    person = fake.person(1)["id"]
    async with connected(fake) as rig:
        asked = fake.say(CHANNEL, person, "question")
        await rig.send(rig.sending(CHANNEL, message=asked))
        assert body(fake)["message_reference"] == {"message_id": asked, "fail_if_not_exists": False}
        fake.journal.clear()
        await rig.send(rig.sending(CHANNEL, message=asked, part=1, key="babcd1.1"))
        assert "message_reference" not in body(fake)
        fake.journal.clear()
        direct = fake.direct_chat(person)
        await rig.send(rig.sending(direct, message=asked, key="babcd2.0"))
        assert "message_reference" not in body(fake)


@in_loop
async def test_a_person_without_a_chat_is_written_to_directly(fake: FakeDiscord) -> None:
    person = fake.person(9)["id"]
    async with started(fake) as rig:
        await rig.send(rig.sending(person=person))
        await rig.send(rig.sending(person=person, key="babcd2.0"))
        assert fake.posts(fake.direct_chat(person)) == ["hello", "hello"]
        assert len(fake.requests("POST */users/@me/channels")) == 1


@in_loop
async def test_a_file_is_sent_with_its_name_and_bytes_and_once(fake: FakeDiscord) -> None:
    data = bytes(range(256)) * 9_000
    async with started(fake) as rig:
        fake.fail("error", POST, taken=True)
        with pytest.raises(OutcomeUnknown):
            await rig.send(rig.sending(CHANNEL, file=opened("[a] b.bin", data)))
        await rig.send(rig.sending(CHANNEL, file=opened("[a] b.bin", data)))
        [part] = fake.parts(CHANNEL)
        assert part.file == "[a] b.bin"
        assert list(fake.files.values()) == [data]


@in_loop
async def test_a_file_that_is_too_large_is_refused(fake: FakeDiscord) -> None:
    async with started(fake) as rig:
        with pytest.raises(Refused) as caught:
            await rig.send(rig.sending(CHANNEL, file=opened("big", bytes((10 << 20) + 1))))
        assert caught.value.code == "40005"


@in_loop
async def test_buttons_stand_below_the_part(fake: FakeDiscord) -> None:
    async with started(fake) as rig:
        buttons = tuple(Button(label=f"Choice {each}", value=f"held:1:{each}") for each in range(5))
        await rig.send(rig.sending(CHANNEL, buttons=buttons))
        [row] = fake.messages[CHANNEL][0]["components"]
        assert [each["custom_id"] for each in row["components"]] == [each.value for each in buttons]


@in_loop
async def test_typing_is_shown_while_a_message_waits_and_is_processed(fake: FakeDiscord) -> None:
    async with started(fake) as rig:
        for stage in Stage:
            await rig.discord.show(Progress(to=rig.sending(CHANNEL).to, stage=stage))
        assert fake.typing == [CHANNEL, CHANNEL]


@in_loop
async def test_parts_of_several_chats_are_sent_side_by_side(fake: FakeDiscord) -> None:
    people = [fake.person(each)["id"] for each in range(8)]
    chats = [fake.direct_chat(each) for each in people]
    async with started(fake) as rig:
        fake.fail("hang", f"POST */channels/{chats[0]}/messages")
        parts = [rig.sending(each, key=f"b{each}.0") for each in chats]
        tasks = [asyncio.create_task(rig.send(each)) for each in parts]
        await asyncio.wait_for(asyncio.gather(*tasks[1:]), 5)
        tasks[0].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@in_loop
async def test_a_recent_part_is_sent_again_under_its_nonce(fake: FakeDiscord) -> None:
    async with started(fake) as rig:
        part = rig.sending(CHANNEL)
        rig.clock.ahead += MINUTE - 5_000
        assert (await rig.discord.recover(part)).verdict is Verdict.NOT_SENT
        assert not fake.requests("GET */messages*")


@in_loop
async def test_an_older_part_is_looked_up_in_the_history(fake: FakeDiscord) -> None:
    async with started(fake) as rig:
        other = await rig.send(rig.sending(CHANNEL, "**same** text", key="babcd1.0"))
        fake.fail("error", POST, taken=True)
        part = rig.sending(CHANNEL, "**same** text", key="babcd2.0")
        with pytest.raises(OutcomeUnknown):
            await rig.send(part)
        rig.clock.ahead += 2 * MINUTE
        found = await rig.discord.recover(replace(part, others=frozenset({other})))
        assert found.verdict is Verdict.FOUND
        assert found.receipt == fake.parts(CHANNEL)[1].id


@in_loop
async def test_an_older_part_that_is_not_there_was_not_sent(fake: FakeDiscord) -> None:
    person = fake.person(1)["id"]
    async with started(fake) as rig:
        fake.fail("error", POST)
        part = rig.sending(CHANNEL)
        with pytest.raises(OutcomeUnknown):
            await rig.send(part)
        fake.say(CHANNEL, person, "hello", mention=False)
        rig.clock.ahead += 2 * MINUTE
        assert (await rig.discord.recover(part)).verdict is Verdict.NOT_SENT


@in_loop
async def test_the_first_of_several_attempts_decides_where_a_part_is_looked_up(
    fake: FakeDiscord,
) -> None:
    async with started(fake) as rig:
        for taken in (True, False):
            fake.fail("error", POST, taken=taken)
            with pytest.raises(OutcomeUnknown):
                await rig.send(rig.sending(CHANNEL))
            rig.clock.ahead += MINUTE - 10_000
        part = rig.sending(CHANNEL)  # the last attempt is recent, the message is not
        assert (await rig.discord.recover(part)).verdict is Verdict.FOUND


@in_loop
async def test_an_older_file_is_looked_up_as_well(fake: FakeDiscord) -> None:
    async with started(fake) as rig:
        await rig.send(rig.sending(CHANNEL, "text", key="babcd1.0"))
        fake.fail("close", POST, taken=True)
        part = rig.sending(CHANNEL, file=opened("a.bin", b"x"), key="babcd1.1")
        with pytest.raises(OutcomeUnknown):
            await rig.send(part)
        rig.clock.ahead += 2 * MINUTE
        found = await rig.discord.recover(part)
        assert found.receipt == fake.parts(CHANNEL)[1].id


@in_loop
async def test_a_part_in_the_channel_of_a_closed_thread_is_looked_up_there(
    fake: FakeDiscord,
) -> None:
    async with connected(fake) as rig:
        fake.closed[THREAD] = 160005
        fake.fail("error", f"POST */channels/{CHANNEL}/messages", taken=True)
        part = rig.sending(THREAD)
        with pytest.raises(OutcomeUnknown):
            await rig.send(part)
        rig.clock.ahead += 2 * MINUTE
        again = rig.sending(THREAD, reference=rig.notes[0])
        assert (await rig.discord.recover(again)).verdict is Verdict.FOUND


@in_loop
async def test_a_look_up_that_fails_decides_nothing(fake: FakeDiscord) -> None:
    async with started(fake) as rig:
        part = rig.sending(CHANNEL)
        rig.clock.ahead += 2 * MINUTE
        fake.lookup = False
        with pytest.raises(ConnectionError):
            await rig.discord.recover(part)
        fake.closed[CHANNEL] = 50001
        assert (await rig.discord.recover(part)).verdict is Verdict.CANNOT_TELL
