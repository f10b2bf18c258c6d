"""The client that fetches files from a platform: the only code that opens URLs from messages.

A URL must be on the platform's own hosts, and so must every redirect. A host is resolved once, and
the connection goes to the addresses that were checked.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import ssl
import zlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from bullpen.channels.files.file_types import file_type, is_web_page
from bullpen.channels.files.reachable import (
    Address,
    Hosts,
    Resolve,
    is_loopback_url,
    is_public,
    resolve_host,
)
from bullpen.channels.platform import Download
from bullpen.core.errors import StoreError, StoreFull
from bullpen.core.files import require_free_space
from bullpen.core.ids import Ids
from bullpen.core.settings import Settings
from bullpen.core.uploads import SavedUpload, Upload

MAX_FILE_BYTES = 20 << 20
MAX_REDIRECTS = 3
TOTAL_SECONDS = 60.0
CONNECT_SECONDS = 10.0
READ_SECONDS = 20.0
CHUNK_BYTES = 64 << 10
SNIFFED_BYTES = 512
AUTO_FORMAT_WBITS = 32 + zlib.MAX_WBITS
"""Lets zlib read gzip and deflate."""

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_ENCODINGS = frozenset({"", "identity", "gzip", "deflate"})


class NotTaken(Exception):
    """A file was not accepted. The text is the reason, in words for people."""

    temporary = False
    """Whether another attempt may succeed."""


class TooLarge(NotTaken):
    """The file is over the limit."""

    def __init__(self, size: int | None, limit: int) -> None:
        has = "it is larger than" if size is None else f"its size is {_rounded(size)}, the limit is"
        super().__init__(f"{has} {_rounded(limit)}")


class ForeignAddress(NotTaken):
    """The URL, or a redirect, is not on the platform's hosts, or its address is not public."""


class SignInPage(NotTaken):
    """The platform sent a web page in place of the file."""


class BadAnswer(NotTaken):
    """The platform refused, or sent something other than the file."""


class Unreachable(NotTaken):
    """The platform could not be reached, closed the connection early, or took too long."""

    temporary = True


class NotStored(NotTaken):
    """The file could not be stored. Paths and sizes of disks are not for people who write."""

    def __init__(self, error: StoreError) -> None:
        full = isinstance(error, StoreFull)
        super().__init__("the disk is full" if full else "it could not be stored")


@dataclass(frozen=True, slots=True)
class Fetched:
    """A fetched file, which has no name yet. Keep it or drop it."""

    size: int
    type: str
    """Its media type by its first bytes or, if these do not say, by its name."""
    _upload: Upload

    def keep(self, ids: Ids, name: str) -> SavedUpload:
        """Store it under a unique name that contains this one. Blocks until it is on the disk."""
        try:
            return self._upload.keep(ids, name)
        finally:
            self._upload.drop()

    def drop(self) -> None:
        """Delete it."""
        self._upload.drop()


class _PinnedResolver(AbstractResolver):
    """Resolves a host to addresses that may be reached; the connection goes to one of these."""

    def __init__(self, resolve: Resolve, allowed: Callable[[Address], bool]) -> None:
        self._resolve, self._allowed = resolve, allowed

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        addresses = await self._resolve(host, port)
        for each in addresses:
            if not self._allowed(each):
                raise ForeignAddress(f"{host} has an address that is not public")
        if not addresses:
            raise OSError(f"{host} has no address")
        return [
            ResolveResult(
                hostname=host,
                host=str(each),
                port=port,
                family=socket.AF_INET if each.version == 4 else socket.AF_INET6,
                proto=socket.IPPROTO_TCP,
                flags=socket.AI_NUMERICHOST,
            )
            for each in addresses
        ]

    async def close(self) -> None:
        """Nothing is open."""


