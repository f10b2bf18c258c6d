"""The parts of a response: the one that is being sent, and the receipts of those that were sent.

A text is sent from the offset up to which the receipts say that it arrived, so that a release that
splits texts differently continues at the same place. Files are parts of their own.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, fields

from bullpen.core.strict_json import Json


@dataclass(frozen=True, slots=True)
class PartReceipt:
    """The platform's receipt for a part."""

    id: str
    """The platform's id of the message."""
    upto: int | None = None
    """The end offset of a part of the text."""
    file: int | None = None
    """The index of a file."""


@dataclass(frozen=True, slots=True)
class SendingPart:
    """A part that is about to be sent, and everything that a look-up needs to find it later."""

    part: int
    """Its number, from 0: the number of parts that were sent before it."""
    upto: int | None = None
    """The end offset of a part of the text."""
    file: int | None = None
    """The index of a file."""
    ref: str = ""
    """The platform's reference of an upload in flight."""
    last: bool = False
    """Whether no other part follows."""

    def receipt(self, id_: str) -> PartReceipt:
        """Its receipt, once the platform's id of the message is known."""
        return PartReceipt(id_, self.upto, self.file)


def encode_receipts(receipts: Iterable[PartReceipt]) -> str:
    """The receipts as the text of their column."""
    return json.dumps([_fields(each) for each in receipts])


def decode_receipts(text: str | None) -> tuple[PartReceipt, ...]:
    """The receipts in a column; NULL means none."""
    found = _decode(text)
    return tuple(map(_receipt, found)) if isinstance(found, list) else ()


def encode_part(part: SendingPart) -> str:
    """The part as the text of its column."""
    return json.dumps(_fields(part))


def decode_part(text: str | None) -> SendingPart | None:
    """The part in a column; None if there is none."""
    found = _decode(text)
    if not isinstance(found, dict):
        return None
    return SendingPart(
        part=_number(found.get("part")) or 0,
        upto=_number(found.get("upto")),
        file=_number(found.get("file")),
        ref=str(found.get("ref") or ""),
        last=found.get("last") is True,
    )


def _receipt(found: Json) -> PartReceipt:
    if not isinstance(found, dict):
        return PartReceipt(str(found))
    id_, upto, file = (found.get(each) for each in ("id", "upto", "file"))
    return PartReceipt(str(id_ or ""), _number(upto), _number(file))


def _number(found: Json) -> int | None:
    return found if isinstance(found, int) else None


def _decode(text: str | None) -> Json:
    try:
        found: Json = json.loads(text) if text else None
    except ValueError:
        return None
    return found


def _fields(part: PartReceipt | SendingPart) -> dict[str, object]:
    """The fields that differ from their default."""
    values = ((each.name, getattr(part, each.name)) for each in fields(part))
    return {name: each for name, each in values if each not in (None, "") and each is not False}
