"""The account on Slack: its start, its check and probe, its progress, and its manifest."""

from __future__ import annotations

import asyncio
import json

import pytest

from bullpen.channels.failures import ChannelDown, Refused
from bullpen.channels.inbound import Attachment
from bullpen.channels.platform import Address, Finding, Identity, Progress, Stage
from bullpen.channels.slack.manifest import SCOPES, app_manifest, command_name, manifest
from bullpen.channels.slack.platform import Slack
from bullpen.core.errors import BadSetting
from tests.channels.fakes.faults import Fault
from tests.channels.fakes.slack import APP_TOKEN, BOT_TOKEN
from tests.channels.on_slack.account import ANN, Account


async def nothing(slack: Slack) -> None:
    """Only start."""


def test_the_bot_is_known_by_its_ids(account: Account) -> None:
    async def main(slack: Slack) -> Identity:
        return await slack.start()

    assert account.run(main) == Identity("U0FAKEBOT", "bullpen", "workspace Fake")


@pytest.mark.parametrize(
    ("setting", "token", "words"),
    [
        ("bot_token", APP_TOKEN, "bot_token is an app-level token"),
        ("bot_token", "xoxp-1", "bot_token is a user token"),
        ("app_token", BOT_TOKEN, "app_token is a bot token"),
        ("app_token", "secret", "app_token is another text"),
    ],
)
def test_a_token_of_the_wrong_kind_is_named(
    account: Account, setting: str, token: str, words: str
) -> None:
    account.settings[setting] = token
    with pytest.raises(ChannelDown, match=words) as caught:
        account.run(nothing)
    assert caught.value.code == "wrong_token"
    assert account.fake.requests() == []


@pytest.mark.parametrize("code", ["invalid_auth", "token_revoked", "account_inactive"])
def test_a_refused_token_is_a_state_with_a_hint(account: Account, code: str) -> None:
    account.fake.token_error = code
    with pytest.raises(ChannelDown) as caught:
        account.run(nothing)
    assert caught.value.code == code
    assert "OAuth & Permissions" in caught.value.hint


@pytest.mark.parametrize("fault", [Fault.CLOSE, Fault.ERROR, Fault.HTML])
def test_slack_that_does_not_answer_is_no_wrong_token(account: Account, fault: Fault) -> None:
    account.fake.fail(fault)
    with pytest.raises(ConnectionError):
        account.run(nothing)


def check(account: Account) -> dict[str, Finding]:
    """The findings of a check by code."""
    return {each.code: each for each in account.run(lambda slack: slack.check())}


def test_a_check_of_a_good_account_finds_nothing_wrong(account: Account) -> None:
    found = check(account)
    assert list(found) == ["scopes", "app_token"]
    assert all(each.ok for each in found.values())
    account.fake.wait_for(lambda: account.fake.connections() == 0)


def test_a_check_names_missing_scopes(account: Account) -> None:
    account.fake.scopes = account.fake.scopes.replace("channels:history,", "").replace(
        "assistant:write,", ""
    )
    found = check(account)["missing_scope"]
    assert not found.ok
    assert found.text == "the app lacks the scopes channels:history"
    assert "install the app again" in found.hint


def test_a_check_names_optional_scopes(account: Account) -> None:
    account.fake.scopes = ",".join(SCOPES)
    found = check(account)["scopes"]
    assert found.ok
    assert "assistant:write" in found.text


def test_a_check_names_a_wrong_app_token(account: Account) -> None:
    account.fake.app_token_error = "not_allowed_token_type"
    found = check(account)["not_allowed_token_type"]
    assert not found.ok
    assert "app-level token" in found.text


def test_a_check_names_other_processes(account: Account) -> None:
    account.fake.extra_connections = 3
    assert check(account)["other_connections"].text == "3 other connections use the app-level token"


def test_a_check_without_slack_says_so(account: Account) -> None:
    async def main(slack: Slack) -> list[Finding]:
        account.fake.fail(Fault.ERROR, times=None)
        return await slack.check()

    [found] = account.run(main)
    assert (found.ok, found.code) == (False, "unreachable")


