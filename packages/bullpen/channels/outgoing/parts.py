"""The parts of a response: its text, cut to the platform's size, then each file.

Each receipt has the end offset of its part in the text, so that a delivery continues where the last
one ended, even if the next release cuts texts elsewhere.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

from bullpen.channels.platform import Address, Button, Sending
from bullpen.channels.text.split import next_end
from bullpen.channels.text.tree import Document
from bullpen.core.answers.attachments import OpenFile
from bullpen.core.message import ReplyTo
from bullpen.core.models.base import decode_texts
from bullpen.core.outbox.delivery import Delivery
from bullpen.core.outbox.parts import SendingPart

DUPLICATE_LABEL = "*(possible duplicate)*"
MAX_BUTTONS = 5


@dataclass(frozen=True, slots=True)
class Parts:
    """A response as the parts of one platform."""

    delivery: Delivery
    document: Document
    files: int
    fits: Callable[[Document], bool]
    store_id: str
    window_until: int = 0
    """When the platform's time for free text ends; 0 if that is unknown."""

    @classmethod
    def of(cls, delivery: Delivery, fits: Callable[[Document], bool], store_id: str) -> Parts:
        """The parts of a leased response."""
        document = Document.parse(delivery.message)
        return cls(delivery, document, len(decode_texts(delivery.files)), fits, store_id)

    def next(self, delivery: Delivery) -> SendingPart | None:
        """The next part to send; None if all have their receipts."""
        number = delivery.parts_sent
        start = delivery.upto
        if start < self.document.length:
            label = self._label(delivery)

            def fits(piece: Document) -> bool:
                return self.fits(piece if label is None else joined(label, piece))

            upto = next_end(self.document, start, fits)
            last = upto >= self.document.length and not self.files
            return SendingPart(part=number, upto=upto, last=last)
        left = [each for each in range(self.files) if each not in delivery.files_sent]
        return SendingPart(part=number, file=left[0], last=len(left) == 1) if left else None

    def sending(
        self,
        delivery: Delivery,
        part: SendingPart,
        *,
        began_at: int,
        file: OpenFile | None = None,
        refusal: str = "",
    ) -> Sending:
        """A part as the platform gets it; a text with the reason replaces a refused file."""
        text = None
        buttons: tuple[Button, ...] = ()
        if refusal:
            text = Document.parse(refusal)
        elif part.file is None:
            text = self.document.slice(delivery.upto, part.upto)
            label = self._label(delivery)
            if label is not None:
                text = joined(label, text)
            if part.upto == self.document.length:
                buttons = buttons_of(delivery)
        return Sending(
            key=part_key(self.store_id, delivery.id, part.part),
            part=part.part,
            to=address_of(delivery),
            text=text,
            file=file,
            buttons=buttons,
            agent=delivery.agent,
            began_at=began_at,
            expires_at=delivery.expires_at,
            window_until=self.window_until,
            reference=part.ref,
        )

    def _label(self, delivery: Delivery) -> Document | None:
        """The words before the first part that is sent again after an unknown outcome."""
        again = delivery.possible_duplicate and delivery.parts_sent == self.delivery.parts_sent
        return Document.parse(DUPLICATE_LABEL) if again else None


def joined(first: Document, second: Document) -> Document:
    """One text after the other."""
    return Document((*first.blocks, *second.blocks))


def address_of(delivery: Delivery) -> Address:
    """The platform address of a response."""
    to = ReplyTo.parse(delivery.reply_to) if delivery.reply_to else ReplyTo()
    person = delivery.sender_id or ""
    return Address(chat=to.chat, thread=to.thread, message=to.message, person=person)


def buttons_of(delivery: Delivery) -> tuple[Button, ...]:
    """The buttons in the metadata of a response: `{"buttons": [["label", "value"]]}`."""
    if not delivery.metadata:
        return ()
    found: object = json.loads(delivery.metadata)
    pairs = found.get("buttons") if isinstance(found, dict) else None
    if not isinstance(pairs, list):
        return ()
    return tuple(
        Button(label=str(each[0]), value=str(each[1]))
        for each in pairs[:MAX_BUTTONS]
        if isinstance(each, list) and len(each) == 2
    )


def part_key(store_id: str, response: int, part: int) -> str:
    """The key of a part: the same on every attempt, at most 25 characters."""
    return f"b{store_id}{response}.{part}"


def parse_part_key(key: str, store_id: str) -> tuple[int, int] | None:
    """The response and part of a key; None if another installation made it."""
    prefix = f"b{store_id}"
    response, dot, part = key.removeprefix(prefix).partition(".")
    if not key.startswith(prefix) or not dot or not (response.isdecimal() and part.isdecimal()):
        return None
    return int(response), int(part)
