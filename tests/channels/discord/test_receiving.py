"""The gateway: order, resumed and new sessions, what ends them, and what a silent one is."""

from __future__ import annotations

import asyncio
import json
import time

import pytest

from bullpen.channels.inbound import ChatChange, Deleted, Edited, Pressed, Proof, Written
from bullpen.channels.platform import Button, Place
from tests.channels.discord.rig import Rig, connected, in_loop, started
from tests.channels.fakes.discord import (
    CHANNEL,
    MESSAGE_CONTENT,
    SERVER,
    THREAD,
    FakeDiscord,
)
from tests.channels.recording import until


def resumes(fake: FakeDiscord) -> int:
    return len(fake.requests("WS /gateway/op6"))


@in_loop
async def test_a_burst_of_200_is_taken_in_in_order(fake: FakeDiscord) -> None:
    person = fake.person(1)["id"]
    direct = fake.direct_chat(person)
    async with connected(fake) as rig:
        for number in range(200):
            fake.say(direct, person, str(number))
        await until(lambda: len(rig.intake.texts) == 200)
        assert rig.intake.texts == [str(number) for number in range(200)]


@in_loop
async def test_a_cut_connection_is_resumed_and_nothing_is_lost(fake: FakeDiscord) -> None:
    person = fake.person(1)["id"]
    direct = fake.direct_chat(person)
    async with connected(fake, pauses=(0.2,)) as rig:
        fake.say(direct, person, "before")
        await until(lambda: rig.intake.texts)
        fake.drop_connections()
        fake.say(direct, person, "meanwhile")
        await until(lambda: rig.intake.connections == 2)
        fake.say(direct, person, "after")
        await until(lambda: len(rig.intake.texts) == 3)
        assert rig.intake.texts == ["before", "meanwhile", "after"]
        assert (fake.sessions_begun(), resumes(fake)) == (1, 1)
        assert len(rig.intake.lost) == 1


@in_loop
async def test_a_request_to_reconnect_resumes_the_session(fake: FakeDiscord) -> None:
    async with connected(fake) as rig:
        fake.ask_to_reconnect()
        await until(lambda: rig.intake.connections == 2)
        fake.invalidate(resumable=True)
        await until(lambda: rig.intake.connections == 3)
        assert fake.sessions_begun() == 1


@in_loop
async def test_an_expired_session_is_followed_by_a_new_one(fake: FakeDiscord) -> None:
    async with connected(fake) as rig:
        fake.expire_sessions()
        fake.drop_connections()
        await until(lambda: rig.intake.connections == 2)
        fake.invalidate(resumable=False)
        await until(lambda: rig.intake.connections == 3)
        assert fake.sessions_begun() == 3


@in_loop
async def test_a_platform_that_is_gone_for_a_time_is_reached_again(fake: FakeDiscord) -> None:
    async with connected(fake) as rig:
        with fake.gone():
            await until(lambda: len(rig.intake.lost) > 3)
        await until(lambda: rig.intake.connections > 1)


@in_loop
async def test_sessions_that_do_not_last_stop_the_channel(fake: FakeDiscord) -> None:
    async with started(fake) as rig:
        fake.invalidate_all = True
        rig.task = asyncio.create_task(rig.discord.receive(rig.intake))
        error = await rig.down()
        assert error.code == "sessions_fail"
        assert error.retry_seconds >= 1_800, "1 000 sessions a day reset the token"
        assert fake.sessions_begun() == 5


@in_loop
async def test_the_last_sessions_of_the_day_are_not_used(fake: FakeDiscord) -> None:
    async with started(fake) as rig:
        fake.sessions_left = 50
        rig.task = asyncio.create_task(rig.discord.receive(rig.intake))
        error = await rig.down()
        assert (error.code, error.retry_seconds) == ("session_limit", 7_200)
        assert fake.sessions_begun() == 0


@in_loop
async def test_an_intent_that_is_off_is_named_with_its_cure(fake: FakeDiscord) -> None:
    async with started(fake) as rig:
        fake.content_allowed = False
        rig.task = asyncio.create_task(rig.discord.receive(rig.intake))
        error = await rig.down()
        assert error.code == "intent_off"
        assert "Message Content Intent" in error.hint
        assert fake.sessions_begun() == 1


