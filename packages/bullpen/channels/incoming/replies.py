"""Replies of Bullpen itself in a chat: codes for pairing, offers and refusals."""

from __future__ import annotations

import json
from collections.abc import Mapping

from bullpen.channels.inbound import Source
from bullpen.channels.incoming.access import Decision
from bullpen.channels.incoming.commands import write_commands
from bullpen.channels.incoming.edits import Offer
from bullpen.core.channels.pairing import request_group, request_pairing
from bullpen.core.message import Answer, ReplyTo
from bullpen.core.outbox.write import send_to_person
from bullpen.core.store.transaction import Transaction


class Replies:
    """Writes the replies of one account."""

    def __init__(self, channel: str, command_prefix: str, *, has_buttons: bool) -> None:
        self._channel = channel
        self._command_prefix = command_prefix
        self._has_buttons = has_buttons

    def _prefix(self, text: str) -> str:
        """The text with its commands as people write them on this platform."""
        return text if self._command_prefix == "/" else write_commands(text, self._command_prefix)

    def send(
        self,
        tx: Transaction,
        source: Source,
        text: str,
        *,
        message_id: str | None = None,
        metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Reply to what a person wrote, where they wrote it."""
        send_to_person(
            tx,
            Answer(
                message=self._prefix(text),
                metadata=None if metadata is None else json.dumps(metadata),
            ),
            channel=self._channel,
            sender=source.person.name or source.person.id,
            sender_id=source.person.id,
            message_id=message_id,
            reply_to=str(_address(source)),
        )

    def introduce(self, tx: Transaction, source: Source, decision: Decision) -> str:
        """Reply with a pairing code, at most once an hour; nothing else is done for strangers.

        Returns the id of a person who got a code, if their name is not known.
        """
        if decision is Decision.PAIR_PERSON:
            person, asked_in = source.person, _address(source)
            code = request_pairing(tx, self._channel, person.id, person.name, asked_in)
            what = "I do not know you yet."
        elif decision is Decision.PAIR_GROUP:
            code = request_group(tx, self._channel, source.chat.id, source.chat.name)
            what = "This group is not allowed yet."
        else:
            return ""
        if code is None:
            return ""
        self.send(
            tx,
            source,
            f"{what} The owner can run `bullpen pairing approve {code}`, or send me "
            f"`/approve {code}`. The code is valid for one hour. Then send your message again.",
        )
        is_nameless = decision is Decision.PAIR_PERSON and not source.person.name
        return source.person.id if is_nameless else ""

    def offer(self, tx: Transaction, source: Source, given: Offer) -> None:
        """Offer to run an edited text, with a button where there are some."""
        if not given.runs:
            self.send(tx, source, given.text)
            return
        id_ = tx.ids.new("proactive")
        text = given.text
        metadata = given.metadata()
        if self._has_buttons:
            metadata["buttons"] = [["Run the new text", f"/rerun {id_}"]]
        else:
            text += f" To run it, send `/rerun {id_}`."
        self.send(tx, source, text, message_id=id_, metadata=metadata)


def _address(source: Source) -> ReplyTo:
    return ReplyTo(source.chat.id, source.thread, source.message)
