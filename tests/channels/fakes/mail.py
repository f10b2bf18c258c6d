"""A mail server on loopback: pymap keeps the bot's mailbox, aiosmtpd takes what the bot sends."""

from __future__ import annotations

import asyncio
import imaplib
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

from tests.ports import free_port
from tests.processor.working import eventually

BOT = "bot@example.net"
PASSWORD = "the password of the mailbox"
SERVER = "mx.example.net"


class _Smtp(Controller):
    def factory(self) -> SMTP:
        return SMTP(
            self.handler,
            authenticator=_authenticate,
            auth_require_tls=False,
            hostname="localhost",
        )


def _authenticate(
    server: object, session: object, envelope: object, mechanism: str, data: object
) -> AuthResult:
    right = isinstance(data, LoginPassword) and data.password == PASSWORD.encode()
    return AuthResult(success=right, handled=False)


@dataclass
class MailServer:
    """The server of the bot's own domain, and what people received from it."""

    sent: list[EmailMessage] = field(default_factory=list)
    refusals: dict[str, str] = field(default_factory=dict)
    """What to answer to a recipient."""
    lost_answers: int = 0
    """How many mails are accepted before the connection is cut instead of an answer."""
    refused_content: str = ""
    """What to answer to the content of each mail."""
    keeps_copies: bool = False
    imap_port: int = field(default_factory=free_port)
    _count: int = 0

    def __enter__(self) -> Self:
        program = (sys.executable, "-c", "from pymap.main import main; main()")
        listen = ("--host", "127.0.0.1", "--port", str(self.imap_port), "--no-tls")
        account = ("--demo-user", BOT, "--demo-password", PASSWORD)
        self._imap = subprocess.Popen([*program, *listen, "dict", *account])
        self._smtp = _Smtp(self, hostname="127.0.0.1", port=free_port())
        self._smtp.start()
        eventually(self._is_up, "the IMAP server listens")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._smtp.stop()
        self._imap.kill()
        self._imap.wait()

    @property
    def settings(self) -> dict[str, str]:
        """The settings of an account with this mailbox."""
        return {
            "address": BOT,
            "password": PASSWORD,
            "authserv_id": SERVER,
            "imap_server": f"127.0.0.1:{self.imap_port}",
            "imap_tls": "none",
            "smtp_server": f"127.0.0.1:{self._smtp.port}",
            "smtp_tls": "none",
            "poll_seconds": "1",
        }

    def _is_up(self) -> bool:
        try:
            with self._box() as box:
                box.create("Sent")
        except OSError:
            return False
        return True

    @contextmanager
    def _box(self) -> Iterator[imaplib.IMAP4]:
        with imaplib.IMAP4("127.0.0.1", self.imap_port, timeout=10) as box:
            box.login(BOT, PASSWORD)
            yield box

    def _store(self, folder: str, mail: bytes) -> None:
        with self._box() as box:
            assert box.append(folder, "", "", mail)[0] == "OK"

    def write(
        self,
        sender: str,
        text: str,
        *,
        subject: str = "Hello",
        reply_to: EmailMessage | None = None,
        results: str = "",
        page: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> str:
        """A person writes to the bot; returns the Message-ID. The server verifies the author."""
        self._count += 1
        domain = sender.rpartition("@")[2]
        mail = EmailMessage(policy=policy.SMTP)
        verdict = results or f"spf=pass smtp.mailfrom={sender}; dmarc=pass header.from={domain}"
        mail["Authentication-Results"] = f"{SERVER}; {verdict}"
        mail["From"], mail["To"], mail["Subject"] = f"Ann <{sender}>", BOT, subject
        mail["Message-ID"] = f"<{self._count}.{time.monotonic_ns()}@{domain}>"
        if reply_to is not None:
            mail["In-Reply-To"] = reply_to["Message-ID"]
            earlier = str(reply_to.get("References", ""))
            mail["References"] = f"{earlier} {reply_to['Message-ID']}".strip()
        mail.set_content(page or text, subtype="html" if page else "plain")
        for name, value in (headers or {}).items():
            del mail[name]
            mail[name] = value
        self._store("INBOX", mail.as_bytes())
        return str(mail["Message-ID"])

    # What aiosmtpd calls.

    async def handle_RCPT(  # noqa: N802
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if not session.authenticated:
            return "530 log in first"
        envelope.rcpt_tos.append(address)
        return self.refusals.get(address, "250 OK")

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802
        content = envelope.content
        assert isinstance(content, bytes)
        if self.refused_content:
            return self.refused_content
        mail: Any = message_from_bytes(content, policy=policy.default)
        self.sent.append(mail)
        if self.keeps_copies:
            self._store("Sent", content)
        if self.lost_answers:
            self.lost_answers -= 1
            transport = server.transport
            assert isinstance(transport, asyncio.Transport)
            transport.abort()
        return "250 OK"


def example(name: str) -> Path:
    """The directory of an example package."""
    return Path(__file__).resolve().parents[3] / "examples" / name
