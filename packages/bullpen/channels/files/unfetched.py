"""The files that are still to be fetched, kept on the disk: a killed process fetches them again.

Nothing depends on this directory. Without it the message is processed after its delay, with the
note that its files are missing.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from bullpen.channels.inbound import Attachment
from bullpen.core.files import PRIVATE_DIRECTORY_MODE, PRIVATE_FILE_MODE
from bullpen.core.strict_json import Json, read_json

SUFFIX = ".json"
NAME_CHARS = 32


@dataclass(frozen=True, slots=True)
class Sender:
    """The sender of a message, who gets a notice about files that were not accepted."""

    channel: str
    name: str
    id: str
    reply_to: str


@dataclass(frozen=True, slots=True)
class Unfetched:
    """A message that waits for its files, or for those of an earlier one of its chat."""

    place: str
    """The chat and thread."""
    conversation_id: str
    attachments: tuple[Attachment, ...]
    sender: Sender
    delay: int
    """Its own delay besides, in milliseconds."""


class UnfetchedFiles:
    """A directory with one file for each such message."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def save(self, entry: Unfetched) -> None:
        """Keep it before its message is committed. It survives a kill, not a power cut."""
        self._directory.mkdir(mode=PRIVATE_DIRECTORY_MODE, parents=True, exist_ok=True)
        path = self._path(entry.conversation_id)
        # A URL of a platform may contain a secret.
        number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, PRIVATE_FILE_MODE)
        with os.fdopen(number, "w", encoding="utf-8") as file:
            json.dump(asdict(entry), file)

    def drop(self, conversation_ids: Sequence[str]) -> None:
        """Forget these: their messages do not wait any more."""
        for each in conversation_ids:
            with suppress(OSError):
                self._path(each).unlink(missing_ok=True)

    def load(self) -> list[Unfetched]:
        """All that are kept, oldest first. What cannot be read is deleted."""
        found: list[tuple[int, Unfetched]] = []
        for path in self._directory.glob(f"*{SUFFIX}"):
            try:
                found.append((path.stat().st_mtime_ns, _parse(read_json(path.read_text("utf-8")))))
            except (OSError, ValueError):
                with suppress(OSError):
                    path.unlink(missing_ok=True)
        return [entry for _, entry in sorted(found, key=lambda each: each[0])]

    def _path(self, conversation_id: str) -> Path:
        digest = hashlib.sha256(conversation_id.encode()).hexdigest()
        return self._directory / f"{digest[:NAME_CHARS]}{SUFFIX}"


def _parse(value: Json) -> Unfetched:
    """The entry that `save` wrote; raises ValueError for anything else."""
    match value:
        case {
            "place": str(place),
            "conversation_id": str(conversation_id),
            "attachments": list(attachments),
            "sender": {
                "channel": str(channel),
                "name": str(name),
                "id": str(id_),
                "reply_to": str(reply_to),
            },
            "delay": int(delay),
        }:
            files = tuple(_parse_attachment(each) for each in attachments)
            sender = Sender(channel, name, id_, reply_to)
            return Unfetched(place, conversation_id, files, sender, delay)
    raise ValueError("not a kept message")


def _parse_attachment(value: Json) -> Attachment:
    match value:
        case {
            "name": str(name),
            "source": str(source),
            "type": str(type_),
            "size": int() | None as size,
        }:
            return Attachment(name=name, source=source, type=type_, size=size)
    raise ValueError("not an attachment")
