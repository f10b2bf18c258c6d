"""The client of one mailbox: IMAP reads it by UID, and SMTP takes the answers."""

import asyncio
import imaplib
import re
import smtplib
import time
from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_bytes, policy
from email.message import EmailMessage
from email.utils import formataddr, formatdate
from functools import partial

from bullpen import channels as c
from bullpen_email.mail import is_automatic, text_of, verified_author

MESSAGE_ID = re.compile(r"<[^<>\s]{1,250}>")
FETCHED = "(INTERNALDATE BODY.PEEK[]<0.1048576>)"
DAY, SECONDS = 86_400, 20


class Email(c.Platform):
    """A mailbox is one feed: each person is a chat, and each exchange of mails a thread."""

    catch_up = c.CatchUp.FEED

    async def start(self) -> c.Identity:
        await asyncio.to_thread(self._uids, self.context.setting("sent_folder") or "INBOX", "NEW")
        return c.Identity(id=self.context.setting("address"))

    async def missed(self, place: c.Place, limit: int) -> list[c.Payload]:
        return await asyncio.to_thread(self._read, place, limit)

    def parse(self, payload: c.Payload) -> c.Written | None:
        raw = str(payload["raw"]).encode("latin-1")
        mail = message_from_bytes(raw, EmailMessage, policy=policy.default)
        address, name = verified_author(mail, self.context.setting("authserv_id"))
        if address in ("", self.context.setting("address").lower()) or is_automatic(mail):
            return None
        own = (*MESSAGE_ID.findall(str(mail["Message-ID"])), f"<{payload['cursor']}@unknown>")[0]
        source = c.Source(
            chat=c.Chat(id=address, direct=True),
            person=c.Person(id=address, name=name),
            thread=MESSAGE_ID.findall(f"{mail['References']} {mail['In-Reply-To']} {own}")[0],
            message=f"{own} {' '.join(str(mail.get('Subject', '')).split())[:200]}",
            at=int(str(payload["at"])),
            keys=(f"{address} {own}",),
        )
        return c.Written(source=source, text=text_of(mail))

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
        id_, folder = self._id(sending), self.context.setting("sent_folder")
        if not folder:
            return c.Recovered(c.Verdict.CANNOT_TELL)
        if await asyncio.to_thread(self._uids, folder, "HEADER", "Message-ID", id_):
            return c.Recovered(c.Verdict.FOUND, id_)
        return self.not_found(sending)

    def _id(self, sending: c.Sending) -> str:
        """The same on each attempt."""
        return f"<{sending.key}@{self.context.setting('address').rpartition('@')[2]}>"

    @contextmanager
    def _opened(self, folder: str) -> Iterator[imaplib.IMAP4]:
        """A connection that reads a folder."""
        host, port, tls = self.context.server("imap_server")
        connect = partial(imaplib.IMAP4_SSL, ssl_context=tls) if tls else imaplib.IMAP4
        try:
            with connect(host, port, timeout=SECONDS) as box:
                box.login(self.context.setting("address"), self.context.setting("password"))
                box.select(f'"{folder}"', readonly=True)
                yield box
        except imaplib.IMAP4.abort as error:
            raise ConnectionError(str(error)) from error
        except imaplib.IMAP4.error as error:
            raise c.ChannelDown("refused", f"{host}, folder {folder}: {error}") from error

    def _uids(self, folder: str, *query: str) -> list[bytes]:
        with self._opened(folder) as box:
            return list(box.uid("SEARCH", *query)[1][0].split())

    def _read(self, place: c.Place, limit: int) -> list[c.Payload]:
        """The mails after the UID of the cursor, or by time if the server has begun new UIDs."""
        found: list[c.Payload] = []
        with self._opened("INBOX") as box:
            validity = f"{int(box.response('UIDVALIDITY')[1][0])}."
            last = int(place.cursor.split(".")[1]) if place.cursor.startswith(validity) else 0
            day = imaplib.Time2Internaldate(place.since / 1000 - DAY)[1:12]
            query = ("UID", f"{last + 1}:*") if last else ("SINCE", day)
            uids = sorted(map(int, box.uid("SEARCH", *query)[1][0].split()))
            for each in [uid for uid in uids if uid > last][:limit]:  # `*` is always the newest
                about, raw = box.uid("FETCH", str(each), FETCHED)[1][0] or (b"", b"")  # deleted
                at = int(time.mktime(imaplib.Internaldate2tuple(about) or time.gmtime())) * 1000
                text = raw.decode("latin-1") if last or at >= place.since else ""
                found.append({"cursor": f"{validity}{each}", "at": at, "raw": text})
        return found

    def _hand_over(self, to: str, mail: bytes) -> None:
        """Send a mail. Each kind of answer of the server has its own error."""
        host, port, tls = self.context.server("smtp_server")
        logged_in = False
        try:
            with smtplib.SMTP(host, port, timeout=SECONDS) as server:
                if tls:
                    server.starttls(context=tls)
                server.login(self.context.setting("address"), self.context.setting("password"))
                logged_in = True
                server.sendmail(self.context.setting("address"), [to], mail)
                server.close()  # it has the mail, whatever becomes of QUIT
        except smtplib.SMTPAuthenticationError as error:
            raise c.ChannelDown("refused", f"{host} refuses the account: {error}") from error
        except smtplib.SMTPRecipientsRefused as error:
            ((code, reply),) = error.recipients.values()
            raise (c.Undeliverable(f"{reply!r}") if code >= 500 else c.RateLimited(60)) from error
        except (smtplib.SMTPSenderRefused, smtplib.SMTPDataError) as error:
            meant = {4: c.RateLimited(60), 5: c.Refused(str(error))}
            raise meant.get(error.smtp_code // 100, c.OutcomeUnknown(str(error))) from error
        except OSError as error:
            raise (c.OutcomeUnknown if logged_in else c.NotSent)(str(error)) from error
