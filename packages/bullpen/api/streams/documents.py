"""Events as JSON documents, for Bullpen's and TinyAGI's clients."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence

from bullpen.core.events.company import RoomPosted
from bullpen.core.events.conversation import (
    AgentProgress,
    ChainHandoff,
    ChainStepDone,
    ChainStepStart,
    MessageEnqueued,
    TeamChainStart,
)
from bullpen.core.events.log import EventRecord
from bullpen.core.events.message import (
    MessageCancelled,
    MessageDead,
    MessageExpired,
    MessageHeld,
)
from bullpen.core.events.response import ResponseReady
from bullpen.core.inspect.event_details import (
    PREVIEW_CHARS,
    EventDetails,
    MessageOrigin,
    event_details,
)
from bullpen.core.message import INTERNAL_CHANNELS, SCHEDULE
from bullpen.core.queue.dead_letters import death_notice
from bullpen.core.store.base import Store

Document = dict[str, object]

INTERNAL_ORIGINS = frozenset({*INTERNAL_CHANNELS, SCHEDULE})
"""Messages on these channels do not come from a person, or not for one agent."""

PROACTIVE = "proactive_"
"""How the message id of a proactive response begins."""

ROOM_COPY = "chat"
"""The prefix of the ids of a room post's copies, one for each member."""

INCOMING, INVOKE, PROGRESS = "message:incoming", "agent:invoke", "agent:progress"
RESPONSE, MENTION, DONE = "agent:response", "agent:mention", "message:done"

ALIASES: Mapping[str, tuple[str, ...]] = {
    MessageEnqueued.type: (INCOMING,),
    ChainStepStart.type: (INVOKE,),
    AgentProgress.type: (PROGRESS,),
    ChainStepDone.type: (RESPONSE, DONE),
    MessageDead.type: (RESPONSE,),
    ChainHandoff.type: (MENTION,),
    ResponseReady.type: (DONE,),
    MessageHeld.type: (RESPONSE, DONE),
    MessageCancelled.type: (RESPONSE, DONE),
    MessageExpired.type: (DONE,),
}
"""The names of events in TinyAGI's program; TinyAGI's documentation has the same names as Bullpen.

TinyAGI's clients show a person's message as processing until its `message:done`. So each message
gets one: with its response, with the run that also answered it, or when it is held or ends.
"""

_encode = json.JSONEncoder(ensure_ascii=False, check_circular=False, separators=(",", ":")).encode


def encode(document: Document) -> bytes:
    """Encode the document as JSON. A lone surrogate, which UTF-8 cannot encode, is escaped."""
    try:
        return _encode(document).encode()
    except UnicodeEncodeError:
        return json.dumps(document, separators=(",", ":")).encode()


def event_document(record: EventRecord, details: EventDetails) -> Document:
    """Return the event with its stored data and the fields that TinyAGI's clients read."""
    return {
        **_flat(record, details),
        "id": record.id,
        "type": record.type,
        "timestamp": record.created_at,
        "agent": record.agent,
        "conversation_id": record.conversation_id,
        "message_id": record.message_id,
        "data": record.data,
    }


def event_team(record: EventRecord, details: EventDetails) -> str | None:
    """Return the team of the event, or of its message."""
    named = record.data.get("team")
    if isinstance(named, str):
        return named
    return None if details.origin is None else details.origin.team_id


def alias_documents(record: EventRecord, details: EventDetails) -> list[Document]:
    """Return the equivalent events of TinyAGI's program, with exactly their fields."""
    if record.type not in ALIASES:
        return []
    return [
        {"type": name, "timestamp": record.created_at, **fields}
        for name, fields in _aliases(record, details)
    ]


def _flat(record: EventRecord, details: EventDetails) -> Document:
    document: Document = {}
    if record.agent is not None:
        document.update(agentId=record.agent, agentName=details.agent_name or record.agent)
    if record.message_id is not None:
        document["messageId"] = record.message_id
    if details.origin is not None:
        origin = details.origin
        document.update(channel=origin.channel, sender=origin.sender, message=origin.preview)
        document.update(fromAgent=origin.from_agent, isTeamMessage=_of_team(details))
    team = event_team(record, details)
    if team is not None:
        document["teamId"] = team
    document.update(_of_type(record, details))
    return document


def _of_type(record: EventRecord, details: EventDetails) -> Document:
    match record.event:
        case ResponseReady():
            return {**_address(details), **_text(details)}
        case ChainStepDone():
            return _text(details)
        case ChainHandoff() as handoff:
            return {"fromAgent": record.agent, "toAgent": handoff.to}
        case RoomPosted() as posted:
            return {"author": posted.author, "text": details.text}
        case AgentProgress() as progress:
            return {"text": progress.text}
        case TeamChainStart() if details.team is not None:
            team = details.team
            return {"teamName": team.name or team.id, "leader": team.leader, "agents": team.members}
        case _:
            return {}


