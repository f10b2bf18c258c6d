"""What a client may ask for over a WebSocket: one JSON object, answered by one."""

from __future__ import annotations

import json
import logging
from typing import Annotated, Literal, assert_never

from flask import g
from pydantic import Field, TypeAdapter, ValidationError

from bullpen.api.context import api, caller, need, reach
from bullpen.api.errors import answer, invalid
from bullpen.api.models import BIG, Cursor, Input
from bullpen.api.publish import publish
from bullpen.api.routes import responses, rooms
from bullpen.api.streams.client import Client
from bullpen.api.streams.documents import Document
from bullpen.api.streams.entrance import starting_point
from bullpen.api.streams.query import Name, made
from bullpen.api.streams.replay import catch_up
from bullpen.api.streams.wire import WEBSOCKET
from bullpen.core.access.key import Scope
from bullpen.core.access.keys import still_valid
from bullpen.core.errors import BadRequest, BullpenError, NoAccess
from bullpen.core.message import NewMessage

log = logging.getLogger(__name__)

WEB = "web"
"""The channel of live chat: nobody delivers its answers, they are read where they lie."""

Ref = Annotated[str, Field(max_length=200)] | Annotated[int, Field(ge=-BIG, le=BIG)] | None


class Command(Input):
    """What all commands have: a name of the client's own, to know the answer by."""

    ref: Ref = None


class Subscribe(Command):
    """Want other events from now on; or everything after an id once more."""

    do: Literal["subscribe"]
    types: list[Name] | None = None
    agent: Name | None = None
    conversation_id: Name | None = None
    team: Name | None = None
    since_id: Cursor | None = None


class Send(Command):
    """Say something, as in a chat; the answer comes as `response_ready`."""

    do: Literal["send"]
    message: str
    agent: Name | None = None
    sender: Name = "Web"
    senderId: Name | None = None  # noqa: N815 - as in POST /api/message
    messageId: Annotated[str, Field(min_length=1, max_length=200)] | None = None  # noqa: N815


class Post(rooms.Said, Command):
    """Say something in a team's room."""

    do: Literal["post"]
    team: Name


class Ack(Command):
    """Say that an answer was read."""

    do: Literal["ack"]
    id: Annotated[int, Field(ge=1, le=BIG, strict=True)]


class Ping(Command):
    """Ask for an answer."""

    do: Literal["ping"]


AnyCommand = Subscribe | Send | Post | Ack | Ping
COMMAND: TypeAdapter[AnyCommand] = TypeAdapter(Annotated[AnyCommand, Field(discriminator="do")])


def obey(client: Client, text: str | bytes) -> None:
    """Do what is asked for, and say what came of it; nothing that is asked ends the connection."""
    ref: Ref = None
    try:
        asked = _parse(text)
        found = asked.get("ref")
        ref = found if isinstance(found, str | int) else None
        _check_key()
        _do(client, COMMAND.validate_python(asked), ref)
    except ValidationError as error:
        _refuse(client, ref, invalid(error).get_json()["error"])
    except BullpenError as error:
        _refuse(client, ref, answer(error).get_json()["error"])
    except Exception as error:
        log.error("a command failed", exc_info=error)
        failed = BullpenError(
            "something in Bullpen failed", hint=f"The log has it as {g.request_id}."
        )
        _refuse(client, ref, answer(failed).get_json()["error"])


def _parse(text: str | bytes) -> dict[str, object]:
    if isinstance(text, bytes):
        raise BadRequest("a command is text, and no bytes")
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadRequest(f"the command is no JSON: {str(error)[:200]}") from None
    if not isinstance(found, dict):
        raise BadRequest("a command is one JSON object")
    return found


def _check_key() -> None:
    """A key that was closed opens nothing any more, though its connection is still there."""
    with api().store.read() as tx:
        if not still_valid(tx, caller()):
            raise NoAccess("the key was closed")


def _do(client: Client, command: AnyCommand, ref: Ref) -> None:
    match command:
        case Subscribe():
            _subscribe(client, command, ref)
        case Send():
            need(Scope.PUBLISH)
            _done(client, ref, _send(command))
        case Post():
            need(Scope.PUBLISH)
            said = rooms.Said(message=command.message, sender=command.sender)
            posted = rooms.post(rooms.RoomPath(team_id=command.team), said)
            _done(client, ref, {"id": posted.id, "conversationId": posted.conversation_id})
        case Ack():
            need(Scope.PUBLISH)
            responses.ack(responses.ResponsePath(response_id=str(command.id)))
            _done(client, ref, {"id": command.id})
        case Ping():
            _done(client, ref, {"timestamp": api().store.clock.now()})
        case _:
            assert_never(command)


def _subscribe(client: Client, command: Subscribe, ref: Ref) -> None:
    if command.agent is not None:
        reach(command.agent)
    hub, store = api().hub, api().store
    wanted = made(
        caller(),
        types=None if command.types is None else frozenset(command.types),
        agent=command.agent,
        conversation_id=command.conversation_id,
        team=command.team,
    )
    since = command.since_id
    position = None if since is None else starting_point(hub, store, since)
    had = hub.pause(client)
    begins = had if position is None else position
    _done(client, ref, {"position": begins})
    client.filter = wanted
    catch_up(hub, store, client, begins)


def _send(command: Send) -> Document:
    new = NewMessage(
        agent=command.agent or "",
        message=command.message,
        channel=WEB,
        sender=command.sender,
        sender_id=command.senderId,
        message_id=command.messageId,
    )
    ids = [each.message_id for each in publish(caller(), new)]
    return {"messageId": ids[0], "conversationId": ids[0], "messages": ids}


def _done(client: Client, ref: Ref, found: Document) -> None:
    api().hub.give(client, [WEBSOCKET.note({"type": "done", "ref": ref, **found})])


def _refuse(client: Client, ref: Ref, error: object) -> None:
    api().hub.give(client, [WEBSOCKET.note({"type": "error", "ref": ref, "error": error})])
