"""The WebSocket: events, rooms and live chat over one connection."""

from __future__ import annotations

import base64
import binascii
import logging
import threading
from collections.abc import Callable
from typing import Annotated, Literal, assert_never

from flask import Response, g, request
from flask.blueprints import BlueprintSetupState
from flask_sock import Sock
from pydantic import Field, TypeAdapter, ValidationError
from simple_websocket import ConnectionClosed, Server
from simple_websocket import ConnectionError as NoHandshake
from wsproto.utilities import ProtocolError

from bullpen.api.context import api, caller, require_reach, require_scope, require_valid
from bullpen.api.errors import error_response, internal_error, validation_error_response
from bullpen.api.route import Routes
from bullpen.api.routes import history, responses
from bullpen.api.routes.messages import NewId, submit_for_key
from bullpen.api.schemas import MAX_JSON_INT, CamelBody, Cursor, StrictBody
from bullpen.api.streams.client import Client
from bullpen.api.streams.documents import Document
from bullpen.api.streams.frames import WEBSOCKET, EndReason
from bullpen.api.streams.replay import catch_up
from bullpen.api.streams.subscribe import (
    SOCKET,
    HubSocket,
    Name,
    StreamQuery,
    make_filter,
    open_stream,
    starting_point,
)
from bullpen.core.access.keys import Scope
from bullpen.core.errors import BadRequest, BullpenError
from bullpen.core.message import NewMessage
from bullpen.core.strict_json import Json, read_json

log = logging.getLogger(__name__)
routes = Routes("live", "The WebSocket.")
sock = Sock()

WEB = "web"
"""The channel of live chat: its responses are read from the database and not delivered."""

PING_SECONDS = 25
LOOK_SECONDS = 5.0
"""How often a thread that waits for a command checks that the connection is still open."""

COMMAND_OVERHEAD_BYTES = 1 << 16
"""The number of bytes by which a command may exceed the largest request body, for its JSON."""

SOCKET_THREADS_SHARE = (7, 16)
"""The share of the threads that may serve WebSockets; an open WebSocket uses one."""

Ref = (
    Annotated[str, Field(max_length=200)]
    | Annotated[int, Field(ge=-MAX_JSON_INT, le=MAX_JSON_INT)]
    | None
)


class Command(StrictBody):
    """The common fields of commands; the reply has the same `ref`."""

    ref: Ref = None


class Subscribe(Command):
    """Change the filters of the stream, or replay events after an id."""

    do: Literal["subscribe"]
    types: list[Name] | None = None
    agent: Name | None = None
    conversation_id: Name | None = None
    team: Name | None = None
    since_id: Cursor | None = None


class Send(CamelBody, Command):
    """Send a message; the response arrives as the event `response_ready`."""

    do: Literal["send"]
    message: str
    agent: Name | None = None
    sender: Name = "Web"
    sender_id: Name | None = None
    message_id: NewId | None = None


class Post(history.NewPostBody, Command):
    """Post in a team's room."""

    do: Literal["post"]
    team: Name


class Ack(Command):
    """Acknowledge a response."""

    do: Literal["ack"]
    id: Annotated[int, Field(ge=1, le=MAX_JSON_INT, strict=True)]


class Ping(Command):
    """Check the connection."""

    do: Literal["ping"]


AnyCommand = Subscribe | Send | Post | Ack | Ping
COMMAND: TypeAdapter[AnyCommand] = TypeAdapter(Annotated[AnyCommand, Field(discriminator="do")])


def run_command(client: Client, text: str | bytes) -> None:
    """Run a command and send its result; an invalid command does not end the connection."""
    ref: Ref = None
    try:
        command = _parse(text)
        given_ref = command.get("ref")
        ref = given_ref if isinstance(given_ref, str | int) else None
        _check_key()
        _do(client, COMMAND.validate_python(command), ref)
    except ValidationError as error:
        _refuse(client, ref, validation_error_response(error).get_json())
    except BullpenError as error:
        _refuse(client, ref, error_response(error).get_json())
    except Exception as error:
        log.error("a command failed", exc_info=error)
        _refuse(client, ref, error_response(internal_error()).get_json())


def _parse(text: str | bytes) -> dict[str, Json]:
    if isinstance(text, bytes):
        raise BadRequest("a command must be a text frame, not a binary frame")
    try:
        command = read_json(text)
    except ValueError as error:
        raise BadRequest(f"the command is not valid JSON: {str(error)[:200]}") from None
    if not isinstance(command, dict):
        raise BadRequest("a command must be a JSON object")
    return command


def _check_key() -> None:
    """Refuse a key that was revoked while its connection was open."""
    with api().store.read() as tx:
        require_valid(tx)


