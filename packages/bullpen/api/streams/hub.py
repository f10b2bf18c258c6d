"""The hub: reads new events once and writes them to every client without waiting."""

from __future__ import annotations

import logging
import math
import selectors
import socket
import threading
import time
from collections.abc import Sequence
from contextlib import suppress

from bullpen.api.streams.backlog import RecentEvents, load_recent
from bullpen.api.streams.client import Client, Filter
from bullpen.api.streams.frames import EncodedEvent, EndReason, StreamProtocol, encode_events
from bullpen.core.access.keys import Key, KeyKind
from bullpen.core.access.owner import OwnerToken
from bullpen.core.errors import BullpenError, Overloaded
from bullpen.core.events.company import KeyRevoked
from bullpen.core.events.log import EventRecord
from bullpen.core.events.tail import EventTail
from bullpen.core.store.base import Store

READ, WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE
log = logging.getLogger(__name__)

PAGE = 200
KEEP_ALIVE_SECONDS = 15.0
TICK_SECONDS = 0.5
"""How often deadlines and keys are checked while there are clients."""

IDLE_SECONDS = 60.0
WAIT_SECONDS = 0.02
"""The pause before it reads again while events are not committed yet."""

RETRY_SECONDS = 1.0

REST_FACTOR, MAX_REST_SECONDS = 2.0, 0.02
"""The pause after a round, as a multiple of its length; then events are sent together."""

GOODBYE_SECONDS = 30.0
"""How long a dropped client may take to read the reason."""

LINGER_SECONDS = 2.0
"""How long the other side may take to close after the last frame."""

TOO_SLOW = "the client reads too slowly"

STOP_SECONDS = 1.0
START_SECONDS = 10.0


