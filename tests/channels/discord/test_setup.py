"""What setup finds out, the slash commands, and the probe."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.channels.discord.rig import in_loop, started
from tests.channels.fakes.discord import APPLICATION, ME, FakeDiscord


@in_loop
async def test_a_bot_that_works_has_no_findings_against_it(fake: FakeDiscord) -> None:
    async with started(fake) as rig:
        identity = await rig.discord.start()
        assert (identity.id, identity.name) == (ME, "bullpen")
        findings = await rig.discord.check()
        assert all(each.ok and not each.hint for each in findings)


@in_loop
async def test_setup_says_what_is_wrong_in_discords_words(fake: FakeDiscord) -> None:
    fake.flags, fake.servers, fake.sessions_left = 0, [], 20
    fake.interactions_url = "https://bot.example.org/interactions"
    async with started(fake) as rig:
        findings = {each.code: each for each in await rig.discord.check()}
        assert "Privileged Gateway Intents" in findings["message_content"].hint
        assert f"client_id={APPLICATION}" in findings["servers"].hint
        assert "Interactions Endpoint URL" in findings["interactions_url"].text
        assert findings["sessions"].text.startswith("20 of 1000")
        wrong = {each.code for each in findings.values() if not each.ok}
        assert wrong == {"interactions_url", "sessions"}, "the others do not stop the setup"


@in_loop
async def test_commands_are_registered_when_they_have_changed(
    fake: FakeDiscord, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with started(fake, directory=tmp_path / "discord") as rig:
        await rig.discord.start()
        assert len(fake.commands) == 1
        names = {each["name"] for each in fake.commands[0]}
        assert {"agents", "status"} <= names
        monkeypatch.setattr("bullpen.channels.discord.platform.COMMANDS", ())
        await rig.discord.start()
        assert fake.commands[1:] == [[]]


@in_loop
async def test_commands_that_discord_refuses_do_not_stop_the_bot(
    fake: FakeDiscord, caplog: pytest.LogCaptureFixture
) -> None:
    fake.fail("error", "PUT */commands", times=None, status=400)
    async with started(fake) as rig:
        assert "slash commands were not registered" in caplog.text
        fake.heal()
        await rig.discord.start()
        assert len(fake.commands) == 1


@in_loop
async def test_the_probe_finds_out_about_nonces_and_leaves_no_message(fake: FakeDiscord) -> None:
    chat = fake.direct_chat(fake.person(1)["id"])
    async with started(fake) as rig:
        findings = {each.code: each for each in await rig.discord.probe(chat)}
        assert findings["nonce"].ok
        assert "does not have" in findings["nonce_in_history"].text
        assert fake.posts(chat) == []