@in_loop
async def test_without_the_intent_the_bot_works_for_direct_messages_and_mentions(
    fake: FakeDiscord,
) -> None:
    fake.flags, fake.content_allowed = 0, False
    person = fake.person(1)["id"]
    async with connected(fake) as rig:
        identify = json.loads(fake.requests("WS /gateway/op2")[0].body)
        assert not identify["d"]["intents"] & MESSAGE_CONTENT
        fake.say(CHANNEL, person, "not for the bot", mention=False)
        fake.say(CHANNEL, person, "for the bot")
        fake.say(fake.direct_chat(person), person, "in private")
        await until(lambda: len(rig.intake.payloads) == 3)
        taken = [each.text for each in rig.intake.of(Written) if each.addressed]
        assert taken == ["for the bot", "in private"]
        findings = {each.code: each for each in await rig.discord.check()}
        assert "is off" in findings["message_content"].text


@in_loop
async def test_a_token_that_is_reset_ends_the_connection_at_once(fake: FakeDiscord) -> None:
    async with connected(fake) as rig:
        fake.token = "another.token.now"
        fake.drop_connections()
        error = await rig.down()
        assert error.code == "token_invalid"
        assert len(fake.identified) == 1


@pytest.mark.parametrize(
    ("code", "name"), [(4004, "token_invalid"), (4014, "intent_off"), (4011, "too_many_servers")]
)
@in_loop
async def test_a_final_close_code_is_a_state(fake: FakeDiscord, code: int, name: str) -> None:
    async with connected(fake) as rig:
        fake.close_gateway(code)
        assert (await rig.down()).code == name


@pytest.mark.parametrize("code", [1000, 1001, 4000, 4001, 4007, 4008, 4009])
@in_loop
async def test_any_other_close_code_is_followed_by_a_connection(
    fake: FakeDiscord, code: int
) -> None:
    async with connected(fake) as rig:
        fake.close_gateway(code)
        await until(lambda: rig.intake.connections == 2)


@in_loop
async def test_after_its_end_no_connection_is_left(fake: FakeDiscord) -> None:
    async with connected(fake):
        assert fake.connections == 1
    await until(lambda: fake.connections == 0)
    assert all(each.expired for each in fake.sessions.values()), "the bot is shown as online"


@in_loop
async def test_oc_128809_a_connection_without_events_is_found_out(
    fake: FakeDiscord,
) -> None:
    """HA#78881: connected, heartbeats answered, and no message arrives."""
    person = fake.person(1)["id"]
    direct = fake.direct_chat(person)
    async with connected(fake) as rig:
        read = fake.say(direct, person, "heard")
        await until(lambda: rig.intake.texts)
        place = Place(chat=direct, direct=True, cursor=read, since=0)
        assert not await rig.discord.newest(place)
        fake.fail("silent", "MESSAGE_CREATE")
        fake.say(direct, person, "not heard")
        assert await rig.discord.newest(place)
        [missed] = await rig.discord.missed(place, 100)
        found = rig.discord.parse(missed)
        assert isinstance(found, Written)
        assert found.text == "not heard"


@in_loop
async def test_every_frame_counts_as_heard(fake: FakeDiscord) -> None:
    async with connected(fake) as rig:
        heard = rig.intake.heards
        fake.push("TYPING_START", {"channel_id": CHANNEL, "guild_id": SERVER})
        await until(lambda: rig.intake.heards > heard)
        assert not rig.intake.payloads


@in_loop
async def test_an_event_that_cannot_be_read_does_not_end_the_connection(fake: FakeDiscord) -> None:
    person = fake.person(1)["id"]
    async with connected(fake) as rig:
        fake.push("GUILD_CREATE", {"id": SERVER, "channels": [{"id": {}, "type": []}]})
        fake.push("MESSAGE_DELETE_BULK", {"ids": [[1]], "channel_id": CHANNEL, "guild_id": SERVER})
        fake.say(CHANNEL, person, "still there?")
        await until(lambda: rig.intake.texts)
        assert rig.intake.connections == 1


@in_loop
async def test_edits_and_deletions_refer_to_their_message(fake: FakeDiscord) -> None:
    person = fake.person(1)["id"]
    async with connected(fake) as rig:
        message = fake.say(CHANNEL, person, "frist")
        fake.preview(message)
        fake.edit(message, "first")
        fake.delete(message)
        await until(lambda: rig.intake.of(Deleted))
        [edited], [deleted] = rig.intake.of(Edited), rig.intake.of(Deleted)
        assert (edited.original, edited.text) == ((message,), "first")
        assert deleted.original == (message,)
        assert deleted.source.person.id == person, "only its author may withdraw a message"


@in_loop
async def test_the_echo_of_a_part_is_its_proof(fake: FakeDiscord) -> None:
    async with connected(fake) as rig:
        receipt = await rig.send(rig.sending(CHANNEL, key="babcd7.2"))
        await until(lambda: rig.intake.of(Proof))
        [proof] = rig.intake.of(Proof)
        assert (proof.key, proof.receipt) == ("babcd7.2", receipt)
        assert not rig.intake.of(Written)