class FetchingClient:
    """Fetches the files of one account's messages. It is used as an async context manager."""

    def __init__(
        self,
        settings: Settings,
        *,
        limit: int = MAX_FILE_BYTES,
        total_seconds: float = TOTAL_SECONDS,
        resolve: Resolve = resolve_host,
        allowed: Callable[[Address], bool] = is_public,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._settings = settings
        self.limit = limit
        self._seconds = total_seconds
        self._resolver = _PinnedResolver(resolve, allowed)
        self._tls = tls

    async def __aenter__(self) -> Self:
        # Each file has a connection of its own: a pooled one would skip the check of the address.
        connector = aiohttp.TCPConnector(
            resolver=self._resolver,
            use_dns_cache=False,
            force_close=True,
            ssl=True if self._tls is None else self._tls,
        )
        self._session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            trust_env=False,
            auto_decompress=False,
            timeout=aiohttp.ClientTimeout(
                total=self._seconds, sock_connect=CONNECT_SECONDS, sock_read=READ_SECONDS
            ),
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._session.close()

    def check_size(self, size: int | None) -> None:
        """Raise `TooLarge` for a file whose announced size is over the limit."""
        if size is not None and size > self.limit:
            raise TooLarge(size, self.limit)

    async def fetch(self, source: Download, name: str, size: int | None = None) -> Fetched:
        """Fetch one file; raises `NotTaken`. `size` is the size that the platform announced."""
        self.check_size(size)
        try:
            async with asyncio.timeout(self._seconds), self._open(source) as answer:
                return await self._receive(answer, name, size)
        except StoreError as error:
            raise NotStored(error) from error
        except TimeoutError:
            raise Unreachable("the platform took too long to send it") from None
        except (aiohttp.ClientError, OSError) as error:
            # The text of the error may contain the URL, which may contain a secret.
            reason = type(error).__name__
            raise Unreachable(f"the connection to the platform failed ({reason})") from None

    @asynccontextmanager
    async def _open(self, source: Download) -> AsyncIterator[aiohttp.ClientResponse]:
        """The answer with the file, after redirects."""
        hosts = Hosts(source.hosts)
        url = first = _parse_url(source.url)
        for _ in range(MAX_REDIRECTS + 1):
            _check_url(url, hosts)
            headers = source.headers if url.origin() == first.origin() else {}
            async with self._session.get(
                url,
                headers={**headers, "Accept-Encoding": "identity"},
                allow_redirects=False,
            ) as answer:
                if answer.status not in _REDIRECTS:
                    yield answer
                    return
                location = answer.headers.get("Location", "")
            if not location:
                raise BadAnswer("the platform sent a redirect without an address")
            url = _join(url, location)
        raise ForeignAddress(f"the platform sent more than {MAX_REDIRECTS} redirects")

    async def _receive(
        self, answer: aiohttp.ClientResponse, name: str, size: int | None
    ) -> Fetched:
        """Write the body of an answer into a file, checked on the way."""
        _check_status(answer.status)
        encoding = answer.headers.get("Content-Encoding", "").strip().lower()
        if encoding not in _ENCODINGS:
            raise BadAnswer("the platform sent it in an unknown compression")
        length = answer.content_length
        if length is not None and length > self.limit:
            raise TooLarge(length, self.limit)
        settings = self._settings
        require_free_space(settings.home, settings.free_bytes_floor, length or self.limit)
        upload = Upload(settings.files)
        try:
            pieces = _plain(answer.content, encoding)
            head, received = await self._copy(pieces, upload)
            if is_web_page(head, answer.content_type) and not _may_be_page(name, size, received):
                raise SignInPage("the platform sent a web page instead")
            return Fetched(received, file_type(head, name), upload)
        except BaseException:
            upload.drop()
            raise

    async def _copy(self, pieces: AsyncIterator[bytes], upload: Upload) -> tuple[bytes, int]:
        """Write these pieces up to the limit; returns the first bytes and the size."""
        head, received = b"", 0
        async for piece in pieces:
            received += len(piece)
            if received > self.limit:
                raise TooLarge(None, self.limit)
            head += piece[: SNIFFED_BYTES - len(head)]
            upload.write(piece)
        return head, received


async def _plain(content: aiohttp.StreamReader, encoding: str) -> AsyncIterator[bytes]:
    """The pieces of a body without its compression, each of a bounded size."""
    if encoding in ("", "identity"):
        async for piece in content.iter_chunked(CHUNK_BYTES):
            yield piece
        return
    decoder = zlib.decompressobj(AUTO_FORMAT_WBITS)
    try:
        async for piece in content.iter_chunked(CHUNK_BYTES):
            while piece and not decoder.eof:
                yield decoder.decompress(piece, CHUNK_BYTES)
                piece = decoder.unconsumed_tail
        yield decoder.flush(CHUNK_BYTES)
    except zlib.error:
        raise BadAnswer("its compression is damaged") from None
    if not decoder.eof:
        raise Unreachable("the platform closed the connection early")


def _parse_url(text: str) -> URL:
    try:
        return URL(text)
    except ValueError:
        raise ForeignAddress("its address is not a URL") from None


def _join(url: URL, location: str) -> URL:
    try:
        return url.join(URL(location))
    except ValueError:
        raise ForeignAddress("the platform redirected to what is not a URL") from None


def _check_url(url: URL, hosts: Hosts) -> None:
    """Raise `ForeignAddress` unless a URL is on these hosts."""
    host = url.host or ""
    if not hosts.includes(url):
        raise ForeignAddress(
            f"its address is not on a host of the platform ({url.scheme}://{host})"
        )
    if url.user is not None or url.password is not None:
        raise ForeignAddress("its address contains a password")
    if _is_address(host) and not is_loopback_url(url):
        raise ForeignAddress("its address has no host name")


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _check_status(status: int) -> None:
    if status == 200:
        return
    if status in (404, 410):
        raise BadAnswer("the platform no longer has it")
    if status in (401, 403):
        raise BadAnswer(f"the platform refused access to it ({status})")
    error = Unreachable if status == 429 or status >= 500 else BadAnswer
    raise error(f"the platform answered with status {status}")


def _may_be_page(name: str, announced: int | None, received: int) -> bool:
    """Whether a file that is a web page is the one that was sent, and not a page to sign in."""
    return name.lower().endswith((".html", ".htm", ".xhtml")) and announced in (None, received)


def _rounded(size: int) -> str:
    """A size for people, rounded up."""
    return f"{-(-size >> 10)} kB" if size < 1 << 20 else f"{-(-size >> 20)} MB"
