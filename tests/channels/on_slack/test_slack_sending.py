"""Sending on Slack: each fault means what the base client believes, and nothing is sent twice."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from io import BytesIO

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
from bullpen.channels.platform import Button, Sending, Verdict
from bullpen.channels.slack import api as slack_api
from bullpen.channels.slack import files as slack_files
from bullpen.channels.slack.platform import Slack
from bullpen.core.answers.attachments import OpenFile
from tests.channels.fakes.faults import Fault
from tests.channels.fakes.slack import BOT_TOKEN, plain
from tests.channels.on_slack.account import ANN, KEY, Account, text_part
from tests.channels.recording import no_note

POST = "POST /api/chat.postMessage"


def send(account: Account, sending: Sending) -> str:
    """Send a part; returns its receipt."""
    return account.run(lambda slack: slack.send(sending, no_note))


def failure(account: Account, sending: Sending) -> Exception:
    """The error of a send."""

    async def work(slack: Slack) -> Exception:
        try:
            await slack.send(sending, no_note)
        except (SendFailed, ChannelDown) as error:
            return error
        raise AssertionError("it was sent")

    return account.run(work)


def file_part(chat: str, data: bytes = b"data", *, reference: str = "") -> Sending:
    file = OpenFile("report.txt", len(data), BytesIO(data))
    return replace(text_part(chat), text=None, file=file, reference=reference)


def test_a_text_is_rich_text_with_our_key_in_its_metadata(account: Account) -> None:
    chat = account.fake.new_chat(direct=True)
    receipt = send(account, text_part(chat, "**Hi** <!channel> @everyone <@U123>"))
    [message] = account.fake.chats[chat].messages
    assert receipt == f"{chat}:{message['ts']}"
    assert message["metadata"] == {"event_type": "bullpen_part", "event_payload": {"key": KEY}}
    assert plain(message) == "Hi <!channel> @everyone <@U123>"
    blocks = str(message["blocks"])
    assert "'type': 'user'" not in blocks
    assert "'type': 'broadcast'" not in blocks
    assert "mrkdwn" not in blocks
    sent = account.fake.requests(POST)[0].json()
    assert "<!channel>" not in str(sent["text"])
    assert (sent["parse"], sent["link_names"], sent["unfurl_links"]) == ("none", False, False)


def test_an_answer_goes_to_the_thread_and_buttons_below_it(account: Account) -> None:
    chat = account.fake.new_chat(direct=False)
    root = account.fake.say(chat, ANN, "hello")
    sending = replace(
        text_part(chat, thread=root), buttons=(Button(label="Resume", value="held:17:resume"),)
    )
    send(account, sending)
    [part] = account.fake.parts(chat)
    assert (part.text, part.thread) == ("hello", root)
    account.fake.press(chat, ANN, "held:17:resume")  # it is there


def test_names_of_agents_are_shown_only_if_that_is_set(account: Account) -> None:
    chat = account.fake.new_chat(direct=True)
    send(account, replace(text_part(chat), agent="coder"))
    account.settings["agent_names"] = "on"
    send(account, replace(text_part(chat), agent="coder"))
    first, second = account.fake.chats[chat].messages
    assert "username" not in first
    assert second["username"] == "coder"


def test_a_person_without_a_chat_gets_a_direct_message(account: Account) -> None:
    receipt = send(account, text_part("", person=ANN))
    [chat] = account.fake.chats.values()
    assert chat.person == ANN
    assert receipt.startswith(f"{chat.id}:")


@pytest.mark.parametrize(
    "fault", [Fault.CLOSE, Fault.RESET, Fault.HALF, Fault.ERROR, Fault.HTML, Fault.HANG]
)
@pytest.mark.parametrize("taken", [False, True])
def test_a_lost_answer_is_unknown_and_nothing_is_sent_again(
    account: Account, fault: Fault, taken: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slack_api, "REQUEST_SECONDS", 1.0)
    chat = account.fake.new_chat(direct=True)
    account.fake.fail(fault, POST, taken=taken)
    assert type(failure(account, text_part(chat))) is OutcomeUnknown
    assert len(account.fake.requests(POST)) == 1
    assert len(account.fake.posts(chat)) == (1 if taken or fault is Fault.HALF else 0)


def test_a_refused_connection_is_not_sent(account: Account) -> None:
    chat = account.fake.new_chat(direct=True)

    async def work(slack: Slack) -> None:
        with pytest.raises(NotSent):
            await slack.send(text_part(chat), no_note)

    async def main() -> None:
        slack = Slack(account.context())
        await slack.start()
        await asyncio.to_thread(gone.__enter__)
        try:
            await work(slack)
        finally:
            await slack.close()
            await asyncio.to_thread(gone.__exit__, None, None, None)

    gone = account.fake.gone()
    asyncio.run(main())
    assert account.fake.posts(chat) == []


def test_a_name_that_cannot_be_resolved_is_not_sent(account: Account) -> None:
    account.settings["api_url"] = "http://slack.invalid/api/"

    async def main() -> None:
        slack = Slack(account.context())
        try:
            with pytest.raises(NotSent):
                await slack.send(text_part("C0CHAT0001"), no_note)
        finally:
            await slack.close()

    asyncio.run(main())


def test_a_rate_limit_is_told_at_once_and_not_slept_out(account: Account) -> None:
    chat = account.fake.new_chat(direct=True)
    account.fake.fail(Fault.LIMIT, POST, seconds=3600)
    began = time.monotonic()
    error = failure(account, text_part(chat))
    assert isinstance(error, RateLimited)
    assert (error.seconds, error.account) == (3600, False)
    assert time.monotonic() - began < 10
    assert len(account.fake.requests(POST)) == 1


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("channel_not_found", Undeliverable),
        ("not_in_channel", Undeliverable),
        ("is_archived", Undeliverable),
        ("restricted_action_thread_locked", Undeliverable),
        ("user_disabled", Undeliverable),
        ("msg_too_long", Refused),
        ("invalid_blocks", Refused),
        ("an_error_of_next_year", Refused),
        ("fatal_error", OutcomeUnknown),
        ("internal_error", OutcomeUnknown),
        ("service_unavailable", OutcomeUnknown),
        ("team_added_to_org", NotSent),
        ("ratelimited", RateLimited),
        ("missing_scope", ChannelDown),
        ("invalid_auth", ChannelDown),
        ("token_revoked", ChannelDown),
        ("token_expired", ChannelDown),
        ("account_inactive", ChannelDown),
        ("not_allowed_token_type", ChannelDown),
    ],
)
def test_each_error_of_slack_has_its_meaning(
    account: Account, code: str, kind: type[Exception]
) -> None:
    chat = account.fake.new_chat(direct=True)
    account.fake.refuse("chat.postMessage", code)
    error = failure(account, text_part(chat))
    assert type(error) is kind
    assert code in ("ratelimited", getattr(error, "code", ""))
    assert BOT_TOKEN not in str(error)


def test_a_part_that_arrived_is_found_by_its_key(account: Account) -> None:
    chat = account.fake.new_chat(direct=True)
    account.fake.fail(Fault.ERROR, POST, taken=True)
    failure(account, text_part(chat))
    found = account.run(lambda slack: slack.recover(text_part(chat)))
    [post] = account.fake.parts(chat)
    assert (found.verdict, found.receipt) == (Verdict.FOUND, f"{chat}:{post.id}")


def test_a_part_in_a_thread_is_found_in_the_thread(account: Account) -> None:
    chat = account.fake.new_chat(direct=False)
    root = account.fake.say(chat, ANN, "hello")
    receipt = send(account, text_part(chat, thread=root))
    account.fake.max_page = 1
    found = account.run(lambda slack: slack.recover(text_part(chat, thread=root)))
    assert (found.verdict, found.receipt) == (Verdict.FOUND, receipt)


def test_what_is_not_found_was_not_sent_but_only_after_a_while(account: Account) -> None:
    chat = account.fake.new_chat(direct=True)
    account.fake.max_page = 1
    send(account, replace(text_part(chat), key="b0001.17.1"))  # another part
    account.fake.say(chat, ANN, "hello")

    def look_up() -> Verdict:
        return account.run(lambda slack: slack.recover(text_part(chat, began_at=began))).verdict

    began = account.clock.now()
    assert look_up() is Verdict.LATER
    account.clock.ahead = 31_000
    assert look_up() is Verdict.NOT_SENT


def test_the_metadata_of_another_app_proves_nothing(account: Account) -> None:
    chat = account.fake.new_chat(direct=False)
    forged = {"event_type": "bullpen_part", "event_payload": {"key": KEY}}
    account.fake.say(chat, "U0OTHERBOT", "hi", mention=False, bot_id="B0OTHER", metadata=forged)
    began = account.clock.now()
    account.clock.ahead = 31_000
    found = account.run(lambda slack: slack.recover(text_part(chat, began_at=began)))
    assert found.verdict is Verdict.NOT_SENT


def test_a_look_up_without_an_answer_decides_nothing(account: Account) -> None:
    chat = account.fake.new_chat(direct=True)
    account.fake.look_ups = False

    async def work(slack: Slack) -> None:
        with pytest.raises(SendFailed):
            await slack.recover(text_part(chat))

    account.run(work)


def test_a_chat_that_cannot_be_read_cannot_be_told(account: Account) -> None:
    chat = account.fake.new_chat(direct=True)
    account.fake.refuse("conversations.history", "missing_scope")
    found = account.run(lambda slack: slack.recover(text_part(chat)))
    assert found.verdict is Verdict.CANNOT_TELL


def test_a_file_is_uploaded_noted_and_shared(account: Account) -> None:
    chat = account.fake.new_chat(direct=True)
    noted: list[str] = []

    async def note(reference: str) -> None:
        noted.append(reference)
        assert account.fake.shared_file_ids() == []

    data = bytes(range(256)) * 1000
    receipt = account.run(lambda slack: slack.send(file_part(chat, data), note))
    [part] = account.fake.parts(chat)
    assert part.file == "report.txt"
    assert account.fake.contents[noted[0]] == data
    assert receipt == f"{chat}:{noted[0]}"


@pytest.mark.parametrize(
    "step", ["POST /api/files.getUploadURLExternal", "POST /upload/*"], ids=["url", "upload"]
)
@pytest.mark.parametrize("fault", [Fault.CLOSE, Fault.ERROR])
def test_a_file_that_was_not_shared_was_not_sent(account: Account, step: str, fault: Fault) -> None:
    chat = account.fake.new_chat(direct=True)
    account.fake.fail(fault, step, taken=True)
    assert type(failure(account, file_part(chat))) is NotSent
    assert account.fake.parts(chat) == []


@pytest.mark.parametrize("taken", [False, True])
def test_a_file_with_a_lost_answer_is_looked_up_by_its_id(account: Account, taken: bool) -> None:
    chat = account.fake.new_chat(direct=True)
    account.fake.fail(Fault.CLOSE, "POST /api/files.completeUploadExternal", taken=taken)
    noted: list[str] = []

    async def note(reference: str) -> None:
        noted.append(reference)

    async def work(slack: Slack) -> Verdict:
        with pytest.raises(OutcomeUnknown):
            await slack.send(file_part(chat), note)
        account.clock.ahead = 121_000
        return (await slack.recover(file_part(chat, reference=noted[0]))).verdict

    assert account.run(work) is (Verdict.FOUND if taken else Verdict.NOT_SENT)


def test_a_file_that_takes_too_long_is_refused_and_blocks_nothing(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slack_files, "UPLOAD_SECONDS", 0.3)
    chat = account.fake.new_chat(direct=True)
    account.fake.fail(Fault.HANG, "POST /upload/*")
    assert type(failure(account, file_part(chat))) is Refused


def test_the_text_in_place_of_a_refused_file_is_found(account: Account) -> None:
    chat = account.fake.new_chat(direct=True)
    receipt = send(account, text_part(chat, "report.txt was not sent"))
    lost = replace(file_part(chat, reference="F0FILE0001"), file=None)
    found = account.run(lambda slack: slack.recover(lost))
    assert (found.verdict, found.receipt) == (Verdict.FOUND, receipt)


def test_a_file_is_refused_without_the_scope_and_the_account_goes_on(account: Account) -> None:
    chat = account.fake.new_chat(direct=True)
    account.fake.refuse("files.getUploadURLExternal", "missing_scope")
    assert type(failure(account, file_part(chat))) is Refused


@pytest.mark.parametrize("text", ["", " \n", "‎"])
def test_text_that_nobody_would_see_still_gets_an_answer(account: Account, text: str) -> None:
    chat = account.fake.new_chat(direct=True)
    assert isinstance(failure(account, text_part(chat, text)), Refused)


def test_the_secrets_are_in_no_log(account: Account, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    chat = account.fake.new_chat(direct=True)
    account.fake.fail(Fault.ERROR, POST)
    failure(account, text_part(chat, "a private text"))
    send(account, text_part(chat, "a private text"))
    assert BOT_TOKEN not in caplog.text
    assert "a private text" not in caplog.text