def test_a_probe_that_slack_refuses_says_so(account: Account) -> None:
    [found] = account.run(lambda slack: slack.probe("D0GONE0001"))
    assert (found.ok, found.code) == (False, "channel_not_found")


@pytest.mark.parametrize("named_by", ["chat", "person"])
def test_a_probe_answers_and_leaves_nothing_behind(account: Account, named_by: str) -> None:
    chat = account.fake.open_chat(ANN)
    where = chat if named_by == "chat" else ANN
    found = {each.code: each for each in account.run(lambda slack: slack.probe(where))}
    assert list(found) == ["metadata", "client_msg_id", "status", "sessions"]
    assert found["metadata"].ok
    assert found["client_msg_id"].text.endswith("two messages")
    assert found["status"].text.endswith(": available")
    assert "not available" in found["sessions"].text
    assert all(each.ok for each in found.values())
    assert account.fake.posts(chat) == []


def progress(
    chat: str, stage: Stage, *, thread: str = "", message: str = "", text: str = ""
) -> Progress:
    return Progress(to=Address(chat=chat, thread=thread, message=message), stage=stage, text=text)


def test_progress_in_a_thread_is_a_status_that_ends_with_the_message(account: Account) -> None:
    fake = account.fake
    chat = fake.new_chat(direct=False)
    root = fake.say(chat, ANN, "hello", live=False)

    async def work(slack: Slack) -> None:
        text = "@coder <!here> is reading"
        await slack.show(progress(chat, Stage.WORKING, thread=root, message=root, text=text))
        assert fake.statuses == {(chat, root): "@coder &lt;!here&gt; is reading"}
        await slack.show(progress(chat, Stage.DONE, thread=root, message=root))
        assert fake.statuses == {(chat, root): ""}

    account.run(work)
    assert fake.reactions == {}


def test_an_agents_session_has_a_native_stop(account: Account) -> None:
    fake = account.fake
    fake.agents = True
    account.settings["agent_view"] = "on"
    chat = fake.new_chat(direct=True)
    root = fake.say(chat, ANN, "hello", live=False)

    async def work(slack: Slack) -> None:
        await slack.show(progress(chat, Stage.WORKING, thread=root, message=root))
        assert fake.sessions == {(chat, root): "processing"}
        await slack.show(progress(chat, Stage.DONE, thread=root, message=root))
        assert fake.sessions == {(chat, root): "active"}

    account.run(work)
    assert fake.statuses == {}


def test_without_sessions_an_agent_shows_a_status(account: Account) -> None:
    fake = account.fake
    account.settings["agent_view"] = "on"
    chat = fake.new_chat(direct=True)
    root = fake.say(chat, ANN, "hello", live=False)

    async def work(slack: Slack) -> None:
        for _ in range(2):
            await slack.show(progress(chat, Stage.QUEUED, thread=root, message=root))

    account.run(work)
    assert fake.statuses == {(chat, root): "is waiting…"}
    assert len(fake.requests("POST */agents.sessions.setStatus")) == 1


@pytest.mark.parametrize("in_thread", [False, True])
@pytest.mark.parametrize(("end", "mark"), [(Stage.DONE, "white_check_mark"), (Stage.FAILED, "x")])
def test_where_there_is_no_status_a_reaction_follows_the_message(
    account: Account, in_thread: bool, end: Stage, mark: str
) -> None:
    fake = account.fake
    fake.status_works = False
    chat = fake.new_chat(direct=True)
    sent = fake.say(chat, ANN, "hello", live=False)
    thread = sent if in_thread else ""

    async def work(slack: Slack) -> None:
        for stage in (Stage.QUEUED, Stage.WORKING, Stage.WORKING):
            await slack.show(progress(chat, stage, thread=thread, message=sent))
            assert fake.reactions[chat, sent] == ["eyes"]
        await slack.show(progress(chat, end, thread=thread, message=sent))
        assert fake.reactions[chat, sent] == [mark]

    account.run(work)


