"""Commands in chats, such as `/agents`; `!agents` where a platform keeps `/` for itself.

A command is answered from the store, in the transaction that takes it in. The list below is also
what platforms show in their menus.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from sqlalchemy import bindparam, select

from bullpen.channels.inbound import Source
from bullpen.channels.incoming.access import Access
from bullpen.channels.incoming.edits import accept_offer
from bullpen.core.channels.chats import Access as GroupAccess
from bullpen.core.channels.chats import (
    Verbosity,
    add_chat,
    allow_group,
    find_chat,
    set_default_agent,
    set_verbosity,
)
from bullpen.core.channels.pairing import approve, describe_access
from bullpen.core.channels.senders import Sender, Tier
from bullpen.core.company import reset_agent
from bullpen.core.errors import (
    BullpenError,
    IllegalMove,
    StoreError,
    UnknownMessage,
    UnknownRecipient,
)
from bullpen.core.inspect.queue import list_lane_activity, queue_status
from bullpen.core.message import SEPARATOR
from bullpen.core.models import MESSAGES
from bullpen.core.models.base import const
from bullpen.core.queue.lanes import pause_lane, resume_lane
from bullpen.core.queue.manage import cancel, resume
from bullpen.core.roster.agents import (
    Context,
    agent_names,
    get_agent,
    list_agents,
    load_address_book,
)
from bullpen.core.roster.sessions import chat_key, delete_session, sender_key
from bullpen.core.roster.teams import list_teams
from bullpen.core.settings import Settings
from bullpen.core.states import MessageState
from bullpen.core.store.group_commit import savepoint
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import format_count, suggest
from bullpen.ops.services.supervisor import Supervisor

MAX_STOPPED = 100
MAX_LISTED = 40
STOP_SECONDS, START_SECONDS = 15.0, 30.0

M = MESSAGES.c

SELECT_UNFINISHED: Statement[tuple[str, str | None]] = Statement(
    lambda: (
        select(M.message_id, M.reply_to)
        .where(
            M.channel == bindparam("channel"),
            M.sender_id == bindparam("sender_id"),
            M.status.in_([const(MessageState.PENDING.value), const(MessageState.PROCESSING.value)]),
            M.reply_to.startswith(bindparam("chat")),
        )
        .order_by(M.id)
        .limit(const(MAX_STOPPED))
    )
)

_COMMAND = re.compile(
    r"\s*[/!](?P<name>[a-z]{2,20})(?:@\w+)?(?:\s+(?P<rest>.*))?\s*", re.DOTALL | re.IGNORECASE
)
_DEFAULT = re.compile(r"\s*@default(?:\s+@?(?P<rest>\S+))?\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A command with its author."""

    tx: Transaction
    channel: str
    source: Source
    access: Access
    rest: str


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to a command."""

    text: str
    restart: str = ""
    """A service to restart after the commit."""


@dataclass(frozen=True, slots=True)
class Command:
    """One command."""

    name: str
    summary: str
    """One line for the menus of platforms."""
    run: Callable[[Asked], Reply]
    tier: Tier = Tier.GUEST
    """The least tier that may use it."""


def find_command(text: str) -> tuple[Command, str] | None:
    """The command that a text consists of, and its argument; None if it is a message."""
    if found := _DEFAULT.fullmatch(text):
        return _BY_NAME["default"], found["rest"] or ""
    found = _COMMAND.fullmatch(text)
    if found is None:
        return None
    command = _BY_NAME.get(found["name"].lower())
    return None if command is None else (command, (found["rest"] or "").strip())


def write_commands(text: str, prefix: str) -> str:
    """A text of Bullpen with another prefix before the commands that it names."""
    return _NAMED.sub(lambda found: prefix + found[1], text)


def run_command(command: Command, asked: Asked) -> Reply:
    """Answer a command; a refusal and an error are answers as well."""
    if not asked.access.allows(command.tier):
        return Reply(f"Only {_who(command.tier)} can use /{command.name}.")
    try:
        with savepoint(asked.tx):
            return command.run(asked)
    except StoreError:
        raise
    except BullpenError as error:
        return Reply(f"{str(error)[:1].upper()}{str(error)[1:]}. {error.hint or ''}".strip())


def _who(tier: Tier) -> str:
    return "the owner" if tier is Tier.OWNER else "paired people"


def _help(asked: Asked) -> Reply:
    lines = [
        f"* `/{each.name}` {each.summary}" for each in COMMANDS if asked.access.allows(each.tier)
    ]
    return Reply(
        "Write a text to the default agent, `@agent text` to another one, or a command:\n\n"
        + "\n".join(lines)
    )


def _agents(asked: Asked) -> Reply:
    agents = list_agents(asked.tx)
    if not agents:
        return Reply("There are no agents yet.")
    states = {each.agent: each for each in list_lane_activity(asked.tx)}
    lines = []
    for agent in agents[:MAX_LISTED]:
        lane = states[agent.id]
        doing = (
            "processing" if lane.processing else "idle" if lane.state == "active" else lane.state
        )
        waiting = f", {format_count(lane.pending, 'message')} pending" if lane.pending else ""
        lines.append(f"* `@{agent.id}`{_named(agent.name)}: {doing}{waiting}")
    if len(agents) > MAX_LISTED:
        lines.append(f"* and {len(agents) - MAX_LISTED} more")
    return Reply("\n".join(lines))


def _named(name: str) -> str:
    return f" {name}" if name else ""


def _teams(asked: Asked) -> Reply:
    teams = list_teams(asked.tx)
    if not teams:
        return Reply("There are no teams yet.")
    return Reply(
        "\n".join(
            f"* `@{each.id}`{_named(each.name)}: leader `@{each.leader}`, "
            f"{format_count(len(each.members), 'member')}"
            for each in teams[:MAX_LISTED]
        )
    )


def _status(asked: Asked) -> Reply:
    status = queue_status(asked.tx)
    parts = [
        f"{status.processing} processing",
        f"{status.pending} pending",
        f"{status.held} held",
        f"{status.dead} dead",
    ]
    return Reply(f"Messages: {', '.join(parts)}. Responses to deliver: {status.outgoing}.")


def _whoami(asked: Asked) -> Reply:
    source = asked.source
    where = "this direct chat" if source.chat.direct else f"the group `{source.chat.id}`"
    return Reply(
        f"You are `{source.person.id}` on {asked.channel}, in {where}. {asked.access.reason}"
    )


def _stop(asked: Asked) -> Reply:
    """Cancel the author's own unfinished messages of this chat."""
    source = asked.source
    chat = f"{source.chat.id}{SEPARATOR}"
    values = {"channel": asked.channel, "sender_id": source.person.id, "chat": chat}
    stopped = 0
    for message_id, reply_to in asked.tx.all(SELECT_UNFINISHED, values):
        if reply_to is not None and reply_to.startswith(chat):
            with suppress(IllegalMove, UnknownMessage):  # it has ended meanwhile
                cancel(asked.tx, message_id, f"stopped by {source.person.name or source.person.id}")
                stopped += 1
    if not stopped:
        return Reply("You have no pending or processing message in this chat.")
    return Reply(f"Cancelled {format_count(stopped, 'message')}.")


