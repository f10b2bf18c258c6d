"""Incoming: what a parsed payload leads to, decided and stored in one transaction.

A message is compared with its receipts before anything else, then its author is authorised, and
only then it is a command, or a message for an agent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from bullpen.channels.files.attachments import Prepared, Sender
from bullpen.channels.inbound import (
    Attachment,
    ChatChange,
    Deleted,
    Edited,
    Inbound,
    Pressed,
    Proof,
    Source,
    Written,
)
from bullpen.channels.incoming.access import Access, Decision, Known, authorise, look_up
from bullpen.channels.incoming.chat_changes import COMMAND_RECEIPT, change_chat
from bullpen.channels.incoming.commands import Asked, Command, Reply, find_command, run_command
from bullpen.channels.incoming.edits import apply_edit, withdraw
from bullpen.channels.incoming.follow_up import NOTHING, Taken
from bullpen.channels.incoming.replies import Replies
from bullpen.channels.outgoing.parts import parse_part_key
from bullpen.channels.platform import Address
from bullpen.core.channels.chats import (
    ChatSeen,
    find_chat,
    move_cursor,
    note_away_told,
    set_opted_out,
    set_window,
    touch_chat,
)
from bullpen.core.channels.senders import Tier, see_sender
from bullpen.core.clock import HOUR, MINUTE, SECOND, format_interval
from bullpen.core.errors import BullpenError, StoreError, UnknownRecipient
from bullpen.core.intake import (
    MAX_SENDER_CHARS,
    answer_unknown_recipient,
    store_as_person,
    submit,
    submit_to,
)
from bullpen.core.message import SEPARATOR, Accepted, NewMessage, ReplyTo
from bullpen.core.outbox.recovery import prove
from bullpen.core.outbox.write import send_to_owner
from bullpen.core.queue.enqueue import PlatformEvent, find_first, record_receipts
from bullpen.core.roster.agents import load_address_book
from bullpen.core.routing.address import AddressBook
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import visible_line

ALBUM_DELAY_MS = SECOND
"""How long the first messages of an album wait for the others."""


class Files(Protocol):
    """Decides how a message waits for its files. See `attachments.Attachments`."""

    def prepare(
        self, place: str, text: str, attachments: Sequence[Attachment], delay: int = 0
    ) -> Prepared:
        """The text and delay with which a message of this place is stored."""
        ...

    def keep(
        self,
        place: str,
        conversation_id: str,
        attachments: Sequence[Attachment],
        sender: Sender,
        delay: int = 0,
    ) -> None:
        """Keep the files that must be fetched, for the next start of the process."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class IntakeSettings:
    """The settings of an account that decide what is taken in."""

    default_agent: str = ""
    every_message: bool = False
    """Whether messages in groups count without a mention."""
    edits: str = "ask"
    age_fence_ms: int = HOUR
    file_bytes: int = 20 << 20
    """The largest attachment that is fetched."""
    window_ms: int = 0
    """For how long after a person's message the platform accepts free text; 0 is unlimited."""


