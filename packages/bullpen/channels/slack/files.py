"""Files on Slack: uploaded first, and shared in a second step that cannot be repeated."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import BinaryIO

import aiohttp
from slack_sdk.web.async_client import AsyncWebClient

from bullpen.channels.failures import NotSent, OutcomeUnknown, Refused
from bullpen.channels.platform import Note, Recovered, Sending, Verdict
from bullpen.channels.slack.api import CONNECT_SECONDS, as_object, as_text, ask
from bullpen.core.answers.attachments import OpenFile
from bullpen.core.clock import MINUTE

FILE_SETTLED_MS = 2 * MINUTE
"""A file that nobody can see after this time was not shared."""
UPLOAD_SECONDS = 20.0
UPLOAD_BYTES = 1 << 16


async def share_file(
    web: AsyncWebClient, sending: Sending, file: OpenFile, chat: str, note: Note
) -> str:
    """Upload a file and share it. Until it is shared, nobody sees anything."""
    try:
        answer = await ask(web.files_getUploadURLExternal(filename=file.name, length=file.size))
        file_id = as_text(answer.get("file_id"))
        await _upload(web, as_text(answer.get("upload_url")), file)
    except OutcomeUnknown as error:
        raise NotSent("the file was not uploaded", error.code) from None
    await note(file_id)
    await ask(
        web.files_completeUploadExternal(
            files=[{"id": file_id, "title": file.name}],
            channel_id=chat,
            thread_ts=sending.to.thread or None,
        )
    )
    return f"{chat}:{file_id}"


async def _upload(web: AsyncWebClient, url: str, file: OpenFile) -> None:
    session = web.session
    assert session is not None
    headers = {"Content-Length": str(file.size), "Content-Type": "application/octet-stream"}
    try:
        async with session.post(
            url,
            data=_pieces(file.file, file.size),
            headers=headers,
            proxy=web.proxy,
            timeout=aiohttp.ClientTimeout(total=UPLOAD_SECONDS, sock_connect=CONNECT_SECONDS),
        ) as answer:
            if answer.status != 200:
                raise NotSent("the file was not uploaded", f"HTTP {answer.status}")
    except TimeoutError as error:
        if isinstance(error, aiohttp.ConnectionTimeoutError):
            raise NotSent("the file was not uploaded", type(error).__name__) from None
        # Another attempt would take as long, and nothing else would be sent meanwhile.
        raise Refused(f"its upload takes more than {UPLOAD_SECONDS:g} seconds") from None
    except (aiohttp.ClientError, OSError) as error:
        raise NotSent("the file was not uploaded", type(error).__name__) from None


async def find_file(web: AsyncWebClient, sending: Sending, now: int) -> Recovered:
    """Whether people can see the file that was uploaded."""
    if not sending.reference:  # not even uploaded
        return Recovered(Verdict.NOT_SENT)
    try:
        answer = await ask(web.files_info(file=sending.reference))
    except Refused as error:
        if error.code != "file_not_found":
            raise
        answer = {}
    file = as_object(answer.get("file"))
    shares = as_object(file.get("shares"))
    shared = any(as_object(shares.get(each)) for each in ("public", "private"))
    if shared or any(file.get(each) for each in ("channels", "groups", "ims")):
        return Recovered(Verdict.FOUND, f"{sending.to.chat}:{sending.reference}")
    settled = now - sending.began_at >= FILE_SETTLED_MS
    return Recovered(Verdict.NOT_SENT if settled else Verdict.LATER)


async def _pieces(file: BinaryIO, size: int) -> AsyncIterator[bytes]:
    """The first `size` bytes of a file."""
    while size > 0:
        piece = await asyncio.to_thread(file.read, min(UPLOAD_BYTES, size))
        if not piece:
            raise NotSent("the file has become shorter")
        size -= len(piece)
        yield piece
