"""The owner's token for the API: a private file in the home."""

from __future__ import annotations

import base64
import hmac
import json
import os
import secrets
from contextlib import closing
from dataclasses import dataclass, replace
from http.client import HTTPConnection, HTTPException
from pathlib import Path

from bullpen.core.access import keys
from bullpen.core.access.keys import OWNER_KEY, Key, KeyKind, hash_secret, new_secret
from bullpen.core.errors import ForeignListener, NoApi, UnsafeSecret
from bullpen.core.files import replace_file
from bullpen.core.network import listen_addresses
from bullpen.core.settings import Settings
from bullpen.core.store.transaction import Transaction

MIN_TOKEN_CHARS = 24
"""Shorter tokens could be guessed."""

OTHERS_MODE_BITS = 0o077
NAME_CHARS = 12
PROOF_SECONDS = 10.0
MAX_PROOF_BYTES = 4096


def ensure_token(settings: Settings) -> str:
    """The owner's token; created if it is missing."""
    try:
        return read_token(settings)
    except FileNotFoundError:
        settings.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        _create_token_file(settings.token_file)
        return read_token(settings)


def rotate_token(settings: Settings) -> None:
    """Replace the token; the old one is invalid from the next request on."""
    settings.home.mkdir(mode=0o700, parents=True, exist_ok=True)
    replace_file(settings.token_file, f"{new_secret()}\n".encode())


def read_token(settings: Settings) -> str:
    """The owner's token; raises UnsafeSecret if it is short or others may read it."""
    path = settings.token_file
    with path.open(encoding="utf-8") as file:
        token = file.read().strip()
        mode = os.fstat(file.fileno()).st_mode
    if len(token) < MIN_TOKEN_CHARS:
        raise UnsafeSecret(f"the token in {path} has fewer than {MIN_TOKEN_CHARS} characters")
    if mode & OTHERS_MODE_BITS:
        raise UnsafeSecret(f"{path} is readable by other users")
    return token


@dataclass(frozen=True, slots=True)
class _Token:
    """The token as it was read, and the values derived from it."""

    file: tuple[int, ...]
    secret: str
    key: Key
    browser_name: str


class OwnerToken:
    """The token in memory, which is read again whenever its file changes."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._path = str(settings.token_file)
        self._token = _Token((), "", OWNER_KEY, "")

    def find(self, secret: str) -> Key | None:
        """The owner's key, if this is their token."""
        token = self._current()
        given = secret.encode(errors="surrogateescape")
        return token.key if hmac.compare_digest(token.secret.encode(), given) else None

    def hash(self) -> str:
        """The hash of the token; empty while there is no valid token."""
        try:
            return self._current().key.token_hash
        except (OSError, UnsafeSecret):
            return ""

    def still_valid(self, tx: Transaction, key: Key) -> bool:
        """Whether a key that was valid before, the owner's or another, is still valid."""
        if key.kind is KeyKind.OWNER:
            return key.token_hash == self.hash()
        return keys.still_valid(tx, key)

    def browser_name(self) -> str:
        """The host name of the API for browsers on this machine."""
        return self._current().browser_name

    def prove(self, nonce: str) -> str:
        """The answer to `check_listeners`, which only a process with this token can compute."""
        return _prove(self._current().secret, self._settings.api_port, nonce)

    def _current(self) -> _Token:
        found = os.stat(self._path)  # noqa: PTH116 - every request asks, and Path takes longer
        file = (found.st_ino, found.st_mtime_ns, found.st_ctime_ns, found.st_size)
        if file != self._token.file:
            secret = read_token(self._settings)
            key = replace(OWNER_KEY, token_hash=hash_secret(secret))
            self._token = _Token(file, secret, key, browser_name(secret))
        return self._token


def browser_name(token: str) -> str:
    """A host name on this machine that nobody can guess.

    Browsers send a cookie to every port of the host that set it, so a server on another port of
    127.0.0.1 would get the login cookie. Browsers resolve all names below `localhost` locally.
    """
    digest = hmac.digest(token.encode(), b"browser name", "sha256")
    return f"bullpen-{base64.b32encode(digest).decode().lower()[:NAME_CHARS]}.localhost"


def check_listeners(settings: Settings, token: str) -> None:
    """Raise an error unless this home's API, and no other program, listens on the API's address.

    No other program may get a login link. The API proves that it knows the token.
    """
    proven = False
    for address in listen_addresses(settings):
        nonce = secrets.token_hex(16)
        expected = _prove(token, settings.api_port, nonce)
        try:
            answer = _ask_proof(address, settings.api_port, nonce)
        except ConnectionRefusedError:
            continue
        except (OSError, ValueError, HTTPException):
            answer = ""
        if not hmac.compare_digest(answer.encode(), expected.encode()):
            raise ForeignListener(
                f"the program on port {settings.api_port} on {address} is not the API of this home"
            )
        proven = True
    if not proven:
        raise NoApi(
            f"the API is not running: nothing listens on port {settings.api_port}"
            f" on {settings.api_host}"
        )


def _ask_proof(address: str, port: int, nonce: str) -> str:
    connection = HTTPConnection(address, port, timeout=PROOF_SECONDS)
    with closing(connection):
        connection.request("GET", f"/api/proof?nonce={nonce}", headers={"Host": "localhost"})
        document = json.loads(connection.getresponse().read(MAX_PROOF_BYTES))
    proof = document.get("proof") if isinstance(document, dict) else None
    return proof if isinstance(proof, str) and proof.isascii() else ""


def _prove(token: str, port: int, nonce: str) -> str:
    """The proof; with the port, since a listener on another port could forward the request."""
    return hmac.new(token.encode(), f"proof {port} {nonce}".encode(), "sha256").hexdigest()


def _create_token_file(path: Path) -> None:
    """Create the file atomically; keeps one that another process created at the same moment."""
    unfinished = path.with_name(f".token-{os.getpid()}")
    unfinished.unlink(missing_ok=True)
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(new_secret() + "\n")
    try:
        os.link(unfinished, path)
    except FileExistsError:
        pass
    finally:
        unfinished.unlink()