class Incoming:
    """Stores what came in for one account."""

    def __init__(
        self,
        channel: str,
        store_id: str,
        settings: IntakeSettings,
        files: Files,
        *,
        has_buttons: bool,
        command_prefix: str = "/",
    ) -> None:
        self._channel = channel
        self._store_id = store_id
        self._settings = settings
        self._files = files
        self._replies = Replies(channel, command_prefix, has_buttons=has_buttons)
        self._passed: dict[str, tuple[str, int]] = {}
        self._book: tuple[Transaction, AddressBook] | None = None

    def is_ignored(self, inbound: Inbound) -> bool:
        """Whether something is of no interest, as far as that is known without the store."""
        match inbound:
            case Written():
                if inbound.from_bot or inbound.source.person.bot:
                    return True
                if self._is_for_us(inbound) or inbound.follows:
                    return False
                self._pass(inbound)
                return True
            case Edited() | Deleted() | Pressed():
                return inbound.source.person.bot
            case _:
                return False

    def take(self, tx: Transaction, inbound: Inbound) -> Taken:
        """Store it, unless it was taken in before."""
        if isinstance(inbound, (Proof, ChatChange)):
            return self._noted(tx, inbound)
        known = look_up(tx, self._channel, inbound.source)  # asked together with the receipts
        events = self._events(inbound.source.keys)
        if events and find_first(tx, events) is not None:
            return NOTHING
        if isinstance(inbound, Written):
            return self._written(tx, inbound, known, events)
        return self._changed(tx, inbound, known, events)

    def flush(self, tx: Transaction) -> None:
        """Move the cursors of chats past messages that were not for the bot."""
        passed, self._passed = self._passed, {}
        for chat, (cursor, at) in passed.items():
            move_cursor(tx, self._channel, chat, cursor, at)

    def _noted(self, tx: Transaction, noted: Proof | ChatChange) -> Taken:
        events = self._events(noted.keys)
        if events and find_first(tx, events) is not None:
            return NOTHING
        if isinstance(noted, Proof):
            return self._proved(tx, noted)
        change_chat(tx, self._channel, noted, events)
        return NOTHING

    def _events(self, keys: Sequence[str]) -> list[PlatformEvent]:
        return [PlatformEvent(self._channel, each) for each in keys]

    def _is_for_us(self, new: Written) -> bool:
        return new.addressed or new.source.chat.direct or self._settings.every_message

    def _pass(self, new: Written) -> None:
        """Move the cursor past a message that is not for the bot."""
        if new.cursor:
            self._passed[new.cursor_chat or new.source.chat.id] = (new.cursor, new.source.at)

    def _written(
        self, tx: Transaction, new: Written, known: Known, events: Sequence[PlatformEvent]
    ) -> Taken:
        source = new.source
        for_us = self._is_for_us(new)
        if not for_us and find_chat(tx, self._channel, new.follows) is None:
            self._pass(new)
            return NOTHING
        access = authorise(tx, self._channel, source, known, self._agent(tx))
        if not access.allowed:
            if for_us and not (access := self._in_new_group(new, access)).allowed:
                return Taken(asked=self._replies.introduce(tx, source, access.decision))
            if not access.allowed:
                return NOTHING
        self._see(tx, new, access)
        if not new.text.strip() and not new.attachments:
            new = replace(new, text="/help")  # only a mention
        if found := find_command(new.text):
            reply = self._command(tx, *found, source, access)
            record_receipts(tx, events, COMMAND_RECEIPT)
            return Taken(to=_address(source), restart=reply.restart)
        return self._submit(tx, new, access, events)

    def _in_new_group(self, new: Written, access: Access) -> Access:
        """An owner may use the commands of the owner in a group that is not allowed yet."""
        if access.decision is not Decision.PAIR_GROUP or access.tier is not Tier.OWNER:
            return access
        found = find_command(new.text)
        if found is None or found[0].tier is not Tier.OWNER:
            return access
        return replace(access, decision=Decision.ALLOWED)

    def _agent(self, tx: Transaction) -> str:
        return self._settings.default_agent or tx.settings.default_agent

    def _see(self, tx: Transaction, new: Written, access: Access) -> None:
        source, direct = new.source, new.source.chat.direct
        name = source.person.name or access.name
        see_sender(tx, self._channel, source.person.id, name, is_known=access.is_known)
        touch_chat(
            tx,
            self._channel,
            ChatSeen(
                chat=source.chat.id,
                direct=direct,
                name=source.chat.name,
                person=source.person.id if direct else None,
                cursor=None if new.cursor_chat else new.cursor or None,
                cursor_at=source.at,
            ),
            is_known=access.chat is not None,
        )
        if access.chat is not None and access.chat.opted_out_at is not None:
            set_opted_out(tx, self._channel, source.chat.id, None)  # who asks wants an answer
        if self._settings.window_ms:
            set_window(tx, self._channel, source.chat.id, source.at + self._settings.window_ms)
        if thread := new.cursor_chat or new.opens:
            seen = ChatSeen(
                chat=thread, direct=False, cursor=new.cursor or None, cursor_at=source.at
            )
            touch_chat(tx, self._channel, seen)

    def _command(
        self, tx: Transaction, command: Command, rest: str, source: Source, access: Access
    ) -> Reply:
        self._book = None  # it may change agents
        asked = Asked(tx=tx, channel=self._channel, source=source, access=access, rest=rest)
        reply = run_command(command, asked)
        self._replies.send(tx, source, reply.text)
        return reply

    def _submit(
        self, tx: Transaction, new: Written, access: Access, events: Sequence[PlatformEvent]
    ) -> Taken:
        source = new.source
        agent = (access.chat and access.chat.default_agent) or self._agent(tx)
        delay = ALBUM_DELAY_MS if new.group else 0
        place = SEPARATOR.join((source.chat.id, source.thread))
        prepared = self._files.prepare(place, new.text, new.attachments, delay)
        name = visible_line(source.person.name or access.name)[:MAX_SENDER_CHARS]
        message = NewMessage(
            agent=agent,
            message=prepared.text,
            channel=self._channel,
            sender=name or source.person.id,
            sender_id=source.person.id,
            event_ids=source.keys,
            reply_to=ReplyTo(source.chat.id, source.thread, source.message),
            written_at=source.at,
            hold_reason=self._age_hold(tx, source, access),
            delay=prepared.delay,
        )
        accepted = self._store(tx, message, source, events, routed=access.allows(Tier.MEMBER))
        sender = None
        if prepared.delay != delay and accepted:
            to = str(message.reply_to)
            sender = Sender(self._channel, message.sender, source.person.id, to)
            self._files.keep(place, accepted[0].message_id, new.attachments, sender, delay)
        return Taken(
            accepted,
            _address(source),
            sender=sender,
            attachments=new.attachments,
            delay=delay,
            person="" if name else source.person.id,
        )

    def _store(
        self,
        tx: Transaction,
        new: NewMessage,
        source: Source,
        events: Sequence[PlatformEvent],
        *,
        routed: bool,
    ) -> tuple[Accepted, ...]:
        """Store a message; a guest's goes to the default agent, whatever it begins with.

        The sender is notified of a message that is refused.
        """

        def store(new: NewMessage) -> tuple[Accepted, ...]:
            if not routed:
                return (submit_to(tx, new),)
            return submit(tx, new, is_fresh=True, book=self._address_book(tx))

        try:
            return store_as_person(new, store)
        except StoreError:
            raise
        except UnknownRecipient as error:
            answer_unknown_recipient(tx, new, error)
        except BullpenError as error:
            text = f"Your message was not accepted: {error}. {error.hint or ''}".strip()
            self._replies.send(tx, source, text)
        record_receipts(tx, events, COMMAND_RECEIPT)
        return ()

    def _address_book(self, tx: Transaction) -> AddressBook:
        """All agents and teams, loaded once in each transaction."""
        if self._book is None or self._book[0] is not tx:
            self._book = tx, load_address_book(tx)
        return self._book[1]

    def _age_hold(self, tx: Transaction, source: Source, access: Access) -> str | None:
        """Why an old message is held: its request may be out of date. The chat is notified once."""
        age = tx.now - source.at
        if age <= self._settings.age_fence_ms:
            return None
        ago = format_interval(age // MINUTE * MINUTE)
        told = access.chat.away_told_at if access.chat is not None else None
        if told is None or told < tx.now - HOUR:
            self._replies.send(
                tx,
                source,
                f"Your message arrived late: you wrote it {ago} ago. It is held until the owner "
                "resumes it. Send it again if it is urgent.",
            )
            note_away_told(tx, self._channel, source.chat.id)
        return f"written {ago} before it was received"

    def _changed(
        self,
        tx: Transaction,
        change: Edited | Deleted | Pressed,
        known: Known,
        events: Sequence[PlatformEvent],
    ) -> Taken:
        """An edit, a deletion or a button: authorised in the same way as a message."""
        source = change.source
        access = authorise(tx, self._channel, source, known, self._agent(tx))
        if not access.allowed:
            return NOTHING
        record_receipts(tx, events, COMMAND_RECEIPT)
        match change:
            case Edited():
                routed = access.allows(Tier.MEMBER)
                policy = self._settings.edits
                offer = apply_edit(tx, self._channel, change, policy, routed=routed)
                if offer is not None:
                    self._replies.offer(tx, source, offer)
            case Deleted():
                withdraw(tx, self._channel, change)
            case Pressed(value=value):
                if found := find_command(value):
                    reply = self._command(tx, *found, source, access)
                    return Taken(to=_address(source), restart=reply.restart)
        return NOTHING

    def _proved(self, tx: Transaction, proof: Proof) -> Taken:
        found = parse_part_key(proof.key, self._store_id)
        if found is None:
            return NOTHING
        response, part = found
        if not proof.failed:
            if prove(tx, self._channel, response, part, proof.receipt):
                return Taken(proved=response)
        else:
            send_to_owner(
                tx,
                f"Response {response} on {self._channel} did not arrive, although the platform "
                f"accepted it: {proof.failed}.",
            )
        return NOTHING


def _address(source: Source) -> Address:
    return Address(
        chat=source.chat.id, thread=source.thread, message=source.message, person=source.person.id
    )
