"""Short-lived URLs for files going out: a client that knows the URL may fetch the file.

Twilio takes media only from a public URL. The file was opened from the agent's workspace or the
stored files when it was offered; no path is opened again.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import secrets
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from urllib.parse import quote

from bullpen.channels.files.file_types import UNKNOWN_TYPE, WEB_PAGE, type_by_name
from bullpen.core.answers.attachments import OpenFile
from bullpen.core.clock import MINUTE, Clock
from bullpen.core.uploads import safe_name

OFFER_MS = 10 * MINUTE
MAX_OFFERS = 64
TOKEN_BYTES = 32
CHUNK_BYTES = 256 << 10
FILES_PATH = "/files/"

# A browser would run a script in these.
_ACTIVE_TYPES = frozenset({WEB_PAGE, "application/xhtml+xml", "image/svg+xml", "text/xml"})


@dataclass(frozen=True, slots=True)
class Offered:
    """A file that may be fetched until a time."""

    descriptor: int
    name: str
    size: int
    until: int

    @property
    def type(self) -> str:
        """Its media type, which never is one that a browser runs."""
        found = type_by_name(self.name)
        return UNKNOWN_TYPE if found in _ACTIVE_TYPES else found

    @property
    def headers(self) -> dict[str, str]:
        """The headers of the answer with it."""
        return {
            "Content-Type": self.type,
            "Content-Length": str(self.size),
            "Content-Disposition": f"attachment; filename*=UTF-8''{quote(self.name, safe='')}",
            "Content-Security-Policy": "sandbox; default-src 'none'",
            "X-Content-Type-Options": "nosniff",
            "Cache-Control": "private, no-store",
        }

    async def read(self) -> AsyncGenerator[bytes, None]:
        """Its bytes, up to the size that it had when it was offered."""
        # It may be withdrawn meanwhile.
        descriptor = os.dup(self.descriptor)
        try:
            at = 0
            while at < self.size:
                most = min(CHUNK_BYTES, self.size - at)
                piece = await asyncio.to_thread(os.pread, descriptor, most, at)
                if not piece:
                    return
                at += len(piece)
                yield piece
        finally:
            os.close(descriptor)


class Capabilities:
    """The files that are offered at present, each under a URL that cannot be guessed."""

    def __init__(
        self,
        public_url: str,
        clock: Clock,
        token: Callable[[int], str] = secrets.token_urlsafe,
    ) -> None:
        self._base = public_url.rstrip("/")
        self._clock = clock
        self._token = token
        # By the digest of the token: how long a look-up takes says nothing about a token.
        self._offers: dict[bytes, Offered] = {}

    def offer(self, file: OpenFile) -> str:
        """The URL of an open file for the next ten minutes; the file may then be closed."""
        self._withdraw_old()
        while len(self._offers) >= MAX_OFFERS:
            self._withdraw(next(iter(self._offers)))
        token = self._token(TOKEN_BYTES)
        name = safe_name(file.name)
        until = self._clock.monotonic() + OFFER_MS
        offered = Offered(os.dup(file.file.fileno()), name, file.size, until)
        self._offers[_digest(token)] = offered
        return f"{self._base}{FILES_PATH}{token}/{quote(name)}"

    def find(self, path: str) -> Offered | None:
        """The file at `/files/TOKEN/NAME`, if it is still offered; the name is of no importance."""
        self._withdraw_old()
        return self._offers.get(_digest(path.removeprefix(FILES_PATH).partition("/")[0]))

    def close(self) -> None:
        """Withdraw all."""
        for key in list(self._offers):
            self._withdraw(key)

    def _withdraw_old(self) -> None:
        now = self._clock.monotonic()
        for key in [key for key, each in self._offers.items() if each.until <= now]:
            self._withdraw(key)

    def _withdraw(self, key: bytes) -> None:
        os.close(self._offers.pop(key).descriptor)


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode(errors="replace")).digest()
