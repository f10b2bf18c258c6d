"""An event as its viewers read it: one JSON object, and a second one under the reference's name."""

from __future__ import annotations

import json
from collections.abc import Mapping

from bullpen.core.events.append import EventType
from bullpen.core.events.facts import EventDetails
from bullpen.core.events.tail import Event
from bullpen.core.message import INTERNAL_CHANNELS, SCHEDULE

Document = dict[str, object]

NOT_PEOPLE = frozenset({*INTERNAL_CHANNELS, SCHEDULE})
"""What comes on these channels no person wrote, or not to one agent."""

PROACTIVE = "proactive_"
"""How the ids of answers begin that answer nothing."""

ALIASES: Mapping[str, str] = {
    EventType.MESSAGE_ENQUEUED: "message:incoming",
    EventType.CHAIN_STEP_START: "agent:invoke",
    EventType.AGENT_PROGRESS: "agent:progress",
    EventType.CHAIN_STEP_DONE: "agent:response",
    EventType.MESSAGE_FAILED: "agent:response",
    EventType.MESSAGE_DEAD: "agent:response",
    EventType.CHAIN_HANDOFF: "agent:mention",
    EventType.RESPONSE_READY: "message:done",
}
"""The names that the reference's program gives its events; its documents give them ours."""

_encode = json.JSONEncoder(ensure_ascii=False, check_circular=False, separators=(",", ":")).encode


def encode(document: Document) -> bytes:
    """The document as JSON. Half a surrogate pair, which is no text, is escaped."""
    try:
        return _encode(document).encode()
    except UnicodeEncodeError:
        return json.dumps(document, separators=(",", ":")).encode()


def document_of(event: Event, facts: EventDetails) -> Document:
    """The event with its data as stored, and beside them what the reference's clients read."""
    return {
        **_flat(event, facts),
        "id": event.id,
        "type": event.type,
        "timestamp": event.created_at,
        "agent": event.agent,
        "conversation_id": event.conversation_id,
        "message_id": event.message_id,
        "data": event.data,
    }


def team_of(event: Event, facts: EventDetails) -> str | None:
    """The team that the event is about, or its message."""
    named = event.data.get("team")
    if isinstance(named, str):
        return named
    return None if facts.origin is None else facts.origin.team_id


def alias_of(event: Event, facts: EventDetails) -> Document | None:
    """The event with exactly the reference's fields; None if it does not tell of such a thing."""
    name = ALIASES.get(event.type)
    fields = None if name is None else _alias(event, facts)
    if fields is None:
        return None
    return {"type": name, "timestamp": event.created_at, **fields}


def _flat(event: Event, facts: EventDetails) -> Document:
    found: Document = {}
    if event.agent is not None:
        found.update(agentId=event.agent, agentName=facts.agent_name or event.agent)
    if event.message_id is not None:
        found["messageId"] = event.message_id
    if facts.origin is not None:
        origin = facts.origin
        found.update(channel=origin.channel, sender=origin.sender, message=origin.preview)
        found.update(fromAgent=origin.from_agent, isTeamMessage=_of_team(facts))
    team = team_of(event, facts)
    if team is not None:
        found["teamId"] = team
    found.update(_of_type(event, facts))
    return found


def _of_type(event: Event, facts: EventDetails) -> Document:
    match event.type:
        case EventType.RESPONSE_READY:
            return {**_address(facts), **_text(facts)}
        case EventType.CHAIN_STEP_DONE:
            return _text(facts)
        case EventType.CHAIN_HANDOFF:
            return {"fromAgent": event.agent, "toAgent": event.data.get("to")}
        case EventType.ROOM_POSTED:
            return {"author": event.data.get("author"), "text": facts.text}
        case EventType.AGENT_PROGRESS:
            return {"text": event.data.get("text")}
        case EventType.TEAM_CHAIN_START if facts.team is not None:
            team = facts.team
            return {"teamName": team.name or team.id, "leader": team.leader, "agents": team.members}
        case _:
            return {}


def _text(facts: EventDetails) -> Document:
    return {"responseText": facts.text or "", "responseLength": facts.length}


def _address(facts: EventDetails) -> Document:
    """An answer may go elsewhere than to where its message came from: to the owner."""
    to = facts.to or facts.origin
    return {} if to is None else {"channel": to.channel, "sender": to.sender}


def _of_team(facts: EventDetails) -> bool:
    origin = facts.origin
    return origin is not None and (origin.from_agent is not None or origin.team_id is not None)


def _alias(event: Event, facts: EventDetails) -> Document | None:
    origin = facts.origin
    who: Document = {"agentId": event.agent, "agentName": facts.agent_name or event.agent}
    where: Document = {
        "channel": None if origin is None else origin.channel,
        "sender": None if origin is None else origin.sender,
        "messageId": event.message_id,
    }
    match event.type:
        case EventType.MESSAGE_ENQUEUED:
            if origin is None or origin.from_agent is not None or origin.channel in NOT_PEOPLE:
                return None
            if (event.message_id or "").startswith(f"{SCHEDULE}_"):
                return None  # it is on a person's channel, for its answer goes there
            return {**where, "agent": event.agent, "message": origin.preview}
        case EventType.CHAIN_STEP_START:
            return {**who, "fromAgent": None if origin is None else origin.from_agent}
        case EventType.AGENT_PROGRESS:
            return {**who, "text": event.data.get("text"), "messageId": event.message_id}
        case EventType.CHAIN_HANDOFF:
            return {
                "teamId": team_of(event, facts),
                "fromAgent": event.agent,
                "toAgent": event.data.get("to"),
            }
        case EventType.RESPONSE_READY:
            return _answered(event, facts)
        case _:
            said = event.data.get("error") if facts.text is None else facts.text
            told = {"role": "assistant", "content": said or "", "isTeamMessage": _of_team(facts)}
            return {**who, **where, **told}


def _answered(event: Event, facts: EventDetails) -> Document:
    to = _address(facts)
    if (event.message_id or "").startswith(PROACTIVE):
        return {**to, "messageId": event.message_id}
    return {**to, "agentId": event.agent, **_text(facts), "messageId": event.message_id}
