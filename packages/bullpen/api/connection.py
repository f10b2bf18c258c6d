"""One connection: receives requests and sends responses without waiting for the client.

Only for a long or late body does the thread that reads it wait, and only while enough bytes arrive.
"""

from __future__ import annotations

import io
import os
import select
import socket
import time
from collections import deque
from enum import Enum
from itertools import islice, takewhile
from typing import TYPE_CHECKING, BinaryIO, Protocol

from bullpen.api.framing import CONTINUE, Body, Head, take_head
from bullpen.core.errors import BadRequest, TooSlow

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

SMALL_BODY_BYTES = 64 << 10
"""A body of at most this length is received before a thread takes the request."""

READ_BYTES = 64 << 10
BUFFERS_PER_CALL = 16

LEAST_BYTES_PER_SECOND = 1024
"""A body or a response that is slower for some time is ended."""

EARLY_SECONDS = 0.5
"""A thread takes a request whose small body takes longer, and may refuse it first."""

_RECEIVE = socket.MSG_DONTWAIT
_SEND = socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL


class Received(Enum):
    """The received part of a request."""

    PART = "part"
    REQUEST = "request"
    """Enough for a thread to serve it."""
    END = "end"
    """The client has stopped sending."""


class Answer(Protocol):
    """A response that is produced in pieces, as the client reads them."""

    @property
    def ends(self) -> bool:
        """Whether the connection is closed after it."""

    def write(self, connection: Connection) -> bool:
        """Write pieces; false if the client must read them before the next ones."""

    def close(self) -> None:
        """Release its resources."""


