"""What Twilio pushes: signed webhooks of messages, and status callbacks.

It is signed for the public URL and goes to `listener`, as through a proxy.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from hashlib import sha1
from hmac import digest
from typing import Unpack

import aiohttp

from tests.channels.fakes.base import Options
from tests.channels.fakes.twilio.messages import (
    ACCOUNT_SID,
    AUTH_TOKEN,
    File,
    Message,
    Messages,
    bare,
)

PUSH_SECONDS = 15.0


class Webhooks(Messages):
    """The webhooks of one number."""

    def __init__(self, port: int = 0, **options: Unpack[Options]) -> None:
        super().__init__(port, **options)
        self.public_url = ""
        self.listener = ""
        """The listener on loopback that the public URL leads to."""
        self.webhooks = True
        """Whether messages of people are pushed; otherwise only the list has them."""
        self.callbacks: tuple[str, ...] = ("sent", "delivered")
        """The statuses that are reported for each message of the bot, in this order."""
        self.answers: list[tuple[str, int, str]] = []
        """What the listener answered: path, status, body."""
        self._turns: dict[str, asyncio.Lock] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def redeliver(self, sid: str, fallback: bool = False) -> int:
        """Push a message of a person once more; returns the status of the answer."""
        return self.run(
            self._push_message(self._find(sid), {}, "/fallback" if fallback else "/message")
        )

    def report(self, sid: str, status: str, error: int | None = None) -> int:
        """Report a status of a message of the bot; returns the status of the answer."""
        return self.run(self._report(self._find(sid), status, error))

    def push(
        self,
        path: str,
        form: Mapping[str, str],
        *,
        signature: str | None = None,
        headers: Mapping[str, str] | None = None,
        token: str = AUTH_TOKEN,
    ) -> tuple[int, str]:
        """Push any form, signed unless a signature is given; returns the status and the body."""
        url = f"{self.public_url}{path}"
        sign = signature if signature is not None else sign_form(url, form, token)
        return self.run(self._post(url, form, {"X-Twilio-Signature": sign, **(headers or {})}))

    def settled(self) -> bool:
        """Whether nothing is being delivered or pushed."""
        return not self._tasks

    def _spawn(self, work: Coroutine[object, object, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _try_webhook(self, message: Message, fields: Mapping[str, str]) -> None:
        """Push a message: once more if the connection is refused, then to the fallback URL."""
        paths = ["/message", "/message", "/fallback"]
        # In order, which Twilio does not promise, but mostly keeps.
        async with self._turns.setdefault(message.sender, asyncio.Lock()):
            while paths:
                with suppress(aiohttp.ClientError, OSError, TimeoutError):
                    if await self._push_message(message, fields, paths[0]) < 300:
                        return
                    paths = ["", *paths[-1:]] if paths[0] == "/message" else [""]
                del paths[0]
                await asyncio.sleep(0.05)

    async def _push_message(self, message: Message, fields: Mapping[str, str], path: str) -> int:
        form = self.form(message) | dict(fields)
        if path == "/fallback":
            form |= {"ErrorCode": "11200", "ErrorUrl": f"{self.public_url}/message"}
        url = f"{self.public_url}{path}"
        status, _ = await self._post(url, form, {"X-Twilio-Signature": sign_form(url, form)})
        if status < 300:
            self.acked.add(message.sid)
            self.remember({"acked": message.sid})
        self.changed()
        return status

    def form(self, message: Message) -> dict[str, str]:
        """The webhook's form for a message of a person."""
        base = f"{self.url}/2010-04-01/Accounts/{ACCOUNT_SID}/Messages/{message.sid}/Media"
        form = {
            "AccountSid": ACCOUNT_SID,
            "ApiVersion": "2010-04-01",
            "Body": message.body,
            "From": message.sender,
            "MessageSid": message.sid,
            "NumMedia": str(len(message.media)),
            "NumSegments": "1",
            "SmsMessageSid": message.sid,
            "SmsSid": message.sid,
            "SmsStatus": "received",
            "To": message.to,
        }
        if self.channel == "whatsapp":
            number = bare(message.sender)
            form |= {"ProfileName": f"Person {number[-2:]}", "WaId": number.lstrip("+")}
        for index, sid in enumerate(message.media):
            form[f"MediaUrl{index}"] = f"{base}/{sid}"
            form[f"MediaContentType{index}"] = self.media[sid][1]
        return form

    async def _report(self, message: Message, status: str, code: int | None) -> int:
        if not message.callback:
            return 0
        form = {
            "AccountSid": ACCOUNT_SID,
            "From": message.sender,
            "MessageSid": message.sid,
            "MessageStatus": status,
            "SmsSid": message.sid,
            "SmsStatus": status,
            "To": message.to,
            **({"ErrorCode": str(code)} if code else {}),
        }
        signed = {"X-Twilio-Signature": sign_form(message.callback, form)}
        return (await self._post(message.callback, form, signed))[0]

    async def _post(
        self, url: str, form: Mapping[str, str], headers: Mapping[str, str]
    ) -> tuple[int, str]:
        timeout = aiohttp.ClientTimeout(PUSH_SECONDS)
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.post(self._local(url), data=dict(form), headers=headers) as answer,
        ):
            body = await answer.text()
            self.answers.append((url.removeprefix(self.public_url), answer.status, body))
            return answer.status, body

    async def _fetch(self, url: str) -> File:
        """Fetch a file that the bot sends, as anybody could."""
        async with aiohttp.ClientSession() as session, session.get(self._local(url)) as answer:
            answer.raise_for_status()
            return url.rsplit("/", 1)[-1], answer.content_type, await answer.read()

    def _local(self, url: str) -> str:
        """Where the proxy of the public URL leads."""
        assert url.startswith(f"{self.public_url}/"), url
        host = "/".join(self.public_url.split("/", 3)[:3])
        return f"{self.listener}{url.removeprefix(host)}"


def sign_form(url: str, form: Mapping[str, str], token: str = AUTH_TOKEN) -> str:
    """The signature of a form, computed here and not by the SDK under test."""
    text = url + "".join(f"{name}{form[name]}" for name in sorted(form))
    return base64.b64encode(digest(token.encode(), text.encode(), sha1)).decode()
