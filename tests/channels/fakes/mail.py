"""A mail server on loopback: pymap keeps the bot's mailbox, aiosmtpd takes what the bot sends."""

from __future__ import annotations

import asyncio
import imaplib
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

from bullpen.channels.connection_gate import stop_accepting
from tests.ports import free_port
from tests.processor.working import eventually

BOT = "bot@example.net"
PASSWORD = "the password of the mailbox"
SERVER = "mx.example.net"


IMAP = """
import asyncio, ssl, sys
from functools import partial
import pymap.config
from pymap.main import main
from pysasl.hashing import BuiltinHash

pymap.config.BuiltinHash = partial(BuiltinHash, rounds=1)
certificate = sys.argv.pop(1)
if certificate:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)
    asyncio.start_server = partial(asyncio.start_server, ssl=context)
main()
"""
"""The IMAP server; pymap itself has no TLS from the first byte, and its logins are slow."""


class _Smtp(Controller):
    """The SMTP server; with a certificate, it takes nothing before STARTTLS."""

    def __init__(self, handler: MailServer, port: int, certificate: Path | None) -> None:
        super().__init__(handler, hostname="127.0.0.1", port=port)
        self._tls = None
        if certificate is not None:
            self._tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            self._tls.load_cert_chain(certificate)
        self._connections: list[SMTP] = []

    def factory(self) -> SMTP:
        secure = self._tls is not None
        connection = SMTP(
            self.handler,
            authenticator=self.handler.authenticate,
            auth_require_tls=secure,
            require_starttls=secure,
            tls_context=self._tls,
            hostname="localhost",
        )
        self._connections.append(connection)
        return connection

    def stop(self, no_assert: bool = False) -> None:
        """Stop, and leave no connection open. May be called if `start` has failed."""
        if self.server is not None:
            asyncio.run_coroutine_threadsafe(self._close(self.server), self.loop).result(10)
            super().stop(no_assert)
        elif not self.loop.is_running():
            self.loop.close()

    async def _close(self, server: asyncio.AbstractServer) -> None:
        assert isinstance(server, asyncio.Server)
        await stop_accepting(each.fileno() for each in server.sockets)
        for each in self._connections:
            if isinstance(each.transport, asyncio.Transport):
                each.transport.abort()
        await asyncio.sleep(0)  # they are closed in the next round of the loop


@dataclass
class MailServer:
    """The server of the bot's own domain, and what people received from it."""

    sent: list[EmailMessage] = field(default_factory=list)
    logins: list[bool] = field(default_factory=list)
    """Whether each login at the SMTP server had the right password."""
    refusals: dict[str, str] = field(default_factory=dict)
    """What to answer to a recipient."""
    lost_answers: int = 0
    """How many mails are accepted before the connection is cut instead of an answer."""
    answers: list[str] = field(default_factory=list)
    """What to answer to the content of the next mails, which are refused."""
    cut: int = 0
    """How many mails are refused by the end of the connection."""
    keeps_copies: bool = False
    password: str = PASSWORD
    certificate: Path | None = None
    """A file with a key and its certificate. Both servers then have TLS, and are `localhost`."""
    imap_port: int = field(default_factory=free_port)
    smtp_port: int = field(default_factory=free_port)
    _count: int = 0
    _stored: list[tuple[str, bytes]] = field(default_factory=list)
    """All mails with their folders."""
    _has_imap: bool = False
    _imap: ExitStack = field(default_factory=ExitStack)
    _smtp: ExitStack = field(default_factory=ExitStack)

    def __enter__(self) -> Self:
        with ExitStack() as starting:
            starting.callback(self.__exit__, None, None, None)
            self.online()
            starting.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.offline()

    def offline(self) -> None:
        """Neither server can be reached; people go on writing."""
        self.stop_smtp()
        self._has_imap = False
        self._imap.close()

    def online(self) -> None:
        """Both can be reached. IMAP begins new UIDs, as after a restored backup."""
        self.start_smtp()
        self._start_imap()
        self._has_imap = True
        for folder, mail in self._stored:
            self._append(folder, mail)

    def start_smtp(self) -> None:
        """Accept connections to SMTP."""
        smtp = _Smtp(self, self.smtp_port, self.certificate)
        self._smtp.callback(smtp.stop)
        smtp.start()

    def stop_smtp(self) -> None:
        """Refuse connections to SMTP."""
        self._smtp.close()

    def _start_imap(self) -> None:
        program = (sys.executable, "-c", IMAP, str(self.certificate or ""))
        listen = ("--host", "127.0.0.1", "--port", str(self.imap_port), "--no-tls")
        account = ("--demo-user", BOT, "--demo-password", PASSWORD)
        imap = subprocess.Popen([*program, *listen, "dict", *account])
        self._imap.callback(imap.wait)
        self._imap.callback(imap.kill)
        eventually(lambda: imap.poll() is not None or self._is_up(), "IMAP is up")
        assert imap.poll() is None, "the IMAP server has ended"

    @property
    def settings(self) -> dict[str, str]:
        """The settings of an account with this mailbox."""
        return {
            "address": BOT,
            "password": PASSWORD,
            "authserv_id": SERVER,
            "imap_server": f"{self._host}:{self.imap_port}",
            "smtp_server": f"{self._host}:{self.smtp_port}",
            "poll_seconds": "1",
        }

    @property
    def _host(self) -> str:
        return "127.0.0.1" if self.certificate is None else "localhost"

    def _is_up(self) -> bool:
        try:
            with self._box() as box:
                box.create("Sent")
        except OSError:
            return False
        return True

    @contextmanager
    def _box(self) -> Iterator[imaplib.IMAP4]:
        with self._connect() as box:
            box.login(BOT, PASSWORD)
            yield box

    def _connect(self) -> imaplib.IMAP4:
        if self.certificate is None:
            return imaplib.IMAP4(self._host, self.imap_port, timeout=10)
        tls = ssl.create_default_context(cafile=str(self.certificate))
        tls.check_hostname = False
        return imaplib.IMAP4_SSL(self._host, self.imap_port, ssl_context=tls, timeout=10)

    def _store(self, folder: str, mail: bytes) -> None:
        self._stored.append((folder, mail))
        if self._has_imap:
            self._append(folder, mail)

    def _append(self, folder: str, mail: bytes) -> None:
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

    def deliver_again(self, message_id: str) -> None:
        """Deliver a mail that was delivered before, as a further mail of the mailbox."""
        for folder, mail in list(self._stored):
            if folder == "INBOX" and message_id.encode() in mail:
                self._store(folder, mail)
                break

    # What aiosmtpd calls.

    def authenticate(
        self, server: object, session: object, envelope: object, mechanism: str, data: object
    ) -> AuthResult:
        is_right = isinstance(data, LoginPassword) and data.password == self.password.encode()
        self.logins.append(is_right)
        return AuthResult(success=is_right, handled=False)

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
        if self.answers:
            return self.answers.pop(0)
        if self.cut:
            self.cut -= 1
            return self._cut(server)
        mail: Any = message_from_bytes(content, policy=policy.default)
        self.sent.append(mail)
        if self.keeps_copies:
            self._store("Sent", content)
        if self.lost_answers:
            self.lost_answers -= 1
            return self._cut(server)
        return "250 OK"

    def _cut(self, server: SMTP) -> str:
        transport = server.transport
        assert isinstance(transport, asyncio.Transport)
        transport.abort()
        return "421 nobody reads this"


def example(name: str) -> Path:
    """The directory of an example package."""
    return Path(__file__).resolve().parents[3] / "examples" / name