class Patience:
    """A deadline that bytes extend."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self.until = time.monotonic() + seconds

    def moved(self, count: int) -> None:
        """Extend the deadline by the time for these bytes, up to the initial time."""
        granted = self.until + count / LEAST_BYTES_PER_SECOND
        self.until = min(time.monotonic() + self._seconds, granted)


class Connection:
    """A client's connection: the received part of a request, the unsent part of a response."""

    def __init__(
        self,
        sock: socket.socket,
        client: tuple[str, int],
        server: tuple[str, int],
        request_seconds: float,
        stall_seconds: float,
    ) -> None:
        self.sock = sock
        self.client = client
        """Its address and port."""
        self.server = server
        self.requests = 0
        """The number of requests that have begun."""
        self.deadline = time.monotonic() + request_seconds
        """When the connection is closed, unless it makes progress before."""
        self.head: Head | None = None
        """The head of the present request."""
        self.answer: Answer | None = None
        """The response, while it is incomplete."""
        self._request_seconds = request_seconds
        self._stall_seconds = stall_seconds
        self._received = bytearray()
        self._body = Body(0)
        self._content = bytearray()
        """The received part of the body."""
        self._skips = False
        """Whether the request was answered before its body was complete."""
        self._serving = False
        self._broken = False
        """Whether the body cannot be read to its end."""
        self._head_at = 0.0
        self._patience = Patience(stall_seconds)
        self._unsent: deque[memoryview | FilePart] = deque()
        self.unsent = 0
        """The number of unsent bytes of the response, without files."""

    def fileno(self) -> int:
        """For the poller."""
        return self.sock.fileno()

    @property
    def size(self) -> int:
        """The number of bytes that it holds."""
        return len(self._received) + len(self._content) + self.unsent

    @property
    def idle(self) -> bool:
        """Whether no part of a request was received."""
        return self.head is None and not self._received

    @property
    def answered(self) -> bool:
        """Whether no part of an unanswered request was received."""
        return self._skips or self.idle

    @property
    def has_body(self) -> bool:
        """Whether all of the body was received."""
        return self._body.done

    @property
    def late(self) -> bool:
        """Whether the body did not arrive soon after the head."""
        waiting = self.head is not None and not self._skips
        return waiting and time.monotonic() - self._head_at > EARLY_SECONDS

    @property
    def keepable(self) -> bool:
        """Whether the connection can be kept, possibly after a short rest of the body."""
        if self._body.done or self._broken:
            return not self._broken
        asks = self.head is not None and self.head.waits
        return not asks and 0 < self._body.left <= SMALL_BODY_BYTES

    def receive(self) -> Received:
        """Read the received bytes. Raises BadRequest if they are not a valid request."""
        try:
            data = self.sock.recv(READ_BYTES, _RECEIVE)
        except BlockingIOError:
            return Received.PART
        except OSError:
            return Received.END
        if not data:
            return Received.END
        if self.idle:
            self.deadline = time.monotonic() + self._request_seconds
        elif self.head is not None:
            self._patience.moved(len(data))
            self.deadline = self._patience.until
        self._received += data
        return self.advance()

    def advance(self) -> Received:
        """Parse the bytes that were received and not parsed yet."""
        if self._skips:
            self._body.take(self._received, len(self._received))
            self.expect_next()
            if self._skips:
                return Received.PART
        if self.head is None:
            self.head = take_head(self._received)
            if self.head is None:
                return Received.PART
            self._begin(self.head)
        room = SMALL_BODY_BYTES + 1 - len(self._content)
        self._content += self._body.take(self._received, room)
        long = max(self._body.left, len(self._content)) > SMALL_BODY_BYTES
        # The thread that reads the body sends `100 Continue` to a client that waits for it.
        if self._body.done or long or self.head.waits:
            return Received.REQUEST
        return Received.PART

    def _begin(self, head: Head) -> None:
        self.requests += 1
        self._body = Body(head.length)
        self._head_at = time.monotonic()
        self._patience = Patience(self._stall_seconds)
        self.deadline = self._patience.until

    def body(self) -> BinaryIO:
        """Return the body of the request, and mark the request as being served."""
        self._serving = True
        if self._body.done:
            return io.BytesIO(self._content)
        return io.BufferedReader(BodyReader(self), READ_BYTES)

    def read_body(self, limit: int) -> bytes:
        """Wait for the next bytes of the body; empty at its end."""
        part = bytes(self._content[:limit])
        del self._content[:limit]
        while not part and not self._body.done:
            part = self._body.take(self._received, limit)
            if not part and not self._body.done:
                self._wait_for_more()
        return part

    def _wait_for_more(self) -> None:
        self._broken = True
        if self.head is not None and self.head.waits:
            self.head.waits = False
            self.send(CONTINUE)
            self.flush()
        poll = select.poll()
        poll.register(self.sock, select.POLLIN)
        left = self._patience.until - time.monotonic()
        if left <= 0 or not poll.poll(1000 * left):
            raise TooSlow("the body of the request came too slowly")
        data = self.sock.recv(READ_BYTES, _RECEIVE)
        if not data:
            raise BadRequest("the connection ended before the body did")
        self._patience.moved(len(data))
        self._received += data
        self._broken = False

    def expect_next(self) -> None:
        """Wait for the next request, after the rest of the answered one."""
        if self._serving:
            self._serving = False
        elif not self._skips:
            return
        self._content.clear()
        self._skips = not self._body.done
        if not self._skips:
            self.head = None

    def receive_soon(self, milliseconds: int) -> Received:
        """Read the next request if it arrives within this time."""
        self.expect_next()
        received = self.advance()
        if received is Received.PART:
            poll = select.poll()
            poll.register(self.sock, select.POLLIN)
            if poll.poll(milliseconds):
                return self.receive()
        return received

    def rest(self, seconds: float) -> None:
        """Set the deadline of a connection on which the next request has not begun."""
        if self.idle:
            self.deadline = time.monotonic() + seconds

    def send(self, data: bytes) -> None:
        """Add bytes to the response; they are sent in large pieces, or with `flush`."""
        if not self._unsent:
            self._patience = Patience(self._stall_seconds)
        self._unsent.append(memoryview(data))
        self.unsent += len(data)

    def sendall(self, data: bytes) -> None:
        """Send bytes; gunicorn's name of `send`."""
        self.send(data)

    def sendfile(self, file: BinaryIO, offset: int, count: int) -> None:
        """Add a part of a file to the response."""
        self._unsent.append(FilePart(os.dup(file.fileno()), offset, count))

    def flush(self) -> bool:
        """Send what the socket accepts now; return whether that was all. Raises OSError."""
        while self._unsent:
            first = self._unsent[0]
            buffers = [first.read()] if isinstance(first, FilePart) else self._buffers()
            try:
                sent = self.sock.sendmsg(buffers, [], _SEND)
            except BlockingIOError:
                self.deadline = self._patience.until
                return False
            self._patience.moved(sent)
            if isinstance(first, FilePart):
                if first.moved(sent):
                    self._unsent.popleft()
            else:
                self._sent(sent)
        return True

    def _buffers(self) -> list[memoryview]:
        """Return the next parts of the response that are bytes."""
        parts = islice(self._unsent, BUFFERS_PER_CALL)
        return [part for part in takewhile(_is_buffer, parts) if isinstance(part, memoryview)]

    def _sent(self, count: int) -> None:
        self.unsent -= count
        while self._unsent and isinstance(first := self._unsent[0], memoryview):
            if count < len(first):
                self._unsent[0] = first[count:]
                break
            count -= len(self._unsent.popleft())

    def discard(self) -> bool:
        """Read and discard bytes; return whether more may arrive."""
        try:
            return bool(self.sock.recv(READ_BYTES, _RECEIVE))
        except BlockingIOError:
            return True
        except OSError:
            return False

    def close(self) -> None:
        """Close the socket and the files."""
        if self.answer is not None:
            self.answer.close()
        while self._unsent:
            part = self._unsent.popleft()
            if isinstance(part, FilePart):
                part.close()
        self.unsent = 0
        self.sock.close()


class FilePart:
    """An unsent part of a file."""

    def __init__(self, file: int, offset: int, count: int) -> None:
        self._file = file
        self._offset = offset
        self._left = count

    def __len__(self) -> int:
        return self._left

    def read(self) -> bytes:
        """Return the next bytes. Raises OSError if the file has become shorter."""
        data = os.pread(self._file, min(self._left, READ_BYTES), self._offset)
        if self._left and not data:
            raise OSError("a file became shorter while it was sent")
        return data

    def moved(self, count: int) -> bool:
        """Count sent bytes; return whether all were sent."""
        self._offset += count
        self._left -= count
        if not self._left:
            self.close()
        return not self._left

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


class BodyReader(io.RawIOBase):
    """The body of a request as a file, while it is being received."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        """Wait for the next bytes."""
        view = memoryview(buffer)
        part = self._connection.read_body(len(view))
        view[: len(part)] = part
        return len(part)


def _is_buffer(part: memoryview | FilePart) -> bool:
    return isinstance(part, memoryview)
