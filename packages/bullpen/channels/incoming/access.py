"""Access: whether a person may use an account, where they write from, and as what.

`authorise` is the only place that decides it, for messages, edits, commands and buttons alike.
Everything starts as refused. People are known by their ids, never by their names.

    from a direct chat    owner, member and guest may write; without a tier: pairing
    from a group          the owner must have allowed the group, for `members` (paired people) or
                          for `everyone` (people without a tier are guests there)
    blocked               nothing, and no reply
    another bot           nothing, and no reply
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from bullpen.channels.inbound import Source
from bullpen.core.channels.chats import Access as GroupAccess
from bullpen.core.channels.chats import ChatRecord, ask_for_chat
from bullpen.core.channels.senders import Sender, Tier, ask_for_sender, tier_of
from bullpen.core.store.transaction import DeferredRow, Transaction


class Decision(StrEnum):
    """What follows from who writes, and from where."""

    ALLOWED = "allowed"
    PAIR_PERSON = "pair_person"
    PAIR_GROUP = "pair_group"
    IGNORED = "ignored"


@dataclass(frozen=True, slots=True)
class Known:
    """The rows of a person and a chat, which are read later."""

    sender: DeferredRow[Sender]
    chat: DeferredRow[ChatRecord]


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """The decision about one person in one chat."""

    decision: Decision
    tier: Tier | None = None
    reason: str
    """A sentence for the person."""
    name: str = ""
    """The person's name, as far as it was seen before."""
    is_known: bool = False
    """Whether the person has a row."""
    chat: ChatRecord | None = None
    default_agent: str = ""
    """The agent for texts without a name in a chat that has chosen none."""

    @property
    def allowed(self) -> bool:
        """Whether the person may write at all."""
        return self.decision is Decision.ALLOWED

    def allows(self, least: Tier) -> bool:
        """Whether the person may do what at least this tier may do."""
        return self.allowed and self.tier is not None and _RANK[self.tier] >= _RANK[least]


_RANK = {Tier.BLOCKED: 0, Tier.GUEST: 1, Tier.MEMBER: 2, Tier.OWNER: 3}


def look_up(tx: Transaction, channel: str, source: Source) -> Known:
    """Ask for the rows of a person and a chat, which are read by `authorise`."""
    sender = ask_for_sender(tx, channel, source.person.id)
    return Known(sender, ask_for_chat(tx, channel, source.chat.id))


def authorise(
    tx: Transaction, channel: str, source: Source, known: Known, default_agent: str = ""
) -> Access:
    """Decide about the author of what came from a channel."""
    chat, sender = known.chat(), known.sender()
    tier = tier_of(tx.settings, channel, source.person.id, sender)
    decision, tier, reason = decide(
        tier,
        bot=source.person.bot,
        direct=source.chat.direct,
        group=None if chat is None else chat.access,
    )
    return Access(
        decision=decision,
        tier=tier,
        reason=reason,
        name="" if sender is None else sender.name,
        is_known=sender is not None,
        chat=chat,
        default_agent=default_agent,
    )


def decide(
    tier: Tier | None, *, bot: bool, direct: bool, group: GroupAccess | None
) -> tuple[Decision, Tier | None, str]:
    """The decision, the tier that counts in this chat, and why."""
    if bot:
        return Decision.IGNORED, None, "Messages of bots are ignored."
    if tier is Tier.BLOCKED:
        return Decision.IGNORED, tier, "The owner has blocked you."
    if direct:
        if tier is None:
            return Decision.PAIR_PERSON, None, "You are not paired."
        return Decision.ALLOWED, tier, f"Your tier is {tier}."
    if group is None:
        return Decision.PAIR_GROUP, tier, "The owner has not allowed this group."
    if tier is not None:
        return Decision.ALLOWED, tier, f"Your tier is {tier}."
    if group is GroupAccess.EVERYONE:
        return Decision.ALLOWED, Tier.GUEST, "Everyone in this group is a guest."
    return Decision.PAIR_PERSON, None, "You are not paired, and this group is for paired people."