def _text(details: EventDetails) -> Document:
    return {"responseText": details.text or "", "responseLength": details.length}


def _address(details: EventDetails) -> Document:
    """Return the recipient, who is not always the sender of the message."""
    to = details.to or details.origin
    return {} if to is None else {"channel": to.channel, "sender": to.sender}


def _of_team(details: EventDetails) -> bool:
    origin = details.origin
    return origin is not None and (origin.from_agent is not None or origin.team_id is not None)


def _aliases(record: EventRecord, details: EventDetails) -> Iterator[tuple[str, Document]]:
    origin = details.origin
    who: Document = {"agentId": record.agent, "agentName": details.agent_name or record.agent}
    match record.event:
        case MessageEnqueued():
            if origin is not None and _is_from_person(record, origin):
                # TinyAGI's clients read the recipient from the text.
                text = f"@{record.agent} {origin.preview}"[:PREVIEW_CHARS]
                yield INCOMING, {**_where(record, origin), "agent": record.agent, "message": text}
        case ChainStepStart():
            yield INVOKE, {**who, "fromAgent": None if origin is None else origin.from_agent}
        case AgentProgress() as progress:
            yield PROGRESS, {**who, "text": progress.text, "messageId": record.message_id}
        case ChainHandoff() as handoff:
            team = event_team(record, details) or details.shared_team
            yield MENTION, {"teamId": team, "fromAgent": record.agent, "toAgent": handoff.to}
        case ChainStepDone() as ended:
            yield RESPONSE, {**who, **_response(record, details, details.text or "")}
            answered = [
                each for each in ended.messages if each != record.message_id or ended.responses == 0
            ]
            yield from _dones(record, details, answered)
        case MessageDead() as dead:
            told = death_notice(record.agent or "", record.message_id or "", dead.error)
            yield RESPONSE, {**who, **_response(record, details, told)}
        case ResponseReady():
            yield DONE, _response_done(record, details)
        case MessageHeld() | MessageCancelled() | MessageExpired() as over:
            yield from _without_answer(record, details, who, over)
        case _:
            return


def _without_answer(
    record: EventRecord,
    details: EventDetails,
    who: Document,
    event: MessageHeld | MessageCancelled | MessageExpired,
) -> Iterator[tuple[str, Document]]:
    match event:
        case MessageHeld(kind=None) | MessageExpired():
            pass  # no run has just ended
        case MessageHeld() | MessageCancelled():
            # TinyAGI's terminal viewer shows the agent as processing until its response.
            yield RESPONSE, {**who, **_response(record, details, "")}
    yield from _dones(record, details, [record.message_id])


def _where(record: EventRecord, origin: MessageOrigin | None) -> Document:
    return {
        "channel": None if origin is None else origin.channel,
        "sender": None if origin is None else origin.sender,
        "messageId": record.message_id,
    }


def _response(record: EventRecord, details: EventDetails, text: str) -> Document:
    where = _where(record, details.origin)
    return {**where, "role": "assistant", "content": text, "isTeamMessage": _of_team(details)}


def _is_from_person(record: EventRecord, origin: MessageOrigin) -> bool:
    if origin.from_agent is not None or origin.channel in INTERNAL_ORIGINS:
        return False
    # A schedule's message is on the channel of the person who gets its answer.
    return not (record.message_id or "").startswith(f"{SCHEDULE}_")


def _dones(
    record: EventRecord, details: EventDetails, ids: Iterable[str | None]
) -> Iterator[tuple[str, Document]]:
    """Yield the end of people's messages without a response of their own."""
    origin = details.origin
    if origin is None or not _is_from_person(record, origin):
        return
    for each in ids:
        if not (each or "").startswith(f"{ROOM_COPY}_"):
            where = {"channel": origin.channel, "sender": origin.sender, "messageId": each}
            yield DONE, {**where, "agentId": record.agent, **_text(details)}


def _response_done(record: EventRecord, details: EventDetails) -> Document:
    to = _address(details)
    if (record.message_id or "").startswith(PROACTIVE):
        return {**to, "messageId": record.message_id}
    return {**to, "agentId": record.agent, **_text(details), "messageId": record.message_id}


def event_documents(store: Store, records: Sequence[EventRecord]) -> list[Document]:
    """Return the documents of events under Bullpen's names, read in one transaction."""
    with store.read() as tx:
        details = event_details(tx, records)
    return [event_document(*each) for each in zip(records, details, strict=True)]