def _do(client: Client, command: AnyCommand, ref: Ref) -> None:
    match command:
        case Subscribe():
            _subscribe(client, command, ref)
        case Send():
            require_scope(Scope.PUBLISH)
            _done(client, ref, _send(command))
        case Post():
            require_scope(Scope.PUBLISH)
            body = history.NewPostBody(message=command.message, sender=command.sender)
            posted = history.post(history.RoomPath(team_id=command.team), body)
            _done(client, ref, {"id": posted.id, "conversationId": posted.conversation_id})
        case Ack():
            require_scope(Scope.PUBLISH)
            responses.ack(responses.ResponsePath(response_id=str(command.id)))
            _done(client, ref, {"id": command.id})
        case Ping():
            _done(client, ref, {"timestamp": api().store.clock.now()})
        case _:
            assert_never(command)


def _subscribe(client: Client, command: Subscribe, ref: Ref) -> None:
    if command.agent is not None:
        require_reach(command.agent)
    hub, store = api().hub, api().store
    wanted = make_filter(
        caller(),
        types=None if command.types is None else frozenset(command.types),
        agent=command.agent,
        conversation_id=command.conversation_id,
        team=command.team,
    )
    since = command.since_id
    requested = None if since is None else starting_point(hub, store, since)
    paused_at = hub.pause(client)
    position = paused_at if requested is None else requested
    _done(client, ref, {"position": position})
    client.filter = wanted
    catch_up(hub, store, client, position)


def _send(command: Send) -> Document:
    new = NewMessage(
        agent=command.agent or "",
        message=command.message,
        channel=WEB,
        sender=command.sender,
        sender_id=command.sender_id,
        message_id=command.message_id,
    )
    ids = [each.message_id for each in submit_for_key(caller(), new)]
    return {"messageId": ids[0], "conversationId": ids[0], "messages": ids}


def _done(client: Client, ref: Ref, result: Document) -> None:
    api().hub.write_to(client, [WEBSOCKET.note({"type": "done", "ref": ref, **result})])


def _refuse(client: Client, ref: Ref, error: Document) -> None:
    api().hub.write_to(client, [WEBSOCKET.note({"type": "error", "ref": ref, **error})])


class SocketReader(threading.Thread):
    """The thread in which the library reads; it always closes the socket at its end."""

    def __init__(self, target: Callable[[], None]) -> None:
        super().__init__(target=target, daemon=True)
        self._of: Server = getattr(target, "__self__")  # noqa: B009 - a bound method has it

    def run(self) -> None:
        """Read until the end."""
        try:
            super().run()
        except Exception:
            log.exception("reading a WebSocket failed")
        finally:
            self._of.connected = False
            self._of.sock.close()


@routes.blueprint.record
def _configure(state: BlueprintSetupState) -> None:
    state.app.config["SOCK_SERVER_OPTIONS"] = {
        "ping_interval": PING_SECONDS,
        "max_message_size": state.app.config["MAX_CONTENT_LENGTH"] + COMMAND_OVERHEAD_BYTES,
        "thread_class": SocketReader,
    }


@routes.blueprint.before_request
def _begin() -> Response | None:
    """Refuse an invalid request before the handshake."""
    require_scope(Scope.READ)
    _check_handshake()
    try:
        query = StreamQuery.model_validate(request.args.to_dict())
    except ValidationError as error:
        return validation_error_response(error)
    if query.agent is not None:
        require_reach(query.agent)
    hub, store = api().hub, api().store
    g.position = starting_point(hub, store, query.since_id)
    client = open_stream(
        hub,
        store,
        request.environ,
        wire=WEBSOCKET,
        key=caller(),
        wanted=query.filter(caller()),
        limit=api().settings.api_threads * SOCKET_THREADS_SHARE[0] // SOCKET_THREADS_SHARE[1],
    )
    g.outbound = HubSocket(hub, client)
    # The library writes through this socket without compression, because each frame is encoded
    # once for all clients.
    request.environ[SOCKET] = g.outbound
    request.environ.pop("HTTP_SEC_WEBSOCKET_EXTENSIONS", None)
    return None


@routes.blueprint.errorhandler(ProtocolError)
@routes.blueprint.errorhandler(NoHandshake)
def _no_handshake(error: Exception) -> Response:
    api().hub.forget(g.outbound.client)
    return error_response(BadRequest(f"invalid WebSocket handshake: {error}"))


def _check_handshake() -> None:
    try:
        key = base64.b64decode(request.headers.get("Sec-WebSocket-Key", ""), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) != 16 or request.headers.get("Sec-WebSocket-Version") != "13":
        raise BadRequest("invalid WebSocket handshake: version 13 is required")


@sock.route("/api/ws", bp=routes.blueprint)  # type: ignore[untyped-decorator]
def live(websocket: Server) -> None:
    """Serve one client until it disconnects."""
    outbound: HubSocket = g.outbound
    outbound.inbox = websocket.input_buffer
    client, hub, store = outbound.client, api().hub, api().store
    try:
        hub.write_to(client, [WEBSOCKET.hello(g.position, store.clock.now())])
        catch_up(hub, store, client, g.position)
        while not client.closing and not client.disconnected:
            text = websocket.receive(timeout=LOOK_SECONDS)
            if text is not None:
                run_command(client, text)
    except ConnectionClosed:
        return
    except Exception:
        log.exception("a WebSocket failed")
        hub.end(client, EndReason.FAILED, "internal error")
