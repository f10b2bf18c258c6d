"""What people do on Twilio: they write to the number, and opt out and in by a word."""

from __future__ import annotations

import time
from collections.abc import Iterable
from uuid import uuid4

from tests.channels.fakes.twilio.messages import INBOUND, NUMBER, File, Message
from tests.channels.fakes.twilio.webhooks import Webhooks

STOP_WORDS = {"STOP", "STOPALL", "UNSUBSCRIBE", "CANCEL", "END", "QUIT", "REVOKE", "OPTOUT"}
START_WORDS = {"START", "YES", "UNSTOP"}


class People(Webhooks):
    """The people who write to the number."""

    def say(
        self,
        person: str,
        text: str,
        files: Iterable[File] = (),
        *,
        push: bool | None = None,
        created: float | None = None,
        **fields: str,
    ) -> str:
        """A person writes; returns the SID. `fields` are further fields of the webhook."""
        return self.run(self._say(person, text, list(files), push, created, fields))

    async def _say(
        self,
        person: str,
        text: str,
        files: list[File],
        push: bool | None,
        created: float | None,
        fields: dict[str, str],
    ) -> str:
        now = time.time() if created is None else created
        media = [f"ME{uuid4().hex}" for _ in files]
        for sid, file in zip(media, files, strict=True):
            self._keep_media(sid, file)
        message = Message(
            sid=f"{'MM' if files else 'SM'}{uuid4().hex}",
            sender=f"{self.prefix}{person}",
            to=f"{self.prefix}{NUMBER}",
            body=text,
            direction=INBOUND,
            created=now,
            sent=now,
            status="received",
            media=media,
        )
        self._keep(message)
        word = text.strip().upper()
        if word in STOP_WORDS:
            self.opted_out.add(person)
        elif word in START_WORDS:
            self.opted_out.discard(person)
        if self.webhooks if push is None else push:
            for _ in range(self.copies("message")):
                self._spawn(self._try_webhook(message, fields))
        self.changed()
        return message.sid
