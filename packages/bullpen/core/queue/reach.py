"""The identity of a run, and its reach: which data its commands may read, and who gets messages.

A run has a token in its environment. The token is derived from that of its claim, so that nothing
else is stored, and it is valid as long as the claim.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from typing import NamedTuple

from sqlalchemy import ColumnElement, Select, Table, bindparam, func, or_, select

from bullpen.core.errors import OutOfReach
from bullpen.core.ids import RUN_VARIABLE, agent_of, run_token
from bullpen.core.message import HEARTBEAT, INTERNAL, ROOM, SCHEDULE, SEPARATOR, ReplyTo
from bullpen.core.models import AGENTS, LANES, MESSAGES, MESSAGES_ARCHIVE
from bullpen.core.models.base import const, decode_numbers
from bullpen.core.roster.agents import Reach
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import check_text

L = LANES.c
M = MESSAGES.c

INVALID_TOKEN_HINT = (
    f"The token is valid until its run ends. If you are a person, unset {RUN_VARIABLE}."
)

NO_PERSON_CHANNELS = (ROOM, INTERNAL, HEARTBEAT, SCHEDULE)
"""The channels without people."""

SELECT_RUN: Statement[tuple[str | None, str | None, str]] = Statement(
    lambda: (
        select(L.claim_token, L.batch, AGENTS.c.reach)
        .join_from(LANES, AGENTS, AGENTS.c.id == L.agent)
        .where(L.agent == bindparam("agent"), L.lease_expires_at > bindparam("now"))
    )
)


def person_key(table: Table) -> ColumnElement[str]:
    """The author of a message: by id on the channel or, without an id, by name."""
    columns = table.c
    return func.coalesce(const("#").concat(columns.sender_id), const("@").concat(columns.sender))


class Answered(NamedTuple):
    """The fields of an answered message that decide the run's reach."""

    message_id: str
    conversation_id: str
    channel: str
    person: str
    from_agent: str | None
    reply_to: str | None

    @property
    def scheduled(self) -> bool:
        """Whether a schedule caused it: then no person asked, though one may get the answer."""
        prefix = f"{SCHEDULE}_"
        return self.message_id.startswith(prefix) or (
            self.from_agent is not None and self.conversation_id.startswith(prefix)
        )


SELECT_ANSWERED: Statement[Answered] = Statement(
    lambda: select(
        *(M.message_id, M.conversation_id, M.channel, person_key(MESSAGES)),
        *(M.from_agent, M.reply_to),
    ).where(M.id == bindparam("message")),
    Answered,
)


def by_person(table: Table) -> ColumnElement[bool]:
    """Whether a person wrote a message, and not an agent, schedule or heartbeat."""
    columns = table.c
    return (
        columns.from_agent.is_(None)
        & columns.channel.not_in([const(each) for each in NO_PERSON_CHANNELS])
        & columns.message_id.not_like(const(f"{SCHEDULE}\\_%"), escape="\\")
    )


def _wrote(table: Table) -> Select[tuple[int]]:
    columns = table.c
    return (
        select(const(1))
        .where(
            by_person(table),
            columns.agent == bindparam("agent"),
            columns.channel == bindparam("channel"),
            or_(
                person_key(table).in_([bindparam("by_id"), bindparam("by_name")]),
                columns.reply_to.like(bindparam("in_chat"), escape="\\"),
            ),
        )
        .limit(const(1))
    )


SELECT_WROTE: tuple[Statement[tuple[int]], ...] = (
    Statement(lambda: _wrote(MESSAGES)),
    Statement(lambda: _wrote(MESSAGES_ARCHIVE)),
)


@dataclass(frozen=True, slots=True)
class Run:
    """A run as its commands see it: its agent, its messages, and the people who asked."""

    agent: str
    reach: Reach
    conversations: tuple[str, ...]
    people: tuple[tuple[str, str], ...]
    """The people who asked: the channel, and `#id` or, without an id, `@name`."""
    recipients: frozenset[tuple[str, str]]
    """The recipients of its answers: people as above, those of schedules, and chats as `/chat`."""


def find_run(tx: Transaction, token: str) -> Run:
    """The run of this token, which must be in progress."""
    agent = agent_of(check_text(token, tx.settings.message_bytes, "the run token"))
    row = tx.one(SELECT_RUN, {"agent": agent, "now": tx.now})
    claim = "" if row is None else row[0] or ""
    valid = hmac.compare_digest(run_token(claim).encode(), token.encode())
    if row is None or not claim or not valid:
        raise OutOfReach(f"invalid or expired run token in {RUN_VARIABLE}", hint=INVALID_TOKEN_HINT)
    values = [{"message": each} for each in decode_numbers(row[1])]
    messages = [each for each in tx.one_each(SELECT_ANSWERED, values) if each is not None]
    of_people = [each for each in messages if each.channel not in NO_PERSON_CHANNELS]
    chats = {
        (each.channel, f"/{ReplyTo.parse(each.reply_to).chat}")
        for each in of_people
        if each.reply_to is not None
    }
    return Run(
        agent=agent,
        reach=Reach(row[2]),
        conversations=tuple(dict.fromkeys(each.conversation_id for each in messages)),
        # A schedule that an agent made for a person does not let the run read the person's history.
        people=tuple(
            dict.fromkeys((each.channel, each.person) for each in of_people if not each.scheduled)
        ),
        recipients=frozenset(chats | {(each.channel, each.person) for each in of_people}),
    )


def require_recipient(tx: Transaction, run: Run, channel: str, person: str | None) -> None:
    """Raise `OutOfReach` if this person or chat never wrote to the run's agent."""
    if run.reach is Reach.ALL:
        return
    settings, address = tx.settings, person or ""
    check_text(channel + address, settings.message_bytes, "the address")
    if channel == settings.owner_channel and settings.owner_id in ("", address):
        return
    by_id, by_name = f"#{address}", f"@{address}"
    if any((channel, key) in run.recipients for key in (by_id, by_name, f"/{address}")):
        return
    chat = address.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    values = {
        **{"agent": run.agent, "channel": channel, "by_id": by_id, "by_name": by_name},
        "in_chat": f"{chat}{SEPARATOR}%",
    }
    if not any(tx.one(statement, values) for statement in SELECT_WROTE):
        raise OutOfReach(
            f"@{run.agent} may not write to {channel}:{address}, who never wrote to @{run.agent}",
            hint=f"A person can allow this with `bullpen agent set {run.agent} --reach all`.",
        )
