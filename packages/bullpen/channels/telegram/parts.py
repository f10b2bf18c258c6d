"""Parts of responses as requests of Telegram's Bot API."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath

from telegram import InputFile

from bullpen.channels.platform import Sending
from bullpen.channels.telegram.updates import GENERAL_TOPIC
from bullpen.channels.text.telegram import render_telegram
from bullpen.channels.text.tree import Document

MAX_PHOTO_BYTES = 10 << 20
BUTTONS_IN_ROW = 3

Request = tuple[str, dict[str, object]]
"""A method and its parameters."""

_MEDIA = {
    **dict.fromkeys((".jpg", ".jpeg", ".png", ".webp"), "photo"),
    **dict.fromkeys((".mp4", ".mov"), "video"),
    **dict.fromkeys((".mp3", ".m4a"), "audio"),
    **dict.fromkeys((".ogg", ".oga"), "voice"),
    ".gif": "animation",
}
"""The kinds that Telegram shows or plays; all other files are documents."""


def compose(sending: Sending) -> Request:
    """The request that sends a part."""
    to = sending.to
    parameters: dict[str, object] = {"chat_id": to.chat or to.person}
    if to.thread and to.thread != GENERAL_TOPIC:
        parameters["message_thread_id"] = to.thread
    if sending.part == 0 and to.message.isdecimal():
        # Without the flag, a part would be refused because its question was deleted.
        parameters["reply_parameters"] = {
            "message_id": int(to.message),
            "allow_sending_without_reply": True,
        }
    if sending.buttons:
        buttons = [{"text": each.label, "callback_data": each.value} for each in sending.buttons]
        rows = range(0, len(buttons), BUTTONS_IN_ROW)
        keyboard = [buttons[at : at + BUTTONS_IN_ROW] for at in rows]
        parameters["reply_markup"] = {"inline_keyboard": keyboard}
    if sending.file is not None:
        return _compose_file(sending, parameters)
    rendered = render_telegram(sending.text or Document.parse(""))
    parameters["text"] = rendered.text
    parameters["entities"] = list(rendered.entities) or None
    # For a preview, Telegram would open a link that a model wrote.
    parameters["link_preview_options"] = {"is_disabled": True}
    return "sendMessage", parameters


def plainer(request: Request, sending: Sending, reason: str) -> Request | None:
    """A form of a refused part that Telegram may accept; None if there is none."""
    method, rest = request[0], dict(request[1])
    reason = reason.lower()
    for word, field in (("thread not found", "message_thread_id"), ("entit", "entities")):
        if word in reason and rest.pop(field, None):
            return method, rest
    if sending.file is not None and method != "sendDocument":
        del rest[method.removeprefix("send").lower()]
        return _compose_file(sending, rest, "document")
    return None


def _compose_file(sending: Sending, parameters: Mapping[str, object], kind: str = "") -> Request:
    file = sending.file
    assert file is not None
    kind = kind or _MEDIA.get(PurePath(file.name).suffix.lower(), "document")
    if kind == "photo" and file.size > MAX_PHOTO_BYTES:
        kind = "document"
    upload = InputFile(file.file, filename=file.name, read_file_handle=False)
    return f"send{kind.capitalize()}", {**parameters, kind: upload}
