"""What was written while the client was down, and the files of messages."""

from __future__ import annotations

import time

import pytest

from bullpen.channels.failures import RateLimited
from bullpen.channels.inbound import Attachment, Written
from bullpen.channels.platform import Place
from tests.channels.discord.rig import Rig, connected, in_loop, started
from tests.channels.fakes.discord import CHANNEL, OTHER_CHANNEL, SERVER, FakeDiscord
from tests.channels.recording import until

HISTORY = "GET */messages"


async def missed(rig: Rig, chat: str, cursor: str, *, direct: bool = False) -> list[Written]:
    place = Place(chat=chat, direct=direct, cursor=cursor, since=0)
    found = [rig.discord.parse(each) for each in await rig.discord.missed(place, 100)]
    assert all(isinstance(each, Written) for each in found)
    return [each for each in found if isinstance(each, Written)]


@in_loop
async def test_a_found_message_is_read_as_the_live_one(fake: FakeDiscord) -> None:
    person = fake.person(1)["id"]
    async with connected(fake) as rig:
        first = fake.say(CHANNEL, person, "first")
        fake.say(CHANNEL, person, "second", files=[("a.txt", b"a")])
        fake.say(CHANNEL, person, "third", mention=False)
        await until(lambda: len(rig.intake.texts) == 3)
        assert await missed(rig, CHANNEL, first) == rig.intake.of(Written)[1:]
        direct = fake.direct_chat(person)
        fake.say(direct, person, "in private")
        await until(lambda: len(rig.intake.texts) == 4)
        assert await missed(rig, direct, "", direct=True) == rig.intake.of(Written)[3:]


@in_loop
async def test_the_history_is_read_oldest_first_and_page_by_page(fake: FakeDiscord) -> None:
    person = fake.person(1)["id"]
    direct = fake.direct_chat(person)
    async with started(fake) as rig:
        for number in range(250):
            fake.say(direct, person, str(number))
        cursor, texts = "", []
        while found := await missed(rig, direct, cursor, direct=True):
            texts += [each.text for each in found]
            cursor = found[-1].cursor
        assert texts == [str(number) for number in range(250)]


@in_loop
async def test_messages_of_the_bot_do_not_hide_those_of_people(fake: FakeDiscord) -> None:
    person = fake.person(1)["id"]
    direct = fake.direct_chat(person)
    async with started(fake) as rig:
        first = fake.say(direct, person, "first")
        for number in range(120):
            await rig.send(rig.sending(direct, key=f"babcd{number}.0"))
        fake.say(direct, person, "second")
        assert [each.text for each in await missed(rig, direct, first, direct=True)] == ["second"]


@in_loop
async def test_nothing_older_than_wanted_is_read(fake: FakeDiscord) -> None:
    person = fake.person(1)["id"]
    direct = fake.direct_chat(person)
    async with started(fake) as rig:
        now = int(time.time() * 1000)
        fake.say(direct, person, "old", at=now - 7_200_000)
        fake.say(direct, person, "new", at=now - 1_800_000)
        place = Place(chat=direct, direct=True, cursor="", since=now - 3_600_000)
        [found] = await rig.discord.missed(place, 100)
        written = rig.discord.parse(found)
        assert isinstance(written, Written)
        assert written.text == "new"
        assert abs(written.source.at - (now - 1_800_000)) < 1_000, "when it was written"


@in_loop
async def test_a_channel_without_a_new_message_costs_no_request_at_the_start(
    fake: FakeDiscord,
) -> None:
    person = fake.person(1)["id"]
    read = fake.say(CHANNEL, person, "read")
    other = fake.say(OTHER_CHANNEL, person, "read")
    fake.say(OTHER_CHANNEL, person, "not read")
    async with connected(fake) as rig:
        assert await missed(rig, CHANNEL, read) == []
        assert not fake.requests(HISTORY)
        assert len(await missed(rig, OTHER_CHANNEL, other)) == 1
        fake.say(CHANNEL, person, "later", silent=True)
        assert len(await missed(rig, CHANNEL, read)) == 1, "told once only"


@in_loop
async def test_a_history_that_is_closed_to_the_bot_is_empty(fake: FakeDiscord) -> None:
    async with started(fake) as rig:
        fake.closed[CHANNEL] = 50001
        assert await missed(rig, CHANNEL, "") == []
        assert await missed(rig, "123456789012345678", "") == []


@in_loop
async def test_a_history_that_cannot_be_read_now_is_an_error(fake: FakeDiscord) -> None:
    async with started(fake) as rig:
        fake.lookup = False
        with pytest.raises(ConnectionError):
            await missed(rig, CHANNEL, "")
        fake.lookup = True
        fake.fail("limit", HISTORY, seconds=5)
        with pytest.raises(RateLimited):
            await missed(rig, CHANNEL, "")


@in_loop
async def test_chatter_in_a_server_is_no_sign_of_a_deaf_connection(fake: FakeDiscord) -> None:
    person = fake.person(1)["id"]
    async with started(fake) as rig:
        read = fake.say(CHANNEL, person, "read")
        fake.say(CHANNEL, person, "chatter", mention=False)
        place = Place(chat=CHANNEL, direct=False, cursor=read, since=0)
        assert not await rig.discord.newest(place)
        fake.say(CHANNEL, person, "bot?")
        assert await rig.discord.newest(place)


async def _attachment(rig: Rig) -> Attachment:
    person = rig.fake.person(1)["id"]
    rig.fake.say(CHANNEL, person, "see", files=[("a.txt", b"the file")])
    await until(lambda: rig.intake.texts)
    [attachment] = rig.intake.of(Written)[0].attachments
    return attachment


@in_loop
async def test_an_attachment_is_fetched_from_hosts_of_discord_only(fake: FakeDiscord) -> None:
    async with connected(fake) as rig:
        download = await rig.discord.locate(await _attachment(rig))
        assert download.url.startswith(f"{fake.url}/attachments/")
        assert "#" not in download.url
        assert not download.headers, "the CDN would get the token"
        assert download.hosts == ("cdn.discordapp.com", "media.discordapp.net", fake.url)
        assert not fake.requests("GET */messages/*")


@in_loop
async def test_an_expired_url_of_an_attachment_is_renewed(fake: FakeDiscord) -> None:
    async with connected(fake) as rig:
        attachment = await _attachment(rig)
        rig.clock.ahead += 90_000_000
        fake.signed_for = 200_000
        download = await rig.discord.locate(attachment)
        assert download.url != attachment.source.partition("#")[0]
        assert len(fake.requests("GET */messages/*")) == 1


@in_loop
async def test_a_direct_chat_is_not_taken_for_one_of_a_server(fake: FakeDiscord) -> None:
    person = fake.person(1)["id"]
    async with connected(fake) as rig:
        direct = fake.direct_chat(person)
        fake.say(direct, person, "hello")
        fake.say(CHANNEL, person, "hello")
        await until(lambda: len(rig.intake.texts) == 2)
        chats = [each.source.chat for each in rig.intake.of(Written)]
        assert [each.direct for each in chats] == [True, False]
        assert fake.channels[chats[1].id]["guild_id"] == SERVER