def _named_agent(asked: Asked) -> str:
    """The agent that the argument names; without one, the default agent of the chat."""
    name = asked.rest.split()[0].lstrip("@") if asked.rest else _default_agent(asked)
    recipient = load_address_book(asked.tx).find(name)
    if recipient is None:
        known = agent_names(asked.tx)
        hint = suggest(name, known) or "Send `/agents` to see all agents."
        raise UnknownRecipient(f"agent {name[:40]!r} does not exist", hint=hint)
    return recipient.agent


def _default_agent(asked: Asked) -> str:
    chat = find_chat(asked.tx, asked.channel, asked.source.chat.id)
    chosen = chat.default_agent if chat is not None else None
    return chosen or asked.access.default_agent


def _reset(asked: Asked) -> Reply:
    """Delete a person's own session of an agent; only the owner deletes one that people share."""
    agent = get_agent(asked.tx, _named_agent(asked))
    if agent.context is Context.SENDER:
        delete_session(asked.tx, agent, sender_key(asked.channel, asked.source.person.id))
    elif agent.context is Context.CHAT and _may_reset_chat(asked):
        chat = chat_key(asked.channel, asked.source.chat.id, asked.source.thread)
        delete_session(asked.tx, agent, chat)
        return Reply(f"The next message to @{agent.id} here starts a new session.")
    elif asked.access.allows(Tier.OWNER):
        reset_agent(asked.tx, agent.id)
    else:
        return Reply(f"Other people share the session of @{agent.id}: only the owner can reset it.")
    return Reply(f"Your next message to @{agent.id} starts a new session.")


def _may_reset_chat(asked: Asked) -> bool:
    """Whether no other member has a part in the session of the chat, or the owner asks."""
    return asked.source.chat.direct or asked.access.allows(Tier.OWNER)


def _default(asked: Asked) -> Reply:
    chat = asked.source.chat.id
    if not asked.rest:
        return Reply(
            f"Messages without a name go to `@{_default_agent(asked)}`. "
            "Send `@default NAME` to change that in this chat, or `@default none` to undo it."
        )
    if asked.rest.lower() == "none":
        set_default_agent(asked.tx, asked.channel, chat, None)
        return Reply(f"Messages without a name go to `@{asked.access.default_agent}` again.")
    agent = _named_agent(asked)
    set_default_agent(asked.tx, asked.channel, chat, agent)
    return Reply(f"Messages without a name in this chat now go to `@{agent}`.")


