"""The WebSocket: the same events as the stream has, and commands in the other direction."""

from __future__ import annotations

import base64
import binascii
import logging
import threading
from collections.abc import Callable

from flask import Response, g, request
from flask.blueprints import BlueprintSetupState
from flask_sock import Sock
from pydantic import ValidationError
from simple_websocket import ConnectionClosed, Server
from simple_websocket import ConnectionError as NoHandshake
from wsproto.utilities import ProtocolError

from bullpen.api.context import api, caller, need, reach
from bullpen.api.errors import answer, invalid
from bullpen.api.route import blueprint
from bullpen.api.routes.commands import obey
from bullpen.api.streams.entrance import SOCKET, enter, starting_point
from bullpen.api.streams.outbound import Outbound
from bullpen.api.streams.query import StreamQuery
from bullpen.api.streams.replay import catch_up
from bullpen.api.streams.wire import WEBSOCKET, Ending
from bullpen.core.access.key import Scope
from bullpen.core.errors import BadRequest

log = logging.getLogger(__name__)

ROUTES = blueprint("live", "The WebSocket.")

PING_SECONDS = 25
LOOK_SECONDS = 5.0
"""How often a thread that waits for a command looks whether the connection is still there."""

ROOM_FOR_NAMES = 1 << 16
"""So many bytes more than the longest request a command may have: of its JSON."""

SHARE = (7, 16)
"""So many of the threads may serve WebSockets: each holds one, and others want to be served too."""

sock = Sock()


class Reader(threading.Thread):
    """The thread in which the library reads; whatever ends it, the socket is given back."""

    def __init__(self, target: Callable[[], None]) -> None:
        super().__init__(target=target, daemon=True)
        self._of: Server = getattr(target, "__self__")  # noqa: B009 - a bound method has it

    def run(self) -> None:
        """Read until the end."""
        try:
            super().run()
        except Exception:
            log.exception("a WebSocket could not be read any more")
        finally:
            self._of.connected = False
            self._of.sock.close()


@ROUTES.record
def _configure(state: BlueprintSetupState) -> None:
    state.app.config["SOCK_SERVER_OPTIONS"] = {
        "ping_interval": PING_SECONDS,
        "max_message_size": state.app.config["MAX_CONTENT_LENGTH"] + ROOM_FOR_NAMES,
        "thread_class": Reader,
    }


@ROUTES.before_request
def _begin() -> Response | None:
    """Whatever speaks against it is said before the handshake, as to any request."""
    need(Scope.READ)
    _check_handshake()
    try:
        query = StreamQuery.model_validate(request.args.to_dict())
    except ValidationError as error:
        return invalid(error)
    if query.agent is not None:
        reach(query.agent)
    hub, store = api().hub, api().store
    g.position = starting_point(hub, store, query.since_id)
    client = enter(
        hub,
        store,
        request.environ,
        wire=WEBSOCKET,
        key=caller(),
        wanted=query.filter(caller()),
        most=api().settings.api_threads * SHARE[0] // SHARE[1],
    )
    g.outbound = Outbound(hub, client)
    # The library writes through this one. What it would compress was encoded for all at once.
    request.environ[SOCKET] = g.outbound
    request.environ.pop("HTTP_SEC_WEBSOCKET_EXTENSIONS", None)
    return None


@ROUTES.errorhandler(ProtocolError)
@ROUTES.errorhandler(NoHandshake)
def _no_handshake(error: Exception) -> Response:
    api().hub.forget(g.outbound.client)
    return answer(BadRequest(f"this is no handshake of a WebSocket: {error}"))


def _check_handshake() -> None:
    try:
        key = base64.b64decode(request.headers.get("Sec-WebSocket-Key", ""), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) != 16 or request.headers.get("Sec-WebSocket-Version") != "13":
        raise BadRequest("this is no handshake of a WebSocket, version 13")


@sock.route("/api/ws", bp=ROUTES)  # type: ignore[untyped-decorator]
def live(websocket: Server) -> None:
    """Serve one client until it goes."""
    outbound: Outbound = g.outbound
    outbound.inbox = websocket.input_buffer
    client, hub, store = outbound.client, api().hub, api().store
    try:
        hub.give(client, [WEBSOCKET.hello(g.position, store.clock.now())])
        catch_up(hub, store, client, g.position)
        while not client.over and not client.gone:
            text = websocket.receive(timeout=LOOK_SECONDS)
            if text is not None:
                obey(client, text)
    except ConnectionClosed:
        return
    except Exception:
        log.exception("a WebSocket failed")
        hub.end(client, Ending.FAILED, "something in Bullpen failed")
