"""What is checked at the start and during setup, in Twilio's own terms."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest

from bullpen.channels.failures import ChannelDown
from bullpen.channels.platform import Finding, Identity
from bullpen.channels.twilio import setup as twilio_setup
from bullpen.cli import channel_questions
from bullpen.cli.setup_prompts import DefaultPrompter
from bullpen.core.registry import CHANNELS, ChannelInfo
from bullpen.core.settings import Settings
from tests.channels.fakes.driven import RemoteFake
from tests.channels.fakes.twilio import (
    ACCOUNT_SID,
    API_KEY,
    API_SECRET,
    AUTH_TOKEN,
    NUMBER,
    SERVICE_SID,
    FakeTwilio,
)
from tests.channels.twilio.accounts import ANN, NOTHING, make_platform, started


def check(
    fake: FakeTwilio, directory: Path, settings: Mapping[str, str] = NOTHING
) -> dict[str, Finding]:
    """The findings of a check, by their codes."""

    async def main() -> list[Finding]:
        async with started(fake, directory, settings) as platform:
            return await platform.check()

    findings = asyncio.run(main())
    assert AUTH_TOKEN not in repr(findings)
    return {each.code: each for each in findings}


def start(fake: FakeTwilio, directory: Path, settings: Mapping[str, str] = NOTHING) -> Identity:
    async def main() -> Identity:
        platform = make_platform(fake, directory, settings)
        try:
            return await platform.start()
        finally:
            await platform.close()

    return asyncio.run(main())


def test_a_start_says_which_number_it_is(whatsapp: FakeTwilio, tmp_path: Path) -> None:
    found = start(whatsapp, tmp_path, {"number": f"whatsapp:{NUMBER}"})
    assert found == Identity(id=NUMBER, details=ACCOUNT_SID)
    assert len(whatsapp.requests()) == 1


@pytest.mark.parametrize(
    ("case", "code"),
    [
        ("revoked", "credentials_refused"),
        ("suspended", "account_inactive"),
        ("wrong key", "credentials_refused"),
        ("number", "invalid_number"),
        ("unknown account", "account_not_found"),
    ],
)
def test_an_account_that_cannot_work_is_a_state_with_a_hint(
    case: str, code: str, sms: FakeTwilio, tmp_path: Path
) -> None:
    settings = {
        "wrong key": {"api_key": API_KEY, "api_secret": "wrong"},
        "number": {"number": "0171 2345"},
        "unknown account": {"account_sid": f"AC{'9' * 32}"},
    }.get(case, {})
    sms.revoked, sms.suspended = case == "revoked", case == "suspended"
    with pytest.raises(ChannelDown) as caught:
        start(sms, tmp_path, settings)
    assert caught.value.code == code
    assert caught.value.hint


@pytest.mark.parametrize("fault", ["gone", "error", "html", "limit"])
def test_a_start_without_an_answer_is_tried_again(
    fault: str, sms: FakeTwilio, tmp_path: Path
) -> None:
    if fault == "gone":
        with sms.gone(), pytest.raises(OSError, match="Twilio"):
            start(sms, tmp_path)
        return
    sms.fail(fault)
    with pytest.raises(OSError, match=r"."):
        start(sms, tmp_path)


def test_a_good_account_has_only_good_findings(sms: FakeTwilio, tmp_path: Path) -> None:
    sms.sms_url = "https://bots.example.org/sms/message"
    found = check(sms, tmp_path, {"api_key": API_KEY, "api_secret": API_SECRET})
    assert [*found] == ["api_key", "account", "number", "webhook"]
    assert all(each.ok for each in found.values())
    assert "SMS, MMS" in found["number"].text


def test_the_check_says_what_is_wrong_in_the_terms_of_twilio(
    sms: FakeTwilio, tmp_path: Path
) -> None:
    sms.trial = True
    sms.sms_url = "https://demo.twilio.com/welcome/sms/reply"
    found = check(sms, tmp_path, {"public_url": "https://bots.example.org/a"})
    assert found["auth_token"].ok
    assert "API key" in found["auth_token"].hint
    assert "verified numbers" in found["trial"].text
    assert "demo.twilio.com" in found["webhook_missing"].text
    assert "https://bots.example.org/a/message" in found["webhook_missing"].hint
    assert all(each.ok for each in found.values()), "it works, with limits"
    assert not check(sms, tmp_path, {"number": "+15550000099"})["number_not_owned"].ok


def test_an_auth_token_that_cannot_verify_webhooks_is_found_before_a_message_is_refused(
    sms: FakeTwilio, tmp_path: Path
) -> None:
    settings = {"api_key": API_KEY, "api_secret": API_SECRET, "auth_token": "an old token"}
    found = check(sms, tmp_path, settings)
    assert not found["auth_token_refused"].ok


def test_without_a_public_url_the_check_says_what_does_not_work(
    sms: FakeTwilio, tmp_path: Path
) -> None:
    found = check(sms, tmp_path, {"public_url": ""})
    assert found["webhook"].ok
    assert found["no_public_url"].hint
    assert "once a minute" in found["no_public_url"].text


def test_the_messaging_service_decides_where_messages_go(sms: FakeTwilio, tmp_path: Path) -> None:
    sms.sms_url = "https://bots.example.org/sms/message"
    found = check(sms, tmp_path, {"messaging_service": SERVICE_SID})
    assert "messaging service" in found["webhook_missing"].text
    sms.service_url = sms.sms_url
    assert check(sms, tmp_path, {"messaging_service": SERVICE_SID})["webhook"].ok


def test_a_whatsapp_sender_is_checked(whatsapp: FakeTwilio, tmp_path: Path) -> None:
    whatsapp.sms_url = "https://bots.example.org/whatsapp/message"
    found = check(whatsapp, tmp_path)
    assert "ONLINE" in found["number"].text
    assert found["webhook"].ok
    assert not check(whatsapp, tmp_path, {"number": "+15550000099"})["number_not_owned"].ok
    sandbox = check(whatsapp, tmp_path, {"number": "+14155238886"})["sandbox"]
    assert "whatsapp/message" in sandbox.hint


def test_a_probe_finds_out_what_the_documentation_leaves_open(
    whatsapp: FakeTwilio, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(twilio_setup, "LOOK_UP_SECONDS", 0.01)
    whatsapp.hidden_until_sent = True

    async def main() -> list[Finding]:
        async with started(whatsapp, tmp_path) as platform:
            return await platform.probe(ANN)

    found = {each.code: each.ok for each in asyncio.run(main())}
    assert found == {"list": True, "list_by_date": False, "typing": False}
    whatsapp.hidden_until_sent = False
    whatsapp.say(ANN, "Hello", push=False)
    found = {each.code: each.ok for each in asyncio.run(main())}
    assert found == {"list": True, "list_by_date": True, "typing": True}
    assert whatsapp.posts(ANN) == [twilio_setup.PROBE_TEXT] * 2


def test_the_fake_keeps_its_messages_over_a_restart(tmp_path: Path) -> None:
    with RemoteFake("sms", tmp_path) as remote:
        fake = remote.process
        sid = fake.call("say", person=ANN, text="Hello", push=False)
        fake.kill()
        fake.start()
        assert fake.call("texts_in") == [sid]


class Answers(DefaultPrompter):
    """A person who answers each question from a list, and then with nothing."""

    def __init__(self, answers: Mapping[str, str]) -> None:
        super().__init__()
        self.answers = answers
        self.asked: list[str] = []

    def text(self, question: str, default: str = "") -> str:
        name = question.partition(":")[0]
        self.asked.append(name)
        return self.answers.get(name, default)

    def secret(self, question: str) -> str:
        return self.text(question)


def test_setup_asks_for_the_public_url_which_may_stay_empty(tmp_path: Path) -> None:
    answers = {"account_sid": ACCOUNT_SID, "auth_token": AUTH_TOKEN, "number": NUMBER}
    info = CHANNELS.find("sms")
    assert isinstance(info, ChannelInfo)
    work = channel_questions.Setup(Settings(home=tmp_path), info, Answers(answers))
    channel_questions.ask(work)
    assert isinstance(work.prompter, Answers)
    assert work.prompter.asked == [*answers, "public_url"]
    assert work.new == answers