def _approve(asked: Asked) -> Reply:
    """Approve a pairing code, or resume a held message."""
    if not asked.rest:
        return Reply("Send `/approve CODE` for a person or group, or `/approve ID` for a message.")
    word, *more = asked.rest.split()
    if "_" in word:
        resume(asked.tx, word)
        return Reply(f"Resumed `{word}`.")
    tier = Tier(more[0]) if more and more[0] in ("member", "guest", "owner") else Tier.MEMBER
    let_in = approve(asked.tx, asked.channel, word, tier, by=asked.source.person.id)
    if let_in is None:
        return Reply("No request on this channel has this code. Codes are valid for one hour.")
    if isinstance(let_in, Sender):
        # People choose their names; the id shows which of two with the same name it is.
        return Reply(f"Approved {_quoted(let_in.name)} (`{let_in.sender_id}`) as {let_in.tier}.")
    return Reply(f"Approved the group {_quoted(let_in.name)} (`{let_in.chat}`).")


def _quoted(name: str) -> str:
    """A name without the meaning that markdown would give it."""
    return f"`{name.replace('`', '')}`" if name.strip("` ") else "without a name"


def _allow(asked: Asked) -> Reply:
    if asked.source.chat.direct:
        return Reply("Send this in the group that you want to allow.")
    access = GroupAccess.EVERYONE if asked.rest == "everyone" else GroupAccess.MEMBERS
    chat = asked.source.chat
    add_chat(asked.tx, asked.channel, chat.id, direct=False, name=chat.name)
    allow_group(asked.tx, asked.channel, chat.id, access, by=asked.source.person.id)
    return Reply(describe_access(access))


def _pause(asked: Asked) -> Reply:
    agent = _named_agent(asked)
    pause_lane(asked.tx, agent, f"paused on {asked.channel}")
    return Reply(f"Paused @{agent}.")


def _resume(asked: Asked) -> Reply:
    agent = get_agent(asked.tx, _named_agent(asked)).id
    resume_lane(asked.tx, agent)
    return Reply(f"Resumed @{agent}.")


def _progress(asked: Asked) -> Reply:
    word = asked.rest.lower()
    if word not in set(Verbosity):
        return Reply("Send `/progress quiet`, `/progress normal` or `/progress verbose`.")
    set_verbosity(asked.tx, asked.channel, asked.source.chat.id, Verbosity(word))
    return Reply(f"The progress in this chat is {word} now.")


def _rerun(asked: Asked) -> Reply:
    routed = asked.access.allows(Tier.MEMBER)
    return Reply(accept_offer(asked.tx, asked.channel, asked.rest, asked.source, routed=routed))


def _cancel(asked: Asked) -> Reply:
    if not asked.rest:
        return Reply("Send `/cancel ID` with the id of a message.")
    cancel(asked.tx, asked.rest, f"cancelled on {asked.channel}")
    return Reply(f"Cancelled `{asked.rest}`.")


def _restart(asked: Asked) -> Reply:
    # After the commit, which must not wait for it.
    return Reply("Restarting the processor. Its runs go back to the queue.", restart="processor")


def restart(settings: Settings, service: str) -> str:
    """Restart a service, and say how that ended."""
    try:
        Supervisor(settings).restart(service, settings.grace_seconds + STOP_SECONDS, START_SECONDS)
    except BullpenError as error:
        return f"The restart of the {service} failed: {error}."
    return f"Restarted the {service}."


COMMANDS: tuple[Command, ...] = (
    Command("help", "shows what you can write.", _help),
    Command("agents", "lists the agents and what they do.", _agents),
    Command("teams", "lists the teams.", _teams),
    Command("status", "counts the messages in the queue.", _status),
    Command("stop", "cancels your messages in this chat.", _stop),
    Command("whoami", "shows your id, and what you may do.", _whoami),
    Command("default", "shows or sets the agent for texts without a name.", _default, Tier.MEMBER),
    Command("new", "starts a new session of an agent.", _reset, Tier.MEMBER),
    Command("reset", "is the same as /new.", _reset, Tier.MEMBER),
    Command("progress", "shows quiet, normal or verbose progress.", _progress, Tier.MEMBER),
    Command("approve", "approves a pairing code or a held message.", _approve, Tier.OWNER),
    Command("allow", "allows this group: members or everyone.", _allow, Tier.OWNER),
    Command("pause", "pauses an agent.", _pause, Tier.OWNER),
    Command("resume", "resumes an agent.", _resume, Tier.OWNER),
    Command("cancel", "cancels a message by its id.", _cancel, Tier.OWNER),
    Command("restart", "restarts the processor.", _restart, Tier.OWNER),
)
"""All commands that menus show."""

_RERUN = Command("rerun", "runs an edited text.", _rerun)
"""The command of a button."""

_BY_NAME = {each.name: each for each in (*COMMANDS, _RERUN)}

_NAMED = re.compile(rf"(?<![\w/.@])/({'|'.join(_BY_NAME)})\b")
"""A command in a text."""