def test_a_mark_that_a_crash_left_behind_is_set_right(account: Account) -> None:
    fake = account.fake
    chat = fake.new_chat(direct=True)
    left, clean = (fake.say(chat, ANN, each, live=False) for each in ("left", "clean"))
    fake.reactions[chat, left] = ["eyes"]

    async def work(slack: Slack) -> None:
        for message in (left, clean):
            await slack.show(progress(chat, Stage.DONE, message=message))

    account.run(work)
    assert fake.reactions == {(chat, left): ["white_check_mark"], (chat, clean): []}


def test_a_file_is_fetched_with_the_token_from_slacks_own_hosts_only(account: Account) -> None:
    async def work(slack: Slack) -> None:
        url = "https://files.slack.com/files-pri/T0-F1/download/a.txt"
        found = await slack.locate(Attachment(name="a.txt", source=url))
        assert (found.url, found.hosts) == (url, ("files.slack.com",))
        assert found.headers == {"Authorization": f"Bearer {BOT_TOKEN}"}
        assert BOT_TOKEN not in repr(found)
        elsewhere = await slack.locate(Attachment(name="a", source="https://evil.example/a"))
        assert elsewhere.hosts == ("files.slack.com",)

    account.settings["api_url"] = "https://slack.com/api/"

    async def main() -> None:
        slack = Slack(account.context())
        try:
            await work(slack)
        finally:
            await slack.close()

    asyncio.run(main())


def test_the_url_of_a_shared_file_is_looked_up(account: Account) -> None:
    file = account.fake.add_file("a.txt", b"data")

    async def work(slack: Slack) -> None:
        found = await slack.locate(Attachment(name="file", source=str(file["id"])))
        assert found.url == file["url_private_download"]
        with pytest.raises(Refused):
            await slack.locate(Attachment(name="file", source="F0GONE"))

    account.run(work)


def test_a_manifest_for_socket_mode_has_no_urls() -> None:
    found = manifest("Bullpen")
    text = json.dumps(found)
    assert "request_url" not in text
    assert '"socket_mode_enabled": true' in text
    assert '"url"' not in text
    assert "agent_view" not in text
    for scope in SCOPES:
        assert f'"{scope}"' in text
    assert '{"app_id": "*", "event_type": "bullpen_part"}' in text


def test_a_manifest_for_http_has_the_public_url_everywhere() -> None:
    text = json.dumps(manifest("Sage at Home", "http", "https://bots.example.org/slack-sage/"))
    assert text.count("https://bots.example.org/slack-sage/events") == 3
    assert '"socket_mode_enabled": false' in text
    assert '"command": "/sage-at-home"' in text


def test_a_manifest_of_an_agent_has_the_events_of_sessions() -> None:
    text = json.dumps(manifest("Bullpen", agents=True))
    assert '"agent_view"' in text
    assert '"agent_session_stopped"' in text


def test_the_manifest_of_an_account_follows_its_settings() -> None:
    settings = {"transport": "http", "public_url": "https://bots.example.org", "agent_view": "on"}
    assert app_manifest("Bullpen", settings) == manifest(
        "Bullpen", "http", "https://bots.example.org", agents=True
    )
    settings |= {"transport": "socket", "agent_view": "off"}
    assert app_manifest("Sage", settings) == manifest("Sage")
    with pytest.raises(BadSetting, match="public_url"):
        app_manifest("Sage", settings | {"transport": "http", "public_url": ""})


@pytest.mark.parametrize(
    ("name", "command"), [("Bullpen", "bullpen"), ("Ünder Öne", "nder-ne"), ("日本", "bullpen")]
)
def test_a_slash_command_has_the_letters_that_slack_allows(name: str, command: str) -> None:
    assert command_name(name) == command


def test_the_long_description_is_as_long_as_slack_wants() -> None:
    display = manifest("Bullpen")["display_information"]
    assert isinstance(display, dict)
    assert 174 <= len(display["long_description"]) <= 4000
    assert len(display["description"]) <= 140
