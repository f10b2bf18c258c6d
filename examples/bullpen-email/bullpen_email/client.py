"""The client of one mailbox: IMAP reads it by UID, and SMTP takes the answers."""

import asyncio
import imaplib
import re
import smtplib
import ssl
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from email import message_from_bytes, policy
from email.message import EmailMessage
from email.utils import formataddr, formatdate
from typing import Any

from bullpen import channels as c
from bullpen_email.mail import is_automatic, text_of, verified_author

MESSAGE_ID = re.compile(r"<[^<>\s]{1,250}>")
# After two minutes, what SMTP accepted is in the folder of sent mail.
DAY, MOST_BYTES, COPIED_MS = 86_400, 1 << 20, 120_000


class Email(c.Platform):
    """A mailbox: each person is a chat, and each exchange of mails a thread."""

    catch_up = c.CatchUp.CHATS

    async def start(self) -> c.Identity:
        self._cursor = await asyncio.to_thread(self._last)
        return c.Identity(id=self.context.setting("address"))

    async def receive(self, intake: c.Intake) -> None:
        intake.connected()
        while True:
            for mail in await asyncio.to_thread(self._read, self._cursor):
                await intake.add(mail)
                self._cursor = str(mail["uid"])
            intake.heard()
            await asyncio.sleep(int(self.context.setting("poll_seconds")))

    async def chats(self) -> Sequence[c.Chat]:
        return [c.Chat(id="INBOX", direct=True)]  # it has the cursor of all chats

    async def missed(self, place: c.Place, limit: int) -> list[c.Payload]:
        return await asyncio.to_thread(self._read, place.cursor, place.since, limit)

    def parse(self, payload: c.Payload) -> c.Inbound | None:
        raw, uid = str(payload["raw"]).encode("latin-1"), str(payload["uid"])
        mail: Any = message_from_bytes(raw, policy=policy.default)
        address, name = verified_author(mail, self.context.setting("authserv_id"))
        if address in ("", self.context.setting("address").lower()) or is_automatic(mail):
            return None
        earlier = f"{mail.get('References', '')} {mail.get('In-Reply-To', '')}"
        own = (*MESSAGE_ID.findall(str(mail.get("Message-ID", ""))), f"<{uid}@unknown>")[0]
        source = c.Source(
            chat=c.Chat(id=address, direct=True),
            person=c.Person(id=address, name=name),
            thread=(*MESSAGE_ID.findall(earlier), own)[0],
            message=f"{own} {' '.join(str(mail.get('Subject', '')).split())[:200]}",
            at=int(str(payload["at"])),
            keys=(f"{address} {own}",),
        )
        return c.Written(source=source, text=text_of(mail), cursor=uid, cursor_chat="INBOX")

    def fits(self, text: c.Document) -> bool:
        return text.length <= 200_000

    async def send(self, sending: c.Sending, note: c.Note) -> str:
        to, mail = sending.to, EmailMessage(policy=policy.SMTP.clone(max_line_length=900))
        answered, _, subject = to.message.partition(" ")
        mail["Message-ID"], mail["Date"] = self._id(sending), formatdate(sending.began_at / 1000)
        mail["From"] = formataddr((sending.agent, self.context.setting("address")))
        mail["To"], mail["Auto-Submitted"] = to.chat or to.person, "auto-replied"
        mail["Subject"] = re.sub(r"(?i)^(re:\s*)*", "Re: ", subject) if answered else "Bullpen"
        if answered:
            mail["In-Reply-To"], mail["References"] = answered, f"{to.thread} {answered}"
        if sending.text is not None:
            mail.set_content(sending.text.plain(), cte="quoted-printable")
        elif (file := sending.file) is not None:
            mail.set_content(file.file.read(), "application", "octet-stream", filename=file.name)
        await asyncio.to_thread(self._hand_over, mail["To"], mail.as_bytes())
        return self._id(sending)

    async def recover(self, sending: c.Sending) -> c.Recovered:
        if not (folder := self.context.setting("sent_folder")):
            return c.Recovered(c.Verdict.CANNOT_TELL)
        if await asyncio.to_thread(self._has, folder, self._id(sending)):
            return c.Recovered(c.Verdict.FOUND, self._id(sending))
        copied = self.context.clock.now() - sending.began_at > COPIED_MS
        return c.Recovered(c.Verdict.NOT_SENT if copied else c.Verdict.LATER)

    def _id(self, sending: c.Sending) -> str:
        return f"<{sending.key}@{self.context.setting('address').rpartition('@')[2]}>"

    @contextmanager
    def _server(self, kind: str) -> Iterator[Any]:
        setting = self.context.setting
        (host, _, port), tls = setting(f"{kind}_server").rpartition(":"), setting(f"{kind}_tls")
        if tls == "none" and host != "127.0.0.1":
            raise c.ChannelDown("no_tls", f"{host} would get the password without TLS")
        context = {"context" if kind == "smtp" else "ssl_context": ssl.create_default_context()}
        module, name = (smtplib, "SMTP") if kind == "smtp" else (imaplib, "IMAP4")
        make, options = getattr(module, f"{name}_SSL" if tls == "ssl" else name), {"timeout": 20}
        try:
            with make(host, int(port), **options, **(context if tls == "ssl" else {})) as server:
                if tls == "starttls":
                    server.starttls(**context)
                server.login(setting("address"), setting("password"))
                yield server
        except imaplib.IMAP4.abort as error:
            raise ConnectionError(str(error)) from error
        except (imaplib.IMAP4.error, smtplib.SMTPAuthenticationError) as error:
            raise c.ChannelDown("refused", f"{host} refuses the account: {error}") from error

    def _hand_over(self, to: str, mail: bytes) -> None:
        failed: type[c.SendFailed] = c.NotSent
        try:
            with self._server("smtp") as server:
                failed = c.OutcomeUnknown
                server.sendmail(self.context.setting("address"), [to], mail)
                server.close()  # it has the mail, whatever becomes of QUIT
        except smtplib.SMTPRecipientsRefused as error:
            ((code, reply),) = error.recipients.values()
            raise (c.Undeliverable(f"{reply!r}") if code >= 500 else c.RateLimited(60)) from error
        except smtplib.SMTPResponseException as error:
            permanent = error.smtp_code >= 500 and failed is c.OutcomeUnknown
            raise (c.Refused(str(error)) if permanent else c.RateLimited(60)) from error
        except OSError as error:
            raise failed(str(error)) from error

    def _last(self) -> str:
        with self._server("imap") as box:
            box.select(readonly=True)
            validity, following = (int(box.response(n)[1][0]) for n in ("UIDVALIDITY", "UIDNEXT"))
            return f"{validity}.{following - 1}"

    def _has(self, folder: str, message_id: str) -> bool:
        with self._server("imap") as box:
            box.select(f'"{folder}"', readonly=True)
            return bool(box.uid("SEARCH", "HEADER", "Message-ID", message_id)[1][0])

    def _read(self, cursor: str, since: int = 0, limit: int = 100) -> list[c.Payload]:
        found: list[c.Payload] = []
        start = since or int(time.time() - DAY) * 1000  # only used if there is no UID to start at
        with self._server("imap") as box:
            box.select(readonly=True)
            validity = int(box.response("UIDVALIDITY")[1][0])
            last = int(cursor.partition(".")[2]) if cursor.startswith(f"{validity}.") else 0
            day = imaplib.Time2Internaldate(start / 1000 - DAY)[1:12]
            query = ("UID", f"{last + 1}:*") if last else ("SINCE", day)
            for uid in sorted(map(int, box.uid("SEARCH", *query)[1][0].split())):
                if uid <= last or len(found) == limit:  # `*` is always the newest
                    continue
                data = box.uid("FETCH", str(uid), f"(INTERNALDATE BODY.PEEK[]<0.{MOST_BYTES}>)")[1]
                about, raw = data[0] or (b"", b"")  # it was deleted
                at = int(time.mktime(imaplib.Internaldate2tuple(about) or time.gmtime())) * 1000
                mail = {"uid": f"{validity}.{uid}", "at": at, "raw": raw.decode("latin-1")}
                with suppress(Exception):  # a mail that cannot be read must not stop the others
                    if raw and (last or at >= start) and (not since or self.parse(mail)):
                        found.append(mail)
        return found