class Poller:
    """Polls the clients' sockets, and a socket for wake-ups. Only `wake` is for other threads."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._inner, self._outer = socket.socketpair()
        self._inner.setblocking(False)
        self._outer.setblocking(False)
        self._selector.register(self._inner, READ)
        self._interests: dict[Client, int] = {}
        self._woken = False

    def wake(self) -> None:
        """Make `wait` return."""
        if not self._woken:
            self._woken = True
            with suppress(OSError):  # it is closed
                self._outer.send(b".")

    def wait(self, seconds: float) -> list[tuple[Client, int]]:
        """Return the clients that can be read from or written to."""
        clients = []
        for key, mask in self._selector.select(seconds):
            if key.data is None:
                # In this order, or a wake-up in between would be lost.
                self._inner.recv(64)
                self._woken = False
            else:
                clients.append((key.data, mask))
        return clients

    def watch(self, client: Client) -> None:
        """Poll this client for reading and writing, as it needs now."""
        interest = (READ if client.reads else 0) | (WRITE if client.pending else 0)
        current = self._interests.get(client, 0)
        if interest == current:
            return
        if not interest:
            self._selector.unregister(client)
        elif not current:
            self._selector.register(client, interest, client)
        else:
            self._selector.modify(client, interest, client)
        self._interests[client] = interest

    def forget(self, client: Client) -> None:
        """Stop polling a client before it is closed."""
        if self._interests.pop(client, 0):
            self._selector.unregister(client)

    def close(self) -> None:
        """Close the selector and the wake-up socket."""
        self._selector.close()
        self._inner.close()
        self._outer.close()


class Hub:
    """One thread that follows the events and writes them to the clients whose filters match.

    Each page of events is read and encoded once, and written without waiting; bytes that a socket
    does not take are queued. A client with too many queued bytes is dropped with a reason. It loses
    nothing, because it reconnects with its last id.
    """

    def __init__(
        self, store: Store, owner: OwnerToken, keep_alive: float = KEEP_ALIVE_SECONDS
    ) -> None:
        self._store = store
        self.owner = owner
        self._token = ""
        self._next_expiry = math.inf
        """The time of the next expiry of a client's key, or earlier."""
        self._limit = store.settings.api_streams
        self._keep_alive = keep_alive
        self._poller = Poller()
        self._lock = threading.RLock()
        self._clients: set[Client] = set()
        self._touched: set[Client] = set()
        """Clients with new frames, and clients to close."""
        self._tail: EventTail | None = None
        self._recent = RecentEvents(0, self._encode)
        self._position = 0
        """The id up to which all followers have every event."""
        self._woken = True
        self._next_round = self._next_tick = 0.0
        self._next_beat = time.monotonic() + keep_alive
        self._ready = threading.Event()
        self._stopping = False
        self._stop_at = float("inf")
        self._thread = threading.Thread(target=self._run, name="hub", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def wake(self) -> None:
        """Read new events soon."""
        self._woken = True
        self._poller.wake()

    def stop(self) -> None:
        """End every stream at once."""
        self._stopping = True
        self._poller.wake()
        if self._thread.ident is None:
            self._poller.close()
        else:
            self._thread.join(3 * STOP_SECONDS)

    @property
    def streams(self) -> int:
        """The number of open streams."""
        return len(self._clients)

    @property
    def position(self) -> int:
        """The id up to which every event is committed."""
        if not self._ready.wait(START_SECONDS):
            raise Overloaded("the API is still loading the events")
        return self._recent.end

    def admit(
        self,
        connection: socket.socket,
        wire: StreamProtocol,
        key: Key,
        wanted: Filter,
        limit: int | None = None,
    ) -> Client:
        """Take over a socket if there is room; `limit` is the limit of this protocol."""
        with self._lock:
            alike = sum(each.wire is wire for each in self._clients)
            if len(self._clients) >= self._limit or (limit is not None and alike >= limit):
                raise Overloaded(f"{len(self._clients)} streams are open already")
            if self._stopping:
                raise Overloaded("the API is stopping")
            client = Client(connection, wire, key, wanted)
            self._clients.add(client)
            if key.expires_at is not None:
                self._next_expiry = min(self._next_expiry, key.expires_at)
        self._touch(client)
        return client

    def write_to(self, client: Client, frames: Sequence[bytes]) -> None:
        """Write frames to one client, after its queued frames."""
        with self._lock:
            self._push(client, frames)
        self._touch(client)

    def follow(self, client: Client, position: int) -> bool:
        """Make it follow from this position; false if the recent events begin later."""
        with self._lock:
            if not self._recent.covers(position):
                return False
            self._push(client, client.filter.frames(client.wire, self._recent.after(position)))
            client.position = max(position, self._recent.end)
            client.following = not (client.closing or client.disconnected)
        self._touch(client)
        return True

    def pause(self, client: Client) -> int:
        """Stop writing events to it for now; return its position."""
        with self._lock:
            client.following = False
            return client.position

    def end(self, client: Client, ending: EndReason, reason: str) -> None:
        """Send the reason and close."""
        with self._lock:
            self._end(client, ending, reason)
        self._touch(client)

    def release(self, client: Client) -> None:
        """Send the queued frames and close; its own thread has stopped reading from it."""
        with self._lock:
            client.reads = True
            client.end(b"", LINGER_SECONDS, at_once=False)
        self._touch(client)

    def forget(self, client: Client) -> None:
        """Release the socket of a client that never began; gunicorn may still use its own copy."""
        with self._lock:
            client.reads = True
            client.leave()
        self._touch(client)

    def _touch(self, client: Client) -> None:
        with self._lock:
            self._touched.add(client)
        self._poller.wake()

    def _push(self, client: Client, frames: Sequence[bytes]) -> None:
        if not client.push(frames):
            self._end(client, EndReason.DROPPED, TOO_SLOW)

    def _end(self, client: Client, ending: EndReason, reason: str) -> None:
        goodbye = client.wire.goodbye(ending, reason, self._store.clock.now())
        seconds = STOP_SECONDS if ending is EndReason.CLOSING else GOODBYE_SECONDS
        client.end(goodbye, seconds, at_once=not ending.patient)
        self._touched.add(client)

    def _encode(self, events: Sequence[EventRecord]) -> list[EncodedEvent]:
        return encode_events(self._store, events)

    def _run(self) -> None:
        while not self._stopping or self._closing():
            try:
                self._step()
            except BullpenError as error:
                log.warning("cannot read the events: %s (%s)", error, error.hint)
                self._again()
            except Exception:
                log.exception("the hub failed; trying again")
                self._again()
        self._poller.close()

    def _again(self) -> None:
        """Try again after a pause, because an immediate attempt would fail as well."""
        self._woken = True
        self._next_round = time.monotonic() + RETRY_SECONDS

    def _closing(self) -> bool:
        """End all clients, once; return whether any is still open."""
        now = time.monotonic()
        with self._lock:
            if self._stop_at == float("inf"):
                self._stop_at = now + STOP_SECONDS
                for client in self._clients:
                    self._end(client, EndReason.CLOSING, "Bullpen stops or restarts")
            if now >= self._stop_at:
                for client in tuple(self._clients):
                    self._close(client)
            return bool(self._clients)

    def _step(self) -> None:
        """Serve the sockets that are ready, then run a round if there may be new events."""
        for client, mask in self._poller.wait(self._pause_seconds()):
            with self._lock:
                if mask & READ and client.reads:
                    client.receive()
                self._touched.add(client)
        now = time.monotonic()
        if self._woken and now >= self._next_round and not self._stopping:
            self._round()
            took = time.monotonic() - now
            self._next_round = max(
                self._next_round, now + took + min(REST_FACTOR * took, MAX_REST_SECONDS)
            )
        if now >= self._next_beat:
            self._next_beat = now + self._keep_alive
            self._beat()
        if now >= self._next_tick:
            self._next_tick = now + TICK_SECONDS
            self._settle()  # before deadlines: the reason is sent even if this thread is late
            self._check_deadlines()
        self._settle()

    def _pause_seconds(self) -> float:
        now = time.monotonic()
        pause = min(TICK_SECONDS, self._next_beat - now) if self._clients else IDLE_SECONDS
        if self._woken:
            pause = min(pause, self._next_round - now)
        return max(0.0, pause)

    def _round(self) -> None:
        """Read new events and write them to the clients whose filters match."""
        if self._tail is None:
            self._tail, self._recent = load_recent(self._store, self._encode)
            self._position = self._recent.end
        self._woken = False
        events = self._tail.read(PAGE)
        if self._tail.has_uncommitted:
            self._woken = True
            if not events:
                self._next_round = time.monotonic() + WAIT_SECONDS
        with self._lock:
            self._recent.add(events, self._tail.position)
            self._revoke(events)
            self._end_invalid()
            followers = [each for each in self._clients if each.following]
            if followers and not self._recent.covers(self._position):
                # The store was unreachable for so long that recent events no longer cover it.
                for client in followers:
                    self._end(client, EndReason.FAILED, "the events could not be read")
            elif followers and self._recent.end > self._position:
                self._spread(self._recent.after(self._position), followers)
            self._position = self._recent.end
        self._ready.set()

    def _spread(self, events: Sequence[EncodedEvent], followers: Sequence[Client]) -> None:
        made: dict[tuple[StreamProtocol, Filter], tuple[bytes, list[bytes]]] = {}
        for client in followers:
            if client.position > self._position:  # it has some of these already
                rest = [each for each in events if each.record.id > client.position]
                frames = client.filter.frames(client.wire, rest)
                whole = b"".join(frames)
            else:
                kind = (client.wire, client.filter)
                if kind not in made:
                    frames = client.filter.frames(client.wire, events)
                    made[kind] = (b"".join(frames), frames)
                whole, frames = made[kind]
            client.position = max(client.position, self._recent.end)
            if frames:
                self._send(client, whole, frames)

    def _send(self, client: Client, whole: bytes, frames: Sequence[bytes]) -> None:
        if not client.send(whole, frames):
            self._end(client, EndReason.DROPPED, TOO_SLOW)
        if client.pending or client.disconnected:
            self._touched.add(client)

    def _revoke(self, events: Sequence[EventRecord]) -> None:
        """End the clients whose key was revoked, before they get later events."""
        revoked = (record.event for record in events)
        closed = {event.key for event in revoked if isinstance(event, KeyRevoked)}
        for client in self._clients if closed else ():
            if client.key.id in closed:
                self._end(client, EndReason.CLOSED, "the key was revoked")

    def _end_invalid(self) -> None:
        """End the clients whose key has expired, or whose owner's token was replaced."""
        now, token = self._store.clock.now(), self.owner.hash()
        if token == self._token and now < self._next_expiry:
            return
        self._token, self._next_expiry = token, math.inf
        for client in self._clients:
            key = client.key
            if key.kind is KeyKind.OWNER and key.token_hash != token:
                self._end(client, EndReason.CLOSED, "the owner's token was replaced")
            elif key.expires_at is not None and now >= key.expires_at:
                self._end(client, EndReason.CLOSED, "the key has expired")
            elif key.expires_at is not None:
                self._next_expiry = min(self._next_expiry, key.expires_at)

    def _beat(self) -> None:
        with self._lock:
            for client in self._clients:
                if client.wire.keep_alive and client.following:
                    self._send(client, client.wire.keep_alive, [client.wire.keep_alive])

    def _check_deadlines(self) -> None:
        with self._lock:
            for client in tuple(self._clients):
                if time.monotonic() >= client.deadline:
                    self._close(client)
            self._end_invalid()

    def _settle(self) -> None:
        """Flush the touched clients, and close the finished ones."""
        with self._lock:
            while self._touched:
                client = self._touched.pop()
                if client not in self._clients:
                    continue
                client.flush()
                client.finish(LINGER_SECONDS)
                if client.disconnected:
                    self._close(client)
                else:
                    self._poller.watch(client)

    def _close(self, client: Client) -> None:
        self._clients.discard(client)
        self._poller.forget(client)
        if not client.reads:
            client.shutdown(socket.SHUT_RDWR)  # ends the thread that reads from it
        client.close()