async def _waits(rig: Rig, interaction: str, *expected: str) -> None:
    await until(lambda: rig.fake.interactions[interaction] == ["pending", *expected])


@in_loop
async def test_a_slash_command_is_deferred_after_the_commit_and_answered_by_a_message(
    fake: FakeDiscord,
) -> None:
    person = fake.person(1)["id"]
    async with connected(fake) as rig:
        rig.intake.holds = True
        interaction = fake.command(CHANNEL, person, "default", "@coder")
        await until(lambda: rig.intake.held)
        await asyncio.sleep(0.05)
        assert fake.interactions[interaction] == ["pending"], "answered before it was stored"
        rig.intake.held[0].set_result(None)
        await _waits(rig, interaction, "deferred")
        [written] = rig.intake.of(Written)
        assert (written.text, written.addressed) == ("/default @coder", True)
        assert written.source.person.id == person
        await rig.send(rig.sending(CHANNEL, "done", message=written.source.message))
        await _waits(rig, interaction, "deferred", "deleted")
        assert fake.posts(CHANNEL) == ["done"]
        assert "message_reference" not in fake.messages[CHANNEL][-1]


@pytest.mark.parametrize("is_stored", [True, False])
@in_loop
async def test_an_interaction_is_deferred_in_time_also_if_its_commit_has_to_wait(
    fake: FakeDiscord, is_stored: bool
) -> None:
    """After a reconnect, live events wait for those that were missed."""
    person = fake.person(1)["id"]
    async with connected(fake) as rig:
        rig.intake.holds = True
        began = time.monotonic()
        interaction = fake.command(CHANNEL, person, "status")
        await _waits(rig, interaction, "deferred")
        assert time.monotonic() - began < 3, "Discord gives up after three seconds"
        if is_stored:
            rig.intake.held[0].set_result(None)
            await rig.send(rig.sending(CHANNEL, "done", message=interaction))
        else:
            rig.intake.held[0].set_exception(OSError("the disk is full"))
        await _waits(rig, interaction, "deferred", "deleted")


@in_loop
async def test_an_interaction_that_cannot_be_stored_is_not_answered(fake: FakeDiscord) -> None:
    person = fake.person(1)["id"]
    async with connected(fake) as rig:
        rig.intake.holds = True
        interaction = fake.command(CHANNEL, person, "status")
        await until(lambda: rig.intake.held)
        rig.intake.held[0].set_exception(OSError("the disk is full"))
        await asyncio.sleep(0.05)
        assert fake.interactions[interaction] == ["pending"]


@in_loop
async def test_a_button_is_acknowledged_and_says_who_pressed_it(fake: FakeDiscord) -> None:
    person = fake.person(3)["id"]
    async with connected(fake) as rig:
        buttons = (Button(label="Run again", value="held:17:resume"),)
        posted = await rig.send(rig.sending(CHANNEL, buttons=buttons))
        interaction = fake.press(posted, person, "held:17:resume")
        await _waits(rig, interaction, "updated")
        [pressed] = rig.intake.of(Pressed)
        assert (pressed.value, pressed.source.person.id) == ("held:17:resume", person)
        assert pressed.source.message == posted


@in_loop
async def test_the_token_of_an_interaction_is_not_stored(fake: FakeDiscord) -> None:
    async with connected(fake) as rig:
        fake.command(CHANNEL, fake.person(1)["id"], "status")
        await until(lambda: rig.intake.payloads)
        assert "interaction-token" not in json.dumps(rig.intake.payloads)


@in_loop
async def test_changes_of_channels_are_told(fake: FakeDiscord) -> None:
    async with connected(fake) as rig:
        thread = dict(fake.channels[THREAD])
        fake.push("THREAD_UPDATE", {**thread, "rate_limit_per_user": 5})
        fake.push("THREAD_UPDATE", {**thread, "name": "release 2"})
        fake.push("THREAD_DELETE", thread)
        fake.push("GUILD_DELETE", {"id": SERVER, "unavailable": True})
        fake.push("GUILD_DELETE", {"id": SERVER})
        await until(lambda: len(rig.intake.of(ChatChange)) == 4)
        renamed, *closed = rig.intake.of(ChatChange)
        assert (renamed.chat.id, renamed.chat.name) == (THREAD, "#release 2 (Home)")
        assert all(each.closed for each in closed)
        assert {each.chat.name for each in closed[1:]} >= {"#general (Home)"}


@in_loop
async def test_the_channels_of_the_servers_are_listed(fake: FakeDiscord) -> None:
    async with connected(fake) as rig:
        chats = {each.id: each for each in await rig.discord.chats()}
        assert chats[CHANNEL].name == "#general (Home)"
        assert not chats[THREAD].direct
