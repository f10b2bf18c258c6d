"""The e-mail example in this process: whose mail is taken in, and what a failed send means."""

from __future__ import annotations

import asyncio
import importlib
import logging
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from email import message_from_bytes, policy
from pathlib import Path
from typing import Any

import pytest

from bullpen.channels import (
    Address,
    ChannelContext,
    ChannelDown,
    Document,
    NotSent,
    OutcomeUnknown,
    Payload,
    Place,
    Platform,
    RateLimited,
    Refused,
    SendFailed,
    Sending,
    Undeliverable,
    Verdict,
    Written,
)
from bullpen.core.clock import MINUTE, SystemClock
from tests.channels.fakes.mail import BOT, SERVER, MailServer, example
from tests.channels.tls import certificate
from tests.ports import free_port

ANN = "ann@example.org"
PASSED = "dmarc=pass header.from=example.org"
ENCODED = PASSED.replace("=", "=3D").replace(" ", "_")
NOW = SystemClock().now()

Make = Callable[..., Platform]


@pytest.fixture(scope="module")
def mail() -> Iterator[MailServer]:
    with MailServer() as server:
        yield server


@pytest.fixture
def make(mail: MailServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Make:
    """Makes the client of an account on the mail server, with changed settings."""
    monkeypatch.syspath_prepend(str(example("bullpen-email")))
    info = importlib.import_module("bullpen_email").EMAIL
    client: Any = importlib.import_module("bullpen_email.client")

    def make(**changes: str) -> Platform:
        values = {each.name: each.default for each in info.all_settings}
        values |= mail.settings | changes
        context = ChannelContext(
            info=info,
            setting=values.__getitem__,
            store_id="test",
            directory=tmp_path,
            clock=SystemClock(),
            chance=lambda: 0.5,
            log=logging.getLogger("test"),
        )
        platform: Platform = client.Email(context)
        return platform

    return make


def payload(head: str, body: str = "hello", uid: int = 1) -> Payload:
    raw = f"{head}\r\n\r\n{body}"
    return {"cursor": f"7.{uid}", "at": NOW, "raw": raw}


def headers(results: str, sender: str = f"Ann <{ANN}>", more: str = "") -> str:
    return f"Authentication-Results: {results}\r\nFrom: {sender}\r\nMessage-ID: <1@a>{more}"


@pytest.mark.parametrize(
    "results",
    [
        f"{SERVER}; {PASSED}",
        f'{SERVER} 1; spf=fail; dkim=pass (2048-bit key) header.d=example.org header.b="a/b+"',
        f"{SERVER};\r\n dkim=none;\r\n spf=pass (a comment) smtp.mailfrom=x@EXAMPLE.org",
    ],
)
def test_an_author_whom_the_own_server_has_verified_is_believed(make: Make, results: str) -> None:
    found = make().parse(payload(headers(results)))
    assert isinstance(found, Written)
    assert found.source.person.id == ANN


@pytest.mark.parametrize(
    "head",
    [
        f"From: {ANN}",
        headers(f"other.example; {PASSED}"),
        headers(f"{SERVER}.example; {PASSED}"),
        headers(f"{SERVER}; dmarc=fail header.from=example.org"),
        headers(f"{SERVER}; dkim=pass header.d=evil.example; dmarc=none"),
        headers(f"{SERVER}; dkim=pass header.d=org"),
        headers(f"{SERVER}; dkim=pass header.d=notexample.org"),
        headers(f"{SERVER}; spf=pass header.from=example.org smtp.mailfrom=x@evil.example"),
        headers(f'{SERVER}; spf=pass smtp.mailfrom="; {PASSED} "@evil.example'),
        headers(f"{SERVER}; spf=pass (of x); {PASSED} ) smtp.mailfrom=evil.example"),
        headers(f"{SERVER}; spf=pass smtp.mailfrom=x@y =?utf-8?q?=3B_{ENCODED}?="),
        headers(f"{SERVER}; none\r\nAuthentication-Results: {SERVER}; {PASSED}"),
        headers(f"{SERVER}; {PASSED}", f"{ANN}, eve@evil.example"),
        headers(f"{SERVER}; {PASSED}", f"{ANN}\r\nFrom: eve@evil.example"),
        headers(f"{SERVER}; {PASSED}", f'"{ANN}" <eve@evil.example>'),
        headers(f"{SERVER}; dmarc=pass header.from=example.net", BOT),
    ],
)
def test_a_forged_author_is_ignored(make: Make, head: str) -> None:
    assert make().parse(payload(head)) is None


@pytest.mark.parametrize(
    "more",
    [
        "Auto-Submitted: auto-replied",
        "Precedence: Bulk",
        "List-Id: <news.example.org>",
        "Return-Path: <>",
    ],
)
def test_an_automatic_mail_is_ignored(make: Make, more: str) -> None:
    platform, head = make(), headers(f"{SERVER}; {PASSED}")
    assert platform.parse(payload(head))
    assert platform.parse(payload(f"{head}\r\n{more}")) is None


def test_a_mail_of_html_is_text_and_its_files_are_named(make: Make) -> None:
    head = headers(f"{SERVER}; {PASSED}", more="\r\nSubject: Hi\r\nIn-Reply-To: <0@a>")
    head += "\r\nContent-Type: multipart/mixed; boundary=x"
    page = "<html><head><style>a{}</style></head><body><p>One &amp; two</p> <div>three</div></body>"
    body = (
        f"--x\r\nContent-Type: text/html\r\n\r\n{page}\r\n"
        "--x\r\nContent-Disposition: attachment; filename=a.pdf\r\n\r\n1\r\n--x--"
    )
    found = make().parse(payload(head, body))
    assert isinstance(found, Written)
    assert found.text.split("\n") == ["One & two", "three", "", "[a.pdf was not accepted]"]
    assert found.source.thread == "<0@a>"


def sending(to: str = ANN, *, part: int = 0, began_at: int = NOW) -> Sending:
    return Sending(
        key=f"btest1.{part}",
        part=part,
        to=Address(chat=to, thread="<0@a>", message="<1@a> Re: RE: Größe"),
        text=Document.parse("grüße"),
        began_at=began_at,
        expires_at=NOW + MINUTE,
    )


def outcome(platform: Platform, what: Sending) -> str | SendFailed | ChannelDown:
    """The receipt, or the error."""

    async def note(_: str) -> None:
        raise AssertionError

    try:
        return asyncio.run(platform.send(what, note))
    except (SendFailed, ChannelDown) as error:
        return error


def test_an_answer_is_in_the_thread_of_its_mail(make: Make, mail: MailServer) -> None:
    mail.sent.clear()
    assert outcome(make(), sending()) == "<btest1.0@example.net>"
    (sent,) = mail.sent
    assert sent["Message-ID"] == "<btest1.0@example.net>"
    assert (sent["Subject"], sent["References"]) == ("Re: Größe", "<0@a> <1@a>")
    assert sent.get_content().strip() == "grüße"


def test_what_a_failed_send_means(make: Make, mail: MailServer) -> None:
    assert type(outcome(make(smtp_server=f"127.0.0.1:{free_port()}"), sending())) is NotSent
    mail.refusals = {"no@a.example": "550 no such person", "later@a.example": "451 greylisted"}
    assert type(outcome(make(), sending("no@a.example"))) is Undeliverable
    assert type(outcome(make(), sending("later@a.example"))) is RateLimited
    assert type(outcome(make(password="wrong"), sending())) is ChannelDown
    mail.lost_answers = 1
    assert type(outcome(make(), sending())) is OutcomeUnknown
    mail.answers = ["554 this is spam", "451 not now", "<html>"]
    assert type(outcome(make(), sending())) is Refused
    assert type(outcome(make(), sending())) is RateLimited
    assert type(outcome(make(), sending())) is OutcomeUnknown
    assert not mail.answers


def test_an_unknown_outcome_is_looked_up_in_the_folder_of_sent_mail(
    make: Make, mail: MailServer
) -> None:
    async def look(platform: Platform, what: Sending) -> Verdict:
        return (await platform.recover(what)).verdict

    assert asyncio.run(look(make(), sending(part=5))) is Verdict.CANNOT_TELL
    copies = make(sent_folder="Sent")
    just_now = sending(part=5, began_at=time.time_ns() // 1_000_000)
    assert asyncio.run(look(copies, just_now)) is Verdict.LATER
    old = sending(part=5, began_at=NOW - 10 * MINUTE)
    assert asyncio.run(look(copies, old)) is Verdict.NOT_SENT
    mail.keeps_copies, mail.lost_answers = True, 1
    assert type(outcome(copies, old)) is OutcomeUnknown
    assert asyncio.run(look(copies, old)) is Verdict.FOUND


def test_missed_mail_is_read_from_its_uid_on_or_by_time_if_uids_have_changed(
    make: Make, mail: MailServer
) -> None:
    for each in ("one", "two", "three"):
        mail.write(ANN, each)

    def read(cursor: str, limit: int = 100, since: int = NOW - MINUTE) -> list[str]:
        place = Place(chat="", direct=False, cursor=cursor, since=since)
        found = asyncio.run(make().missed(place, limit))
        cursors.extend(str(each["cursor"]) for each in found)
        raw = [str(each["raw"]).encode("latin-1") for each in found]
        read = [message_from_bytes(each, policy=policy.default) for each in raw]
        return [each.get_content().strip() for each in read]

    cursors: list[str] = []
    assert read("") == ["one", "two", "three"]
    first, *_, last = cursors
    assert read(first, 1) == ["two"]
    assert read(last) == []
    assert read("1.100000") == ["one", "two", "three"]
    assert read("", since=time.time_ns() // 1_000_000 + MINUTE) == [
        "",
        "",
        "",
    ]  # the cursor passes what is too old


def test_the_example_has_under_200_lines() -> None:
    modules = (example("bullpen-email") / "bullpen_email").glob("*.py")
    assert sum(len(each.read_text().splitlines()) for each in modules) < 200


@contextmanager
def secure_server(directory: Path, name: str) -> Iterator[MailServer]:
    """A mail server with TLS at `localhost`, and a certificate for a name."""
    certificate(directory, name)
    files = (directory / each for each in ("key.pem", "certificate.pem"))
    both = directory / "both.pem"
    both.write_text("".join(each.read_text() for each in files))
    with MailServer(certificate=both) as server:
        yield server


def test_mail_is_read_and_sent_with_verified_tls(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with secure_server(tmp_path, "localhost") as server:
        platform = make(**server.settings)
        certificate_is_refused(platform, "self-signed")  # nobody knows its authority
        monkeypatch.setenv("SSL_CERT_FILE", str(server.certificate))
        asyncio.run(platform.start())
        assert outcome(platform, sending()) == "<btest1.0@example.net>"
        (sent,) = server.sent
        assert sent.get_content().strip() == "grüße"


def test_the_certificate_of_another_server_is_refused(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with secure_server(tmp_path, "mail.example.net") as server:
        monkeypatch.setenv("SSL_CERT_FILE", str(server.certificate))
        certificate_is_refused(make(**server.settings), "not valid for 'localhost'")
        assert not server.logins


def certificate_is_refused(platform: Platform, reason: str) -> None:
    """Neither server gets a password, and the reason is said."""
    with pytest.raises(ssl.SSLCertVerificationError, match=reason):
        asyncio.run(platform.start())
    result = outcome(platform, sending())
    assert type(result) is NotSent
    assert reason in str(result)


def test_no_password_is_sent_without_tls_except_on_loopback(make: Make, mail: MailServer) -> None:
    before = len(mail.logins)
    platform = make(
        imap_server=f"localhost:{mail.imap_port}", smtp_server=f"localhost:{mail.smtp_port}"
    )
    with pytest.raises(OSError, match="SSL"):
        asyncio.run(platform.start())
    result = outcome(platform, sending())
    assert type(result) is NotSent
    assert "STARTTLS" in str(result)
    assert len(mail.logins) == before
    assert outcome(make(), sending()) == "<btest1.0@example.net>"
    assert len(mail.logins) == before + 1
