"""Sessions: a provider's own record of a conversation, resumed by its id."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import ColumnElement, bindparam, delete, insert, select, update

from bullpen.core.message import SEPARATOR, Message, ReplyTo, reply_place
from bullpen.core.models import AGENTS, SESSIONS
from bullpen.core.models.base import const
from bullpen.core.roster.agents import Agent, Context
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction

S = SESSIONS.c


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A provider's session, and the usage of all its runs."""

    id: str
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0
    told: str = ""


def _here() -> tuple[ColumnElement[bool], ...]:
    return (S.agent == bindparam("agent_id"), S.context == bindparam("key"))


FIND: Statement[tuple[str, str, int, int, float, str]] = Statement(
    lambda: select(S.provider, S.session_id, S.input_tokens, S.output_tokens, S.cost, S.told).where(
        *_here()
    )
)

FIND_RESETS: Statement[tuple[int]] = Statement(
    lambda: (
        select(AGENTS.c.resets)
        .where(AGENTS.c.id == bindparam("agent_id"))
        .with_for_update(read=True)
    )
)

_VALUE_NAMES = ("provider", "session_id", "input_tokens", "output_tokens", "cost", "told")

UPDATE: Statement[None] = Statement(
    lambda: (
        update(SESSIONS)
        .where(*_here())
        .values(
            {
                **{name: bindparam(name) for name in _VALUE_NAMES},
                "runs": S.runs + const(1),
                "updated_at": bindparam("now"),
            }
        )
    )
)

INSERT: Statement[None] = Statement(
    lambda: insert(SESSIONS).values(
        {
            **{name: bindparam(name) for name in _VALUE_NAMES},
            "agent": bindparam("agent_id"),
            "context": bindparam("key"),
            "runs": const(1),
            "updated_at": bindparam("now"),
        }
    )
)

DELETE: Statement[None] = Statement(lambda: delete(SESSIONS).where(*_here()))


def session_key(agent: Agent, message: Message) -> str:
    """The key of the session that a run of this message resumes."""
    match agent.context:
        case Context.AGENT:
            return ""
        case Context.SENDER:
            if message.sender_id is not None:
                return sender_key(message.channel, message.sender_id)
            return SEPARATOR.join((message.channel, f"@{message.sender}"))
        case Context.CHAT:
            reply_to = ReplyTo.parse(message.reply_to) if message.reply_to else None
            return reply_place(message.channel, message.sender, message.sender_id, reply_to)
        case Context.CONVERSATION:
            return message.conversation_id


def sender_key(channel: str, sender_id: str) -> str:
    """The key of a person's session with an agent whose context is the sender."""
    return SEPARATOR.join((channel, f"#{sender_id}"))


def chat_key(channel: str, chat: str, thread: str) -> str:
    """The key of the session of a chat or thread, with an agent whose context is the chat."""
    return reply_place(channel, "", None, ReplyTo(chat, thread))


def delete_session(tx: Transaction, agent: Agent, key: str) -> None:
    """Delete one session: the next run for this key starts a new one."""
    tx.write(DELETE, {"agent_id": agent.id, "key": key})


def find_session(tx: Transaction, agent: Agent, key: str) -> Session | None:
    """The session to resume; None if the agent's provider has none."""
    row = tx.one(FIND, {"agent_id": agent.id, "key": key})
    if row is None or row[0] != agent.provider:
        return None
    return Session(id=row[1], input_tokens=row[2], output_tokens=row[3], cost=row[4], told=row[5])


def save_session(tx: Transaction, agent: Agent, key: str, session: Session | None) -> None:
    """Save the session to resume next, unless the agent was reset or changed during the run."""
    values: dict[str, object] = {"agent_id": agent.id, "key": key}
    still = tx.one(FIND_RESETS, {"agent_id": agent.id})
    if still is None or still[0] != agent.resets:
        return
    if session is None:
        tx.write(DELETE, values)
        return
    values.update(
        provider=agent.provider,
        session_id=session.id,
        input_tokens=session.input_tokens,
        output_tokens=session.output_tokens,
        cost=session.cost,
        told=session.told,
        now=tx.now,
    )
    if tx.change(UPDATE, values) == 0:
        tx.write(INSERT, values)
